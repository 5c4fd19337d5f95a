/* One engine a rank, all of one kind. */
#ifndef ASPARSE_ENGINES_H
#define ASPARSE_ENGINES_H

#include "asparse.h"
#include "base/comm.h"
#include "kernels/kernels.h"

/* Collective. This rank's engine of the kind that options ask for: with auto, GPUs only where every rank has one.
 * Decides what comm's rows of B travel by (see asparse_transport_open). */
asparse_status asparse_engines_open(asparse_comm *comm, const asparse_options *options, asparse_engine **engine);

#endif
