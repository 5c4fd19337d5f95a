/* What the cost models know of a rank-local matrix, counted from it. */
#ifndef ASPARSE_PROFILE_H
#define ASPARSE_PROFILE_H

#include "base/csr.h"
#include "kernels/kernels.h"

/* Local, threaded. Counts all rows of a for n columns of B, or with sample a few runs of rows that hold about an eighth
 * of them (profile->nnz says how many entries were counted). a NULL: an empty matrix. */
asparse_status asparse_profile_create(const asparse_local_csr *a, int64_t n, bool sample, asparse_profile *profile);

/* Local, threaded. Counts the windows of the same matrix with like rows brought together. */
asparse_status asparse_profile_add_clustered(const asparse_local_csr *rows, asparse_profile *profile);

/* Local. Counts what a GPU's cache makes it read again of the n columns of B (profile->n, ->dtype), some 3 ns an entry
 * where B is larger than the cache. a NULL: nothing. ERR_MEMORY. */
asparse_status asparse_profile_add_rereads(const asparse_local_csr *a, asparse_profile *profile);

/* Local, threaded. The slab's pattern with 32-bit columns, for the above: without values, row_ptr the slab's. The
 * caller frees col_idx. ERR_MEMORY. */
asparse_status asparse_profile_pattern(const asparse_csr *slab, asparse_local_csr *pattern);

#endif
