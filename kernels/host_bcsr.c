/* BCSR: dense blocks, TILE_ROWS rows of a block at a time. */
#include "kernels/host_tile.h"

/* Columns of block `block` that exist: the last block column may reach past k. */
INLINE int bcsr_width(const asparse_bcsr *a, int64_t block) {
  const int64_t left = a->k - (int64_t)a->block_col_idx[block] * a->block_size;
  return left < a->block_size ? (int)left : a->block_size;
}

/* Rows [first, first + TILE_ROWS) of one block row, one strip of columns. */
INLINE void bcsr_tile_sum(asparse_dtype dtype, const int vectors, const bool masked, const asparse_product *p,
                          int64_t block_row, int first, const char *b, int64_t tail, tile sum) {
  const asparse_bcsr *a = p->a->bcsr;
  const int64_t r = a->block_size, size = (int64_t)asparse_dtype_size(dtype);
  tile_clear(sum, vectors);
  for (int64_t block = a->block_row_ptr[block_row]; block < a->block_row_ptr[block_row + 1]; block++) {
    const char *values = (const char *)a->blocks + (block * r + first) * r * size;
    const char *b_row = b + a->block_col_idx[block] * r * p->ldb;
    const int width = bcsr_width(a, block);
    for (int j = 0; j < width; j++, b_row += p->ldb) {
      tile_prefetch(values, r * r * size, j, TILE_ROWS * r * size);
      tile_update(dtype, vectors, masked, sum, values + j * size, r * size, b_row, tail);
    }
  }
}

/* The same from stored entries only, for sums that padding may have spoiled. */
static __attribute__((noinline)) void bcsr_tile_exact(asparse_dtype dtype, int vectors, bool masked,
                                                      const asparse_product *p, int64_t block_row, int first,
                                                      const char *b, int64_t tail, tile sum) {
  const asparse_bcsr *a = p->a->bcsr;
  const int64_t r = a->block_size, size = (int64_t)asparse_dtype_size(dtype);
  tile_clear(sum, vectors);
  for (int64_t block = a->block_row_ptr[block_row]; block < a->block_row_ptr[block_row + 1]; block++) {
    for (int i = 0; i < TILE_ROWS; i++) {
      const int64_t block_line = block * r + first + i;
      for (uint64_t left = a->entry_mask[block_line]; left != 0; left &= left - 1) {
        const int64_t j = __builtin_ctzll(left);
        tile_update_row(dtype, vectors, masked, sum[i], (const char *)a->blocks + (block_line * r + j) * size,
                        b + (a->block_col_idx[block] * r + j) * p->ldb, tail);
      }
    }
  }
}

INLINE void bcsr_strip(asparse_dtype dtype, const int vectors, const bool masked, const asparse_product *p,
                       int64_t block_row, const strip *s) {
  const asparse_bcsr *a = p->a->bcsr;
  const char *b = p->b + s->col_begin * (int64_t)asparse_dtype_size(dtype);
  for (int first = 0; first < a->block_size; first += TILE_ROWS) {
    const int64_t row = block_row * a->block_size + first;
    if (row >= a->m) break;
    tile sum;
    bcsr_tile_sum(dtype, vectors, masked, p, block_row, first, b, s->tail, sum);
    if (tile_is_finite(dtype, vectors, sum)) {
      tile_store(dtype, vectors, masked, p, row, a->m - row, s, sum);
    } else {
      tile exact;
      bcsr_tile_exact(dtype, vectors, masked, p, block_row, first, b, s->tail, exact);
      tile_store(dtype, vectors, masked, p, row, a->m - row, s, exact);
    }
  }
}

INLINE void bcsr_multiply(asparse_dtype dtype, const asparse_product *p, int64_t begin, int64_t end, int64_t col_begin,
                          int64_t col_end) {
  const int64_t *block_ptr = p->a->bcsr->block_row_ptr;
  for (int64_t block_row = begin; block_row < end; block_row++) {
    if (p->accumulate && block_ptr[block_row] == block_ptr[block_row + 1]) continue; /* most of a halo part */
    for (strip s = strip_first(dtype, TILE_VECTORS, col_begin, col_end); s.vectors > 0; s = strip_next(s))
      TILE_STRIP(bcsr_strip, dtype, p, block_row, &s);
  }
}

void ISA_NAME(asparse_bcsr_multiply)(const asparse_product *p, int64_t begin, int64_t end, int64_t col_begin,
                                     int64_t col_end) {
  FOR_DTYPE(p->a->bcsr->dtype, bcsr_multiply, p, begin, end, col_begin, col_end);
}
