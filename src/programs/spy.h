/* A picture of where the entries are. */
#ifndef ASPARSE_SPY_H
#define ASPARSE_SPY_H

#include "base/comm.h"
#include "base/csr.h"

/* Collective. Writes a gray PNG of at most 1024 × 1024 pixels, the matrix's aspect kept, white where there is no
 * entry and darker where entries are denser. The file is whole or absent. ERR_USAGE when built without libpng. */
asparse_status spy_write(asparse_comm *comm, const asparse_csr *slab, const char *path);

#endif
