#include "base/shard.h"

asparse_status asparse_wcsr_create(asparse_wcsr **out, int32_t m, int32_t k, int32_t window_height, int64_t n_columns,
                                   asparse_dtype dtype) {
  asparse_status status = ASPARSE_OK;
  asparse_wcsr *a = NULL;
  ALLOC_ZERO(a, 1);
  a->m = m;
  a->k = k;
  a->window_height = window_height;
  a->n_windows = m / window_height + (m % window_height != 0);
  a->dtype = dtype;
  ALLOC_ZERO(a->window_row_ptr, (int64_t)a->n_windows + 1);
  ALLOC(a->window_col_idx, n_columns);
  ALLOC(a->row_mask, n_columns);
  a->values = asparse_malloc(n_columns * window_height, asparse_dtype_size(dtype), "WCSR tiles");
  TRY(a->values ? ASPARSE_OK : ASPARSE_ERR_MEMORY);
  *out = a;
  return ASPARSE_OK;
cleanup:
  asparse_wcsr_destroy(&a);
  return status;
}

asparse_status asparse_bcsr_create(asparse_bcsr **out, int32_t m, int32_t k, int32_t block_size, int64_t n_blocks,
                                   asparse_dtype dtype) {
  asparse_status status = ASPARSE_OK;
  asparse_bcsr *a = NULL;
  ALLOC_ZERO(a, 1);
  a->m = m;
  a->k = k;
  a->block_size = block_size;
  a->n_block_rows = m / block_size + (m % block_size != 0);
  a->dtype = dtype;
  ALLOC_ZERO(a->block_row_ptr, (int64_t)a->n_block_rows + 1);
  ALLOC(a->block_col_idx, n_blocks);
  ALLOC(a->entry_mask, n_blocks * block_size);
  a->blocks = asparse_malloc(n_blocks * block_size * block_size, asparse_dtype_size(dtype), "BCSR blocks");
  TRY(a->blocks ? ASPARSE_OK : ASPARSE_ERR_MEMORY);
  *out = a;
  return ASPARSE_OK;
cleanup:
  asparse_bcsr_destroy(&a);
  return status;
}

void asparse_wcsr_destroy(asparse_wcsr **a) {
  if (!a || !*a) return;
  asparse_free((*a)->window_row_ptr);
  asparse_free((*a)->window_col_idx);
  asparse_free((*a)->row_mask);
  asparse_free((*a)->values);
  asparse_free((*a)->row_map);
  FREE(*a);
}

void asparse_bcsr_destroy(asparse_bcsr **a) {
  if (!a || !*a) return;
  asparse_free((*a)->block_row_ptr);
  asparse_free((*a)->block_col_idx);
  asparse_free((*a)->entry_mask);
  asparse_free((*a)->blocks);
  FREE(*a);
}

void asparse_shard_destroy(asparse_shard **a) {
  if (!a || !*a) return;
  if (!(*a)->borrows_csr) asparse_local_csr_destroy(&(*a)->csr);
  asparse_wcsr_destroy(&(*a)->wcsr);
  asparse_bcsr_destroy(&(*a)->bcsr);
  FREE(*a);
}

int32_t asparse_shard_rows(const asparse_shard *a) { return a->csr ? a->csr->m : a->wcsr ? a->wcsr->m : a->bcsr->m; }

int32_t asparse_shard_columns(const asparse_shard *a) { return a->csr ? a->csr->k : a->wcsr ? a->wcsr->k : a->bcsr->k; }

int64_t asparse_shard_nnz(const asparse_shard *a) {
  return a->csr ? a->csr->row_ptr[a->csr->m] : a->wcsr ? a->wcsr->nnz : a->bcsr->nnz;
}

int64_t asparse_shard_stored(const asparse_shard *a) {
  if (a->csr) return a->csr->row_ptr[a->csr->m];
  if (a->wcsr) return a->wcsr->window_row_ptr[a->wcsr->n_windows] * a->wcsr->window_height;
  return a->bcsr->block_row_ptr[a->bcsr->n_block_rows] * a->bcsr->block_size * a->bcsr->block_size;
}

int64_t asparse_shard_bytes(const asparse_shard *a) {
  int64_t size = (int64_t)asparse_dtype_size(asparse_shard_dtype(a));
  if (a->csr) return a->borrows_csr ? 0 : asparse_local_csr_bytes(a->csr);
  if (a->wcsr) {
    int64_t columns = a->wcsr->window_row_ptr[a->wcsr->n_windows];
    int64_t map = a->wcsr->row_map ? 4 * (int64_t)a->wcsr->m : 0;
    return (a->wcsr->n_windows + (int64_t)1) * 8 + columns * (4 + 8 + a->wcsr->window_height * size) + map;
  }
  int64_t blocks = a->bcsr->block_row_ptr[a->bcsr->n_block_rows], r = a->bcsr->block_size;
  return (a->bcsr->n_block_rows + (int64_t)1) * 8 + blocks * (4 + 8 * r + r * r * size);
}

asparse_dtype asparse_shard_dtype(const asparse_shard *a) {
  return a->csr ? a->csr->dtype : a->wcsr ? a->wcsr->dtype : a->bcsr->dtype;
}

const char *asparse_format_name(asparse_format format) {
  static const char *const names[] = {"auto", "csr", "wcsr", "bcsr"};
  return names[format];
}

int32_t asparse_shard_row_unit(const asparse_shard *a) {
  return a->csr ? 1 : a->wcsr ? a->wcsr->window_height : a->bcsr->block_size;
}
