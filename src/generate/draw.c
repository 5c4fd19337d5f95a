#include "generate/draw.h"

#include <math.h>
#include <stdlib.h>

/* log n!; long double, since at 2^48 an error of 2^-53 would be 1. */
static long double log_factorial(int64_t n) {
  int sign;
  return lgammal_r((long double)n + 1, &sign);
}

static double binomial_chance(int64_t n, double p, int64_t k) {
  return (double)expl(log_factorial(n) - log_factorial(k) - log_factorial(n - k) + (long double)k * logl(p) +
                      (long double)(n - k) * log1pl(-(long double)p));
}

/* Walks outwards from the mode, up and down in turn, until the chances passed exceed u. */
static int64_t invert_from_mode(double u, int64_t n, double p) {
  const double odds = p / (1 - p), negligible = 0x1p-60;
  int64_t mode = (int64_t)((double)(n + 1) * p);
  if (mode > n) mode = n;
  int64_t up = mode, down = mode;
  double up_chance = binomial_chance(n, p, mode), down_chance = up_chance;
  u -= up_chance;
  while (u >= 0 && (up_chance > negligible || down_chance > negligible)) {
    up_chance *= odds * (double)(n - up) / (double)(up + 1); /* zero once up = n */
    up++;
    if ((u -= up_chance) < 0) return up;
    down_chance *= (double)down / (odds * (double)(n - down + 1)); /* zero once down = 0 */
    down--;
    if ((u -= down_chance) < 0) return down;
  }
  return mode;
}

int64_t draw_binomial(uint64_t key, int64_t n, double p) {
  enum { FEW = 64 };
  if (p < 0x1p-100) return 0; /* would not show in 2^48 trials */
  if (p >= 1) return n;
  if (n > FEW) return invert_from_mode(draw_unit(key, 0), n, p);
  int64_t successes = 0;
  for (int64_t t = 0; t < n; t++) successes += draw_unit(key, t) < p;
  return successes;
}

static int compare_columns(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return a < b ? -1 : a > b;
}

static void sort_columns(int64_t *cols, int64_t n) {
  enum { SHORT = 24 };
  if (n > SHORT) {
    qsort(cols, (size_t)n, sizeof *cols, compare_columns);
    return;
  }
  for (int64_t i = 1; i < n; i++) {
    int64_t col = cols[i], at = i;
    for (; at > 0 && cols[at - 1] > col; at--) cols[at] = cols[at - 1];
    cols[at] = col;
  }
}

int64_t draw_sort_unique(int64_t *cols, int64_t n) {
  sort_columns(cols, n);
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++) {
    if (kept == 0 || cols[kept - 1] != cols[i]) cols[kept++] = cols[i];
  }
  return kept;
}

/* Selection sampling (Knuth, TAOCP 3.4.2, algorithm S): column j is taken with the chance wanted / left. */
static void select_columns(uint64_t key, int64_t count, int64_t bound, int64_t *cols) {
  int64_t taken = 0;
  for (int64_t j = 0; taken < count; j++) {
    if (draw_unit(key, j) * (double)(bound - j) < (double)(count - taken)) cols[taken++] = j;
  }
}

void draw_columns(uint64_t key, int64_t count, int64_t bound, int64_t *cols) {
  enum { SPARSE = 16 }; /* above one column of so many, looking at each is cheaper than sorting */
  if (count > bound / SPARSE) {
    select_columns(key, count, bound, cols);
    return;
  }
  /* The first `count` different ones of a sequence. The modulus favours no column by more than bound / 2^64. */
  int64_t have = 0, n = 0;
  while (have < count) {
    for (int64_t e = have; e < count; e++) cols[e] = (int64_t)(draw_bits(key, n++) % (uint64_t)bound);
    have = draw_sort_unique(cols, count);
  }
}

int64_t draw_spread(double mean, int64_t index) {
  const double rounding = 1e-9; /* (1 - 0.9) · 10 is 1 */
  double whole = floor(mean + rounding), part = fmax(mean - whole, 0);
  return (int64_t)whole + (int64_t)(floor((double)(index + 1) * part) - floor((double)index * part));
}
