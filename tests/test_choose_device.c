/* The cost model of a GPU on matrices whose best kernel is known from measurements. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/kernels.h"

/* m × m with per_row entries; windows of h rows have h·per_row / shared(h) distinct columns, blocks one in four filled.
 */
static asparse_profile profile(int64_t m, int64_t per_row, double shared, asparse_dtype dtype, int64_t n) {
  asparse_profile p = {.m = m, .k = m, .n = n, .nnz = m * per_row, .dtype = dtype, .longest_row = per_row};
  p.c_dtype = asparse_dtype_result(dtype);
  for (int i = 0; i < 4; i++) {
    const double columns = fmax((double)per_row, (8 << i) * (double)per_row / fmin(8 << i, shared * (1 + 0.1 * i)));
    p.windows[i].columns = (int64_t)columns * (m / (8 << i));
    p.windows[i].padded = ((int64_t)columns + 15) / 16 * 16 * (m / (8 << i));
    p.windows[i].widest = (int64_t)columns;
  }
  for (int i = 0; i < 3; i++) p.blocks[i] = p.nnz / 4;
  return p;
}

static asparse_kernel_config choose(const asparse_profile *p) {
  return asparse_choose_device(p, ASPARSE_FORMAT_AUTO, 0, NULL, NULL, NULL);
}

static void shared_columns_take_windows(void **state) {
  (void)state;
  for (int64_t n = 64; n <= 1024; n *= 4) {
    const asparse_profile p = profile(40000, 80, 8, ASPARSE_BF16, n);
    assert_int_equal(choose(&p).format, ASPARSE_FORMAT_WCSR);
    assert_false(choose(&p).clustered);
  }
}

static void scattered_rows_take_csr(void **state) {
  (void)state;
  const asparse_profile p = profile(100000, 16, 1.01, ASPARSE_BF16, 1024);
  assert_int_equal(choose(&p).format, ASPARSE_FORMAT_CSR);
}

/* Fewer gathered columns after rows were brought together. */
static void clustering_is_used_where_it_helps(void **state) {
  (void)state;
  asparse_profile p = profile(40000, 30, 1.1, ASPARSE_BF16, 256);
  const asparse_profile better = profile(40000, 30, 3, ASPARSE_BF16, 256);
  memcpy(p.clustered, better.windows, sizeof p.clustered);
  p.has_clustered = true;
  assert_true(choose(&p).clustered);
  assert_string_equal(choose(&p).kernel, "wcsr-clustered");
  p = profile(40000, 30, 6, ASPARSE_BF16, 256);
  memcpy(p.clustered, better.windows, sizeof p.clustered);
  p.has_clustered = true;
  assert_false(choose(&p).clustered);
}

/* A kernel that wants rows brought together is there once that was tried, even if nothing came of it. */
static void clustering_of_nothing_is_clustering(void **state) {
  (void)state;
  asparse_profile p = {.m = 10, .k = 10, .n = 8, .dtype = ASPARSE_BF16, .c_dtype = ASPARSE_FP32};
  assert_true(isinf(asparse_choose_device(&p, ASPARSE_FORMAT_AUTO, 0, "wcsr-clustered", NULL, NULL).predicted_seconds));
  p.has_clustered = true;
  assert_true(asparse_choose_device(&p, ASPARSE_FORMAT_AUTO, 0, "wcsr-clustered", NULL, NULL).clustered);
  assert_true(asparse_device_kernel_clusters("wcsr-clustered") && !asparse_device_kernel_clusters("wcsr-gather"));
  assert_false(asparse_device_kernel_clusters("csr"));
}

static void full_blocks_take_bcsr(void **state) {
  (void)state;
  asparse_profile p = profile(19200, 6 * 64, 64, ASPARSE_BF16, 1024);
  p.blocks[2] = p.nnz / 4096;
  assert_string_equal(choose(&p).kernel, "bcsr");
}

static void other_precisions_have_csr_alone(void **state) {
  (void)state;
  asparse_kernel_config candidates[ASPARSE_DEVICE_CANDIDATES];
  for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_FP32; dtype++) {
    const asparse_profile p = profile(40000, 80, 8, (asparse_dtype)dtype, 256);
    int n = 0;
    assert_string_equal(asparse_choose_device(&p, ASPARSE_FORMAT_AUTO, 0, NULL, candidates, &n).kernel, "csr");
    assert_int_equal(n, 1);
    assert_true(isinf(asparse_choose_device(&p, ASPARSE_FORMAT_WCSR, 0, NULL, NULL, NULL).predicted_seconds));
  }
}

