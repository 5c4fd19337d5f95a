/* Random numbers by position: their distributions against exact ones. */
#include <math.h>

#include "generate/draw.h"
#include "slabs.h"

static double log_choose(double n, double k) { return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1); }

/* Every number of successes as often as its chance says, with few trials (one by one) and many (inversion). */
static void binomial_chances(void **unused) {
  (void)unused;
  enum { DRAWS = 200000, MOST = 400 };
  static const struct {
    int64_t n;
    double p;
  } cases[] = {{1, 0.3}, {30, 0.76}, {64, 0.01}, {65, 0.01}, {65, 0.99}, {100, 0.5}, {300, 0.76}, {400, 0.001}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t seen[MOST + 1] = {0}, n = cases[i].n;
    double p = cases[i].p;
    for (int64_t d = 0; d < DRAWS; d++) {
      int64_t k = draw_binomial(draw_key(i, DRAW_SPLIT, 5, d), n, p);
      assert_in_range(k, 0, n);
      seen[k]++;
    }
    for (int64_t k = 0; k <= n; k++) {
      double expected = DRAWS * exp(log_choose((double)n, (double)k) + k * log(p) + (n - k) * log1p(-p));
      assert_true(fabs((double)seen[k] - expected) <= 5 * sqrt(expected) + 3);
    }
  }
}

/* Mean and variance where there are too many trials to look at each number. */
static void binomial_of_many_trials(void **unused) {
  (void)unused;
  enum { DRAWS = 4000 };
  static const double chances[] = {0.5, 0.76, 1e-6};
  for (int bits = 20; bits <= 32; bits += 4) {
    for (int c = 0; c < 3; c++) {
      double n = ldexp(1, bits), mean = n * chances[c], variance = mean * (1 - chances[c]), sum = 0, squares = 0;
      for (int64_t d = 0; d < DRAWS; d++) {
        double off = (double)draw_binomial(draw_key(1, DRAW_SPLIT, bits, d), (int64_t)n, chances[c]) - mean;
        sum += off;
        squares += off * off;
      }
      assert_true(fabs(sum / DRAWS) < 5 * sqrt(variance / DRAWS));
      assert_true(fabs(squares / DRAWS / variance - 1) < 5 * sqrt((2 + 1 / variance) / DRAWS));
    }
  }
}

static void binomial_limits(void **unused) {
  (void)unused;
  const int64_t many = (int64_t)1 << 48;
  for (int64_t d = 0; d < 20; d++) {
    uint64_t key = draw_key(9, DRAW_SPLIT, d, d);
    assert_int_equal(draw_binomial(key, 0, 0.5), 0);
    assert_int_equal(draw_binomial(key, many, 0), 0);
    assert_int_equal(draw_binomial(key, many, 1e-300), 0);
    assert_int_equal(draw_binomial(key, many, 1), many);
    assert_true(draw_binomial(key, 1000, 1 - 0x1p-53) == 1000);
    double off = (double)(draw_binomial(key, many, 0.25) - many / 4);
    assert_true(off != 0 && fabs(off) < 6 * sqrt(0.1875) * 0x1p24);
  }
}

/* Sorted, unique, in range, and each column as often as any other: on both sides of the change of method. */
static void columns_are_even(void **unused) {
  (void)unused;
  enum { MOST = 400, DRAWS = 20000 };
  static const int64_t cases[][2] = {{0, 5}, {1, 1}, {3, 3}, {1, 400}, {24, 400}, {25, 400}, {26, 400}, {300, 400}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t count = cases[i][0], bound = cases[i][1], cols[MOST], seen[MOST] = {0};
    for (int64_t d = 0; d < DRAWS; d++) {
      draw_columns(draw_key(i, DRAW_COLUMNS, d, 0), count, bound, cols);
      for (int64_t e = 0; e < count; e++) {
        assert_true(cols[e] >= 0 && cols[e] < bound && (e == 0 || cols[e - 1] < cols[e]));
        seen[cols[e]]++;
      }
    }
    double chance = (double)count / (double)bound, expected = DRAWS * chance;
    for (int64_t j = 0; j < bound; j++)
      assert_true(fabs((double)seen[j] - expected) <= 5 * sqrt(expected * (1 - chance)));
  }
}

/* Two columns of a row are independent of each other: each pair as often as any other. */
static void pairs_are_even(void **unused) {
  (void)unused;
  enum { BOUND = 48, DRAWS = 100000 };
  int64_t seen[BOUND][BOUND] = {{0}}, cols[4];
  for (int count = 2; count <= 4; count += 2) { /* 48 / 16 = 3: both methods */
    memset(seen, 0, sizeof seen);
    for (int64_t d = 0; d < DRAWS; d++) {
      draw_columns(draw_key(3, DRAW_COLUMNS, d, count), count, BOUND, cols);
      seen[cols[0]][cols[1]]++;
    }
    /* The two least of a random set: (a, b) leave count - 2 among the columns after b. */
    for (int a = 0; a < BOUND; a++) {
      for (int b = a + 1; b < BOUND; b++) {
        double after = count == 2 ? 1 : (BOUND - 1 - b) * (BOUND - 2 - b) / 2.0;
        double expected = DRAWS * after / exp(log_choose(BOUND, count));
        assert_true(fabs((double)seen[a][b] - expected) <= 5.5 * sqrt(expected) + 3);
      }
    }
  }
}

static void sorting(void **unused) {
  (void)unused;
  enum { MOST = 300 };
  uint64_t state = 4;
  for (int trial = 0; trial < 500; trial++) {
    int64_t cols[MOST], n = test_random(&state, MOST), bound = 1 + test_random(&state, 2 * MOST);
    bool there[2 * MOST + 1] = {false};
    for (int64_t i = 0; i < n; i++) there[cols[i] = test_random(&state, bound)] = true;
    int64_t kept = draw_sort_unique(cols, n), e = 0;
    for (int64_t j = 0; j < bound; j++) {
      if (!there[j]) continue;
      assert_true(e < kept && cols[e] == j);
      e++;
    }
    assert_int_equal(e, kept);
  }
}

static void spreading(void **unused) {
  (void)unused;
  static const double means[] = {0, 0.001, 0.5, 2.5, 7, (1 - 0.9) * 10, 5.6, 1e6 + 1.0 / 3};
  for (size_t i = 0; i < sizeof means / sizeof means[0]; i++) {
    int64_t sum = 0;
    for (int64_t n = 0; n < 5000; n++) {
      int64_t share = draw_spread(means[i], n);
      assert_true(fabs((double)share - means[i]) < 1);
      sum += share;
      assert_true(fabs((double)sum - means[i] * (double)(n + 1)) < 1 + 1e-4);
    }
  }
  assert_int_equal(draw_spread((1 - 0.9) * 10, 0), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(binomial_chances), cmocka_unit_test(binomial_of_many_trials), cmocka_unit_test(binomial_limits),
      cmocka_unit_test(columns_are_even), cmocka_unit_test(pairs_are_even),          cmocka_unit_test(sorting),
      cmocka_unit_test(spreading),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
