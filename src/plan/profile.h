/* What the cost models know of a rank-local matrix, counted from it. */
#ifndef ASPARSE_PROFILE_H
#define ASPARSE_PROFILE_H

#include "kernels/kernels.h"

/* Local, threaded. Counts all rows of a for n columns of B, or with sample a few runs of rows that hold about an eighth
 * of them (profile->nnz says how many entries were counted). a NULL: an empty matrix. */
asparse_status asparse_profile_create(const asparse_local_csr *a, int64_t n, bool sample, asparse_profile *profile);

/* Local, threaded. Counts the windows of the same matrix with like rows brought together. */
asparse_status asparse_profile_add_clustered(const asparse_local_csr *rows, asparse_profile *profile);

#endif
