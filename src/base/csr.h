/* Sparse containers: creation, destruction, checks, conversion. Local. */
#ifndef ASPARSE_CSR_H
#define ASPARSE_CSR_H

#include "base/dtype.h"
#include "base/memory.h"

/* Allocates a slab with room for nnz_local entries; row_ptr is zeroed, the rest undefined. */
asparse_status asparse_csr_create(asparse_csr **a, int64_t m, int64_t k, int64_t row_begin, int64_t n_rows,
                                  int64_t nnz_local, asparse_dtype dtype);
ASPARSE_API void asparse_csr_destroy(asparse_csr **a);

/* Entries of the slab: row_ptr[n_rows]. */
int64_t asparse_csr_nnz_local(const asparse_csr *a);

/* Sorts each row by column and sums duplicates in their stored order; counts them in n_duplicates.
 * Does nothing to rows that are already sorted and unique. nnz is not updated: the caller sums. */
asparse_status asparse_csr_sort_rows(asparse_csr *a);

/* Rounds values to dtype in place of the old ones. */
asparse_status asparse_csr_convert(asparse_csr *a, asparse_dtype dtype);

asparse_status asparse_local_csr_create(asparse_local_csr **a, int32_t m, int32_t k, int64_t nnz, asparse_dtype dtype);
void asparse_local_csr_destroy(asparse_local_csr **a);

/* For building in steps: new arrays of row_ptr[m] entries in place of the old ones, contents undefined. */
asparse_status asparse_local_csr_reserve_columns(asparse_local_csr *a);
asparse_status asparse_local_csr_reserve_values(asparse_local_csr *a);

/* Bytes held by the arrays. */
int64_t asparse_local_csr_bytes(const asparse_local_csr *a);

/* global as int32, or ASPARSE_ERR_RUNTIME that names what. */
asparse_status asparse_int32_from(int64_t global, const char *what, int32_t *local);

#endif
