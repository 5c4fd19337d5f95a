/* Random numbers by position: each a hash of seed, stream and indices, none the successor of another. */
#ifndef ASPARSE_GENERATE_DRAW_H
#define ASPARSE_GENERATE_DRAW_H

#include "base/dense.h"

/* What numbers are drawn for, so that equal indices do not meet. */
typedef enum draw_stream { DRAW_COLUMNS = 1, DRAW_BAND, DRAW_SPLIT, DRAW_EDGE, DRAW_VALUE } draw_stream;

/* A key for draw_bits: 64 bits of (seed, stream, i, j). */
static inline uint64_t draw_key(uint64_t seed, draw_stream stream, int64_t i, int64_t j) {
  uint64_t key = asparse_mix64(seed ^ asparse_mix64((uint64_t)stream));
  return asparse_mix64(asparse_mix64(key ^ (uint64_t)i) ^ (uint64_t)j);
}

/* The n-th 64 bits of a key. */
static inline uint64_t draw_bits(uint64_t key, int64_t n) { return asparse_mix64(key ^ (uint64_t)n); }

/* Uniform in [0, 1). */
static inline double draw_unit(uint64_t key, int64_t n) { return (double)(draw_bits(key, n) >> 11) * 0x1p-53; }

/* Uniform in [-1, 1). */
static inline double draw_signed(uint64_t key) { return 2 * draw_unit(key, 0) - 1; }

/* Successes among n trials of chance p. Exact for few trials; inversion from the mode for many, O(√(n·p·(1-p))). */
int64_t draw_binomial(uint64_t key, int64_t n, double p);

/* count of bound columns, every set equally likely, sorted. 0 ≤ count ≤ bound. */
void draw_columns(uint64_t key, int64_t count, int64_t bound, int64_t *cols);

/* Sorts cols[n] and drops what is there twice; returns how many remain. */
int64_t draw_sort_unique(int64_t *cols, int64_t n);

/* How many of index's share when `mean` items an index are spread evenly: ⌊mean⌋ or ⌈mean⌉, and ⌊mean·n⌋ over the
 * first n indices, up to rounding. */
int64_t draw_spread(double mean, int64_t index);

#endif
