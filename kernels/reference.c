#include <string.h>

#include "kernels/kernels.h"

asparse_status asparse_reference_multiply(const asparse_local_csr *a, const asparse_dense *b, double *c) {
  if (a->k != b->m) return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "A has %d columns, B %lld rows", a->k, (long long)b->m);
  memset(c, 0, (size_t)a->m * (size_t)b->n * sizeof *c);
  for (int64_t i = 0; i < a->m; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      const double value = asparse_load(a->dtype, a->values, e);
      for (int64_t j = 0; j < b->n; j++)
        c[i * b->n + j] += value * asparse_load(b->dtype, b->values, a->col_idx[e] * b->ld + j);
    }
  }
  return ASPARSE_OK;
}
