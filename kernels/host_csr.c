/* CSR: a strip of a row of C stays in registers while the row's entries stream past it. */
#include "kernels/host_strip.h"

/* Where C needs several strips, rows of a block are finished one strip after the other, so that the part
 * of B they share stays in the first-level cache. At n = 256 on six matrices, blocks of 16 rows were
 * 1.06–1.36 times as fast as all rows at once; 1, 4, 8 and 16 rows did not differ beyond noise. */
enum { BLOCK_ROWS = 16 };

INLINE void csr_strip(asparse_dtype dtype, const int vectors, const bool masked, const asparse_product *p,
                      int64_t row_begin, int64_t row_end, const strip *s) {
  const asparse_local_csr *a = p->a->csr;
  const int64_t size = (int64_t)asparse_dtype_size(dtype);
  const char *b = p->b + s->col_begin * size;
  for (int64_t i = row_begin; i < row_end; i++) {
    vec sum[STRIP_VECTORS];
    const int64_t end = a->row_ptr[i + 1];
    if (p->accumulate && a->row_ptr[i] == end) continue; /* most rows of a halo part */
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = vec_zero();
    for (int64_t e = a->row_ptr[i]; e < end; e++) {
      const char *b_row = b + a->col_idx[e] * p->ldb;
      vec x = vec_broadcast(dtype, (const char *)a->values + e * size);
      UNROLL for (int v = 0; v < vectors; v++) sum[v] =
          vec_fma(dtype, x, strip_load(dtype, masked && v == vectors - 1, b_row, v, s->tail), sum[v]);
    }
    strip_store(dtype, vectors, masked, p, i, s, sum);
  }
}

/* csr_strip with the number of registers as a constant. */
INLINE void csr_strip_any(asparse_dtype dtype, const bool masked, const asparse_product *p, int64_t row_begin,
                          int64_t row_end, const strip *s) {
  switch (s->vectors) {
  case 1: csr_strip(dtype, 1, masked, p, row_begin, row_end, s); break;
  case 2: csr_strip(dtype, 2, masked, p, row_begin, row_end, s); break;
  case 3: csr_strip(dtype, 3, masked, p, row_begin, row_end, s); break;
  case 4: csr_strip(dtype, 4, masked, p, row_begin, row_end, s); break;
  case 5: csr_strip(dtype, 5, masked, p, row_begin, row_end, s); break;
  case 6: csr_strip(dtype, 6, masked, p, row_begin, row_end, s); break;
  case 7: csr_strip(dtype, 7, masked, p, row_begin, row_end, s); break;
  default: csr_strip(dtype, 8, masked, p, row_begin, row_end, s); break;
  }
}

INLINE void csr_multiply(asparse_dtype dtype, const asparse_product *p, int64_t row_begin, int64_t row_end,
                         int64_t col_begin, int64_t col_end) {
  const bool one_strip = col_end - col_begin <= STRIP_VECTORS * vec_lanes(dtype);
  const int64_t block_rows = one_strip ? row_end - row_begin : BLOCK_ROWS;
  for (int64_t i = row_begin; i < row_end; i += block_rows) {
    const int64_t block_end = i + block_rows < row_end ? i + block_rows : row_end;
    for (strip s = strip_first(dtype, STRIP_VECTORS, col_begin, col_end); s.vectors > 0; s = strip_next(s)) {
      if (s.tail == vec_lanes(dtype)) csr_strip_any(dtype, false, p, i, block_end, &s);
      else csr_strip_any(dtype, true, p, i, block_end, &s);
    }
  }
}

void ISA_NAME(asparse_csr_multiply)(const asparse_product *p, int64_t row_begin, int64_t row_end, int64_t col_begin,
                                    int64_t col_end) {
  FOR_DTYPE(p->a->csr->dtype, csr_multiply, p, row_begin, row_end, col_begin, col_end);
}