static void wishes_are_kept(void **state) {
  (void)state;
  const asparse_profile p = profile(40000, 80, 8, ASPARSE_BF16, 256);
  asparse_kernel_config candidates[ASPARSE_DEVICE_CANDIDATES];
  int n = 0;
  for (int32_t unit = 8; unit <= 64; unit *= 2) {
    const asparse_kernel_config c = asparse_choose_device(&p, ASPARSE_FORMAT_WCSR, unit, NULL, candidates, &n);
    assert_true(c.format == ASPARSE_FORMAT_WCSR && c.unit == unit && isfinite(c.predicted_seconds));
  }
  assert_true(n > 5 && n <= ASPARSE_DEVICE_CANDIDATES);
  assert_string_equal(asparse_choose_device(&p, ASPARSE_FORMAT_AUTO, 0, "bcsr", NULL, NULL).kernel, "bcsr");
  assert_true(isinf(asparse_choose_device(&p, ASPARSE_FORMAT_BCSR, 16, NULL, NULL, NULL).predicted_seconds));
  assert_true(isinf(asparse_choose_device(&p, ASPARSE_FORMAT_AUTO, 0, "none", NULL, NULL).predicted_seconds));
}

/* More columns, more time; never less than a launch; the least time of design: gathered bytes over 7.6 TB/s. */
static void times_are_sensible(void **state) {
  (void)state;
  double before = 0, least_before = 0;
  for (int64_t n = 8; n <= 4096; n *= 2) {
    asparse_profile p = profile(200000, 80, 8, ASPARSE_BF16, n);
    const double seconds = choose(&p).predicted_seconds, least = asparse_device_least_seconds(&p);
    assert_true(seconds > before && seconds > 1e-6 && least >= least_before && least >= 2e-6);
    before = seconds;
    least_before = least;
  }
  asparse_profile p = profile(200000, 80, 1, ASPARSE_BF16, 1024);
  for (int i = 0; i < 4; i++) p.windows[i].columns = p.nnz;
  const double gathered = (double)p.nnz * 1024 * 2 / 7.6e12;
  assert_true(fabs(asparse_device_least_seconds(&p) - gathered) < 1e-3 * gathered);
  const asparse_profile empty = {.m = 10, .k = 10, .n = 8, .dtype = ASPARSE_BF16, .c_dtype = ASPARSE_FP32};
  assert_true(isfinite(choose(&empty).predicted_seconds) && asparse_device_least_seconds(&empty) == 2e-6);
}

/* What was the fastest, or nearly, while others were far behind; µs on one H200. */
static const struct {
  asparse_profile p;
  const char *kernel;
} measured[] = {
    /* grid3d:90; csr 26, wcsr 8 105, bcsr 437 */
    {{.m = 729000,
      .k = 729000,
      .n = 8,
      .nnz = 5054400,
      .longest_row = 7,
      .blocks = {0, 0, 101809},
      .windows = {{3790800, 4373232, 42, 0},
                  {3701700, 4340144, 82, 0},
                  {3657150, 3975648, 162, 0},
                  {3634874, 3793392, 322, 0}}},
     "csr"},
    /* grid3d:90,points=27; wcsr 8 and 16 191 and 203, csr 276, bcsr 547 */
    {{.m = 729000,
      .k = 729000,
      .n = 64,
      .nnz = 19248832,
      .longest_row = 27,
      .blocks = {0, 0, 146667},
      .windows = {{8044288, 8620544, 90, 0},
                  {7254224, 7859168, 162, 0},
                  {6859196, 7161680, 306, 0},
                  {6661670, 6812896, 594, 0}}},
     "wcsr-gather"},
    /* fem3d:40; wcsr 16 and 8 63 and 70, 32 83, csr 104, bcsr 167 */
    {{.m = 192000,
      .k = 192000,
      .n = 32,
      .nnz = 14787288,
      .longest_row = 81,
      .blocks = {0, 0, 43542},
      .windows = {{3258216, 3487872, 162, 0},
                  {2464548, 2544960, 216, 0},
                  {2068776, 2094016, 378, 0},
                  {1870536, 1891776, 648, 0}}},
     "wcsr-gather"},
    /* uniform:500000,500000,16; csr 72, wcsr 8 144 */
    {{.m = 500000,
      .k = 500000,
      .n = 8,
      .nnz = 8000000,
      .longest_row = 16,
      .blocks = {0, 0, 7498412},
      .windows = {{7999081, 8000000, 128, 0},
                  {7998082, 8000000, 256, 0},
                  {7995975, 8000000, 512, 0},
                  {7991884, 8000000, 1024, 0}}},
     "csr"},
    /* rmat:18,32; wcsr 8 131, csr 240 */
    {{.m = 262144,
      .k = 262144,
      .n = 8,
      .nnz = 7612016,
      .longest_row = 25056,
      .blocks = {0, 0, 1723810},
      .windows = {{6671700, 6927920, 40539, 0},
                  {6234856, 6368432, 46704, 0},
                  {5739804, 5804464, 53565, 0},
                  {5192737, 5222896, 61248, 0}}},
     "wcsr-gather"},
};

