#include "plan/merged.h"

#include <string.h>

/* Entries [begin, end) of from, columns moved up by shift, to the place at of row i. */
static int64_t copy_run(const asparse_local_csr *from, int64_t begin, int64_t end, int32_t shift, asparse_local_csr *to,
                        int64_t at) {
  const size_t size = asparse_dtype_size(from->dtype);
  for (int64_t e = begin; e < end; e++) to->col_idx[at + e - begin] = from->col_idx[e] + shift;
  memcpy((char *)to->values + (size_t)at * size, (const char *)from->values + (size_t)begin * size,
         (size_t)(end - begin) * size);
  return at + end - begin;
}

static void merge_rows(const asparse_local_csr *diag, const asparse_local_csr *offd, int32_t below,
                       asparse_local_csr *a) {
#pragma omp parallel for schedule(static)
  for (int32_t i = 0; i < a->m; i++) {
    int64_t middle = offd->row_ptr[i], at = a->row_ptr[i];
    while (middle < offd->row_ptr[i + 1] && offd->col_idx[middle] < below) middle++;
    at = copy_run(offd, offd->row_ptr[i], middle, 0, a, at);
    at = copy_run(diag, diag->row_ptr[i], diag->row_ptr[i + 1], below, a, at);
    copy_run(offd, middle, offd->row_ptr[i + 1], diag->k, a, at);
  }
}

asparse_status asparse_merged_create(const asparse_local_csr *diag, const asparse_local_csr *offd, int64_t below,
                                     int64_t n, asparse_merged **out) {
  asparse_status status = ASPARSE_OK;
  asparse_merged *merged = NULL;
  int32_t k = 0;
  ALLOC_ZERO(merged, 1);
  merged->n = n;
  merged->below = below;
  merged->own = diag->k;
  TRY(asparse_int32_from((int64_t)diag->k + offd->k, "the number of rows of B", &k));
  TRY(asparse_local_csr_create(&merged->none, diag->m, offd->k, 0, diag->dtype));
  TRY(asparse_local_csr_create(&merged->a, diag->m, k, 0, diag->dtype));
  for (int32_t i = 0; i <= diag->m; i++) merged->a->row_ptr[i] = diag->row_ptr[i] + offd->row_ptr[i];
  TRY(asparse_local_csr_reserve_columns(merged->a));
  TRY(asparse_local_csr_reserve_values(merged->a));
  merge_rows(diag, offd, (int32_t)below, merged->a);
  ALLOC_BYTES(merged->b, k, (size_t)n * asparse_dtype_size(diag->dtype));
  *out = merged;
  return ASPARSE_OK;
cleanup:
  asparse_merged_destroy(&merged);
  return status;
}

void asparse_merged_destroy(asparse_merged **merged) {
  if (!merged || !*merged) return;
  asparse_local_csr_destroy(&(*merged)->a);
  asparse_local_csr_destroy(&(*merged)->none);
  asparse_free((*merged)->b);
  FREE(*merged);
}

asparse_status asparse_merged_gather(asparse_merged *merged, const asparse_halo *halo, const void *b, int64_t ldb) {
  const asparse_backend *backend = halo->engine->backend;
  const int64_t row = merged->n * (int64_t)asparse_dtype_size(halo->shape.dtype), n = merged->n, below = merged->below;
  char *all = merged->b;
  const char *rows = halo->buffer;
  PASS(backend->pack(halo->engine, ASPARSE_QUEUE_COMPUTE, halo->shape.dtype, below, NULL, n, rows, n, all));
  PASS(backend->pack(halo->engine, ASPARSE_QUEUE_COMPUTE, halo->shape.dtype, merged->own, NULL, n, b, ldb,
                     all + below * row));
  return backend->pack(halo->engine, ASPARSE_QUEUE_COMPUTE, halo->shape.dtype, halo->n_rows - below, NULL, n,
                       rows + below * row, n, all + (below + merged->own) * row);
}

int64_t asparse_merged_csr_bytes(const asparse_merged *merged) {
  return asparse_local_csr_bytes(merged->a) + asparse_local_csr_bytes(merged->none);
}

int64_t asparse_merged_b_bytes(const asparse_merged *merged) {
  return merged->a->k * merged->n * (int64_t)asparse_dtype_size(merged->a->dtype);
}
