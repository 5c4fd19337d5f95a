/* Shards: one rank-local sparse matrix in CSR, WCSR or BCSR form. Local.
 * Built in partition/, multiplied in kernels/, stored in io/. */
#ifndef ASPARSE_SHARD_H
#define ASPARSE_SHARD_H

#include "base/csr.h"

enum { ASPARSE_TILE_COLUMNS = 16 }; /* compressed columns of one WCSR tile */

/* Of the windows of one height: Σ of distinct columns, Σ of them padded to whole tiles, most of one window; windows
 * with entries. */
typedef struct asparse_window_counts {
  int64_t columns, padded, widest;
  int64_t used;
} asparse_window_counts;

/* Allocate with the given sizes; pointer arrays zeroed, the rest undefined (builders zero it by the thread
 * that fills it, which halves the time and puts pages where they are used).
 * n_columns is the sum of padded window widths, a multiple of 16. */
asparse_status asparse_wcsr_create(asparse_wcsr **a, int32_t m, int32_t k, int32_t window_height, int64_t n_columns,
                                   asparse_dtype dtype);
asparse_status asparse_bcsr_create(asparse_bcsr **a, int32_t m, int32_t k, int32_t block_size, int64_t n_blocks,
                                   asparse_dtype dtype);
void asparse_wcsr_destroy(asparse_wcsr **a);
void asparse_bcsr_destroy(asparse_bcsr **a);
void asparse_shard_destroy(asparse_shard **a);

int32_t asparse_shard_rows(const asparse_shard *a);    /* m */
int32_t asparse_shard_columns(const asparse_shard *a); /* k */
int64_t asparse_shard_nnz(const asparse_shard *a);     /* entries of A */
int64_t asparse_shard_stored(const asparse_shard *a);  /* entries with padding */
int64_t asparse_shard_bytes(const asparse_shard *a);   /* arrays it owns; 0 for a borrowed CSR */
asparse_dtype asparse_shard_dtype(const asparse_shard *a);
const char *asparse_format_name(asparse_format format);

/* Rows of the smallest unit a kernel computes: 1 (CSR), window height or block size. */
int32_t asparse_shard_row_unit(const asparse_shard *a);

#endif
