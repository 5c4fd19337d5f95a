/* Dense row-major matrices, rank-local. Local. */
#ifndef ASPARSE_DENSE_H
#define ASPARSE_DENSE_H

#include "base/dtype.h"
#include "base/memory.h"

/* Allocates m × n with ld = n; contents undefined. */
ASPARSE_API asparse_status asparse_dense_create(asparse_dense **a, int64_t m, int64_t n, asparse_dtype dtype);
ASPARSE_API void asparse_dense_destroy(asparse_dense **a);

/* Element (i, j) of the deterministic random matrix that stands in for B: uniform in [-1, 1), a pure
 * function of seed and global position, so that it does not depend on the number of ranks. */
double asparse_random_element(uint64_t seed, int64_t row, int64_t col);

/* values(i, :) = random(global row, :), rounded to the dtype. global_row[m], or NULL: row_begin + i. */
ASPARSE_API void asparse_dense_fill_random(asparse_dense *a, uint64_t seed, int64_t row_begin,
                                           const int64_t *global_row);

/* A 64-bit mix of x (the finaliser of SplitMix64; Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t asparse_mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

#endif
