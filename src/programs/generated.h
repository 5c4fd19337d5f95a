/* Matrices made in place from a description, in place of a file. */
#ifndef ASPARSE_GENERATED_H
#define ASPARSE_GENERATED_H

#include "base/comm.h"
#include "generate/generate.h"

/* Collective. This rank's rows, cut for near-equal work, nnz that of the whole matrix; caller destroys. ERR_MEMORY,
 * before anything is allocated, where the ranks of a host have no room for their rows. */
asparse_status generated_slab(asparse_comm *comm, const asparse_generator *g, asparse_csr **slab);

/* generated_slab, and what a file would have said of itself. Collective. */
asparse_status generated_read(asparse_comm *comm, const asparse_generator *g, asparse_csr **slab,
                              asparse_source *source);

#endif