static void narrow_b_takes_the_fastest(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
    asparse_profile p = measured[i].p;
    p.dtype = ASPARSE_BF16;
    p.c_dtype = ASPARSE_FP32;
    assert_string_equal(choose(&p).kernel, measured[i].kernel);
    assert_true(choose(&p).unit <= 16);
  }
}

/* Rows of B that come from memory again cost time, for blocks that gather more rows than windows more of it; where B
 * stays in the cache they do not. */
static void rereads_cost_time(void **state) {
  (void)state;
  asparse_profile p = profile(500000, 16, 1.01, ASPARSE_BF16, 256), q = p;
  asparse_kernel_config before[ASPARSE_DEVICE_CANDIDATES], after[ASPARSE_DEVICE_CANDIDATES];
  int n = 0;
  q.b_rereads = 6000000;
  const double seconds = 1.3e-13 * 6e6 * 512;
  asparse_choose_device(&p, ASPARSE_FORMAT_AUTO, 0, NULL, before, &n);
  asparse_choose_device(&q, ASPARSE_FORMAT_AUTO, 0, NULL, after, &n);
  for (int i = 0; i < n; i++) {
    const double more = after[i].predicted_seconds - before[i].predicted_seconds;
    const double gathered = (double)p.blocks[2] * 64 / (double)p.windows[3].columns;
    const double expected = after[i].format == ASPARSE_FORMAT_BCSR ? gathered * seconds : seconds;
    if (isfinite(after[i].predicted_seconds)) assert_true(fabs(more - expected) < 1e-9 * expected + 1e-12);
  }
  p.k = q.k = asparse_device_cached_rows(256, ASPARSE_BF16);
  assert_true(choose(&p).predicted_seconds == choose(&q).predicted_seconds);
}

static void narrow_rows_stay_longer(void **state) {
  (void)state;
  const int64_t rows = asparse_device_cached_rows(256, ASPARSE_BF16);
  assert_int_equal(rows, asparse_device_cached_rows(4096, ASPARSE_BF16));
  assert_int_equal(rows, asparse_device_cached_rows(64, ASPARSE_FP64));
  assert_int_equal(4 * rows, asparse_device_cached_rows(64, ASPARSE_BF16));
  assert_true(asparse_device_cached_rows(0, ASPARSE_BF16) > 0);
}

/* Rows of B that fit in shared memory: scattered entries take csr-resident, others do not have it. */
static void test_resident_takes_few_columns(void **state) {
  (void)state;
  asparse_profile p = {.m = 4096,
                       .k = 4096,
                       .n = 1024,
                       .nnz = 336000,
                       .dtype = ASPARSE_BF16,
                       .c_dtype = ASPARSE_FP32,
                       .longest_row = 120};
  for (int i = 0; i < 4; i++) {
    p.windows[i].columns = p.windows[i].padded = (int64_t)((4096 >> (3 + i)) * 4096 * (1 - pow(0.98, 8 << i)));
    p.clustered[i] = p.windows[i];
  }
  p.has_clustered = true;
  for (int i = 0; i < 3; i++) p.blocks[i] = (4096 >> (4 + i)) * (4096 >> (4 + i));
  assert_string_equal(asparse_choose_device(&p, ASPARSE_FORMAT_AUTO, 0, NULL, NULL, NULL).kernel, "csr-resident");
  p.k = 20000;
  assert_string_not_equal(asparse_choose_device(&p, ASPARSE_FORMAT_AUTO, 0, NULL, NULL, NULL).kernel, "csr-resident");
  assert_true(isinf(asparse_choose_device(&p, ASPARSE_FORMAT_AUTO, 0, "csr-resident", NULL, NULL).predicted_seconds));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shared_columns_take_windows),
                                     cmocka_unit_test(scattered_rows_take_csr),
                                     cmocka_unit_test(clustering_is_used_where_it_helps),
                                     cmocka_unit_test(clustering_of_nothing_is_clustering),
                                     cmocka_unit_test(full_blocks_take_bcsr),
                                     cmocka_unit_test(other_precisions_have_csr_alone),
                                     cmocka_unit_test(wishes_are_kept),
                                     cmocka_unit_test(times_are_sensible),
                                     cmocka_unit_test(narrow_b_takes_the_fastest),
                                     cmocka_unit_test(rereads_cost_time),
                                     cmocka_unit_test(narrow_rows_stay_longer),
                                     cmocka_unit_test(test_resident_takes_few_columns)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
