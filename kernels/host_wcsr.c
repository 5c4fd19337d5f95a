/* WCSR: a row of B named by a compressed column is loaded once for TILE_ROWS rows of the window. */
#include "kernels/host_tile.h"

/* Rows [first, first + TILE_ROWS) of one window, one strip of columns. Columns without an entry in
 * these rows, padding among them, are not read. */
INLINE void wcsr_tile_sum(asparse_dtype dtype, const int vectors, const bool masked, const asparse_product *p,
                          int64_t window, int first, const char *b, int64_t tail, tile sum) {
  const asparse_wcsr *a = p->a->wcsr;
  const int64_t size = (int64_t)asparse_dtype_size(dtype), stride = ASPARSE_TILE_COLUMNS * size;
  const int64_t height = a->window_height, ldb = p->ldb, end = a->window_row_ptr[window + 1];
  const uint64_t rows = ((UINT64_C(1) << TILE_ROWS) - 1) << first, *row_mask = a->row_mask;
  const int32_t *col_idx = a->window_col_idx;
  const char *values = (const char *)a->values + first * stride;
  tile_clear(sum, vectors);
  for (int64_t c = a->window_row_ptr[window];; c++) {
    while (c < end && (row_mask[c] & rows) == 0) c++;
    if (c >= end) break;
    const int64_t j = c % ASPARSE_TILE_COLUMNS;
    const char *tile_values = values + (c - j) * height * size;
    tile_prefetch(tile_values, height * stride, j, TILE_ROWS * stride);
    tile_update(dtype, vectors, masked, sum, tile_values + j * size, stride, b + col_idx[c] * ldb, tail);
  }
}

/* The same from stored entries only, for sums that padding may have spoiled. */
static __attribute__((noinline)) void wcsr_tile_exact(asparse_dtype dtype, int vectors, bool masked,
                                                      const asparse_product *p, int64_t window, int first,
                                                      const char *b, int64_t tail, tile sum) {
  const asparse_wcsr *a = p->a->wcsr;
  const int64_t size = (int64_t)asparse_dtype_size(dtype);
  tile_clear(sum, vectors);
  for (int64_t c = a->window_row_ptr[window]; c < a->window_row_ptr[window + 1]; c++) {
    const int64_t j = c % ASPARSE_TILE_COLUMNS;
    for (int r = 0; r < TILE_ROWS; r++) {
      if ((a->row_mask[c] >> (first + r) & 1) == 0) continue;
      int64_t at = (c - j) * a->window_height + (first + r) * ASPARSE_TILE_COLUMNS + j;
      tile_update_row(dtype, vectors, masked, sum[r], (const char *)a->values + at * size,
                      b + a->window_col_idx[c] * p->ldb, tail);
    }
  }
}

INLINE void wcsr_strip(asparse_dtype dtype, const int vectors, const bool masked, const asparse_product *p,
                       int64_t window, const strip *s) {
  const asparse_wcsr *a = p->a->wcsr;
  const char *b = p->b + s->col_begin * (int64_t)asparse_dtype_size(dtype);
  for (int first = 0; first < a->window_height; first += TILE_ROWS) {
    const int64_t row = window * a->window_height + first;
    if (row >= a->m) break;
    tile sum;
    wcsr_tile_sum(dtype, vectors, masked, p, window, first, b, s->tail, sum);
    if (tile_is_finite(dtype, vectors, sum)) {
      tile_store(dtype, vectors, masked, p, row, a->m - row, s, sum);
    } else {
      tile exact;
      wcsr_tile_exact(dtype, vectors, masked, p, window, first, b, s->tail, exact);
      tile_store(dtype, vectors, masked, p, row, a->m - row, s, exact);
    }
  }
}

INLINE void wcsr_multiply(asparse_dtype dtype, const asparse_product *p, int64_t window_begin, int64_t window_end,
                          int64_t col_begin, int64_t col_end) {
  const int64_t *window_row_ptr = p->a->wcsr->window_row_ptr;
  for (int64_t w = window_begin; w < window_end; w++) {
    if (p->accumulate && window_row_ptr[w] == window_row_ptr[w + 1]) continue; /* most of a halo part */
    for (strip s = strip_first(dtype, TILE_VECTORS, col_begin, col_end); s.vectors > 0; s = strip_next(s))
      TILE_STRIP(wcsr_strip, dtype, p, w, &s);
  }
}

void ISA_NAME(asparse_wcsr_multiply)(const asparse_product *p, int64_t window_begin, int64_t window_end,
                                     int64_t col_begin, int64_t col_end) {
  FOR_DTYPE(p->a->wcsr->dtype, wcsr_multiply, p, window_begin, window_end, col_begin, col_end);
}
