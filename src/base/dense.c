#include "base/dense.h"

asparse_status asparse_dense_create(asparse_dense **out, int64_t m, int64_t n, asparse_dtype dtype) {
  asparse_status status = ASPARSE_OK;
  asparse_dense *a = NULL;
  int64_t count = 0;
  TRY_THAT(!__builtin_mul_overflow(m, n, &count), ASPARSE_ERR_MEMORY,
           "a dense matrix of %lld × %lld exceeds 64-bit sizes", (long long)m, (long long)n);
  ALLOC_ZERO(a, 1);
  a->m = m;
  a->n = n;
  a->ld = n;
  a->dtype = dtype;
  ALLOC_BYTES(a->values, count, asparse_dtype_size(dtype));
  *out = a;
  return ASPARSE_OK;
cleanup:
  asparse_dense_destroy(&a);
  return status;
}

void asparse_dense_destroy(asparse_dense **a) {
  if (!a || !*a) return;
  if ((*a)->release) (*a)->release((*a)->values);
  else asparse_free((*a)->values);
  FREE(*a);
}

double asparse_random_element(uint64_t seed, int64_t row, int64_t col) {
  uint64_t bits = asparse_mix64(asparse_mix64(seed ^ asparse_mix64((uint64_t)row)) ^ (uint64_t)col);
  return (double)(int64_t)(bits >> 11) * 0x1p-52 - 1.0;
}

void asparse_dense_fill_random(asparse_dense *a, uint64_t seed, int64_t row_begin, const int64_t *global_row) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < a->m; i++) {
    int64_t row = global_row ? global_row[i] : row_begin + i;
    for (int64_t j = 0; j < a->n; j++)
      asparse_store(a->dtype, a->values, i * a->ld + j, asparse_random_element(seed, row, j));
  }
}
