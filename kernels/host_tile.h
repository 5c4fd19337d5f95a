/* The register tile of WCSR and BCSR: TILE_ROWS rows of C by a strip of columns. A row of B is loaded
 * once and multiplied into every row of the tile. */
#ifndef ASPARSE_HOST_TILE_H
#define ASPARSE_HOST_TILE_H

#include "kernels/host_strip.h"

typedef vec tile[TILE_ROWS][TILE_VECTORS];

INLINE void tile_clear(tile sum, const int vectors) {
  UNROLL for (int r = 0; r < TILE_ROWS; r++) { UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = vec_zero(); }
}

/* Line j of the next tile's `bytes` of A, which start `distance` bytes on: reading a tile by columns is
 * a pattern that the hardware does not foresee (at n = 16, fp64, up to 1.6 times as fast as without for WCSR
 * and 1.9 for BCSR; 0.9–1.2 at larger n). The line
 * may lie beyond the last tile, which is harmless. */
INLINE void tile_prefetch(const char *a, int64_t distance, int64_t j, int64_t bytes) {
  if (j * 64 < bytes) __builtin_prefetch((const void *)((uintptr_t)a + (uintptr_t)(distance + j * 64)));
}

/* sum(r, :) += a(r)·b(:) for the rows of the tile; a(r) stands a_stride bytes after a(r-1). */
INLINE void tile_update(asparse_dtype dtype, const int vectors, const bool masked, tile sum, const char *a,
                        int64_t a_stride, const char *b, int64_t tail) {
  vec b_row[TILE_VECTORS];
  UNROLL for (int v = 0; v < vectors; v++) b_row[v] = strip_load(dtype, masked && v == vectors - 1, b, v, tail);
  UNROLL for (int r = 0; r < TILE_ROWS; r++) {
    vec x = vec_broadcast(dtype, a + r * a_stride);
    UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = vec_fma(dtype, x, b_row[v], sum[r][v]);
  }
}

/* sum(:) += a·b(:) for one row, the same operations as tile_update's. */
INLINE void tile_update_row(asparse_dtype dtype, const int vectors, const bool masked, vec *sum, const char *a,
                            const char *b, int64_t tail) {
  vec x = vec_broadcast(dtype, a);
  UNROLL for (int v = 0; v < vectors; v++) sum[v] =
      vec_fma(dtype, x, strip_load(dtype, masked && v == vectors - 1, b, v, tail), sum[v]);
}

/* x·0 is NaN exactly when x is Inf or NaN. Padding of A can spoil a sum only as 0·Inf or 0·NaN, which
 * shows here. */
INLINE bool tile_is_finite(asparse_dtype dtype, const int vectors, tile sum) {
  vec probe = vec_zero();
  UNROLL for (int r = 0; r < TILE_ROWS; r++) {
    UNROLL for (int v = 0; v < vectors; v++) probe = vec_fma(dtype, sum[r][v], vec_zero(), probe);
  }
  return !vec_any_nan(dtype, probe);
}

/* Rows [row, row + TILE_ROWS) of C that exist. */
INLINE void tile_store(asparse_dtype dtype, const int vectors, const bool masked, const asparse_product *p, int64_t row,
                       int64_t rows_left, const strip *s, tile sum) {
  UNROLL for (int r = 0; r < TILE_ROWS; r++) {
    if (r < rows_left) strip_store(dtype, vectors, masked, p, row + r, s, sum[r]);
  }
}

/* strip_kernel(dtype, vectors, masked, p, unit, s) with vectors and masked as constants. */
#define TILE_STRIP(strip_kernel, dtype, p, unit, s)                                                                    \
  do {                                                                                                                 \
    const bool whole_ = (s)->tail == vec_lanes(dtype);                                                                 \
    if (TILE_VECTORS > 2 && (s)->vectors == TILE_VECTORS) {                                                            \
      if (whole_) strip_kernel(dtype, TILE_VECTORS, false, p, unit, s);                                                \
      else strip_kernel(dtype, TILE_VECTORS, true, p, unit, s);                                                        \
    } else if ((s)->vectors == 2) {                                                                                    \
      if (whole_) strip_kernel(dtype, 2, false, p, unit, s);                                                           \
      else strip_kernel(dtype, 2, true, p, unit, s);                                                                   \
    } else {                                                                                                           \
      if (whole_) strip_kernel(dtype, 1, false, p, unit, s);                                                           \
      else strip_kernel(dtype, 1, true, p, unit, s);                                                                   \
    }                                                                                                                  \
  } while (0)

#endif
