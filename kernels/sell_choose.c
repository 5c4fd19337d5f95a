/* The resident kernel's cost model:
 *
 *   seconds = launch + waves · (fill + arithmetic + C)
 *   waves       ⌈column slices · row groups / multiprocessors⌉, of CTAs
 *   fill        k rows of B, a request and 2 · columns bytes for each; a smaller one where the slice is all of B, whose
 *               rows then follow each other
 *   arithmetic  the CTA's entries × columns; at least the steps of the longest row, which a slice shares at most
 *   C           the CTA's elements of 4 bytes, in pieces of 64 bytes or more
 *
 * Fitted to 734 timings on one H200 (CUDA graphs of 8 calls; k = 512 … 14000, 1 … 10 %, n = 256 and 1024, all columns,
 * even and skewed rows): 96 % of them within 25 %. */
#include <math.h>

#include "kernels/sell.h"

enum { PIECE_BYTES = 64, WARPS = 16, LEAST_STEPS = 32, MOST_STEPS = 256, MOST_WAVES = 4 };

static const double LAUNCH = 2.6e-6;
static const double ROW = 1.0e-9, ROW_OF_ALL = 0.3e-9, BYTE_OF_B = 3.5e-12; /* of the fill */
static const double MULTIPLY_ADD = 12.5e-12, STEP = 20e-9, BYTE_OF_C = 34e-12;

static double predict(const asparse_sell_profile *a, int64_t n, int32_t multiprocessors, const asparse_sell_config *c) {
  const double columns = c->columns, groups = c->row_groups, height = 256 / columns;
  const double waves = ceil(ceil((double)n / columns) * groups / multiprocessors);
  const double fill = (double)a->k * (((double)n <= columns ? ROW_OF_ALL : ROW) + 2 * columns * BYTE_OF_B);
  const double arithmetic =
      fmax((double)a->n_stored / groups * columns * MULTIPLY_ADD, (double)a->longest_row / height * STEP);
  const double store = (double)a->m / groups * fmax(4 * columns, PIECE_BYTES) * BYTE_OF_C;
  return LAUNCH + waves * (fill + arithmetic + store);
}

asparse_sell_config asparse_sell_configure(const asparse_sell_profile *a, int64_t n, int32_t multiprocessors,
                                           int32_t columns) {
  const int64_t slices = n > 0 ? (n - 1) / columns + 1 : 1;
  asparse_sell_config best = {columns, 0, 1, INFINITY};
  for (int32_t groups = 1; groups == 1 || groups * slices <= (int64_t)MOST_WAVES * multiprocessors; groups++) {
    asparse_sell_config c = {columns, 0, groups, 0};
    c.predicted_seconds = predict(a, n, multiprocessors, &c);
    if (c.predicted_seconds < best.predicted_seconds) best = c;
  }
  /* Rows are cut so that some 16 warps of a CTA have a slice: 32 or 64 take 3 or 11 % longer. */
  const int64_t steps = a->n_stored / ((int64_t)(256 / columns) * WARPS * best.row_groups);
  best.most_steps = steps < LEAST_STEPS ? LEAST_STEPS : steps > MOST_STEPS ? MOST_STEPS : (int32_t)steps;
  return best;
}

asparse_sell_config asparse_sell_choose(const asparse_sell_profile *a, int64_t n, int32_t multiprocessors) {
  asparse_sell_config best = {0, 0, 0, INFINITY};
  for (int32_t columns = 8; columns <= 64; columns *= 2) {
    if (a->k > asparse_sell_most_k(columns)) break;
    const asparse_sell_config c = asparse_sell_configure(a, n, multiprocessors, columns);
    if (c.predicted_seconds < best.predicted_seconds) best = c;
  }
  return best;
}
