/* One engine a rank, all of one kind. */
#ifndef ASPARSE_ENGINES_H
#define ASPARSE_ENGINES_H

#include "asparse.h"
#include "base/comm.h"
#include "kernels/kernels.h"

/* Collective. This rank's engine of the kind that options ask for: with auto, GPUs only where every rank has one.
 * Decides what comm's rows of B travel by (see asparse_transport_open). */
asparse_status asparse_engines_open(asparse_comm *comm, const asparse_options *options, asparse_engine **engine);

/* Local. What this rank's threads do per second while all ranks of its host multiply: asparse_host_rates_get, less
 * where there are more threads than cores. */
asparse_status asparse_engines_host_rates(const asparse_comm *comm, asparse_host_rates *rates);

#endif
