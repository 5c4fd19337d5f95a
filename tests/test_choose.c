/* The cost model's choices and the measured rates. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "kernels/kernels.h"

static const asparse_host_rates rates = {1, 2e10, {4e10, 8e10, 5e10}};

/* 1 M entries; `shared` rows of eight, sixteen, … use a column; blocks hold `fill` of their elements. */
static asparse_profile profile(asparse_dtype dtype, int64_t n, double shared, double fill) {
  asparse_profile p = {.m = 20000, .k = 20000, .n = n, .nnz = 1000000, .dtype = dtype};
  for (int i = 0; i < 4; i++) p.windows[i].columns = (int64_t)((double)p.nnz / fmin(8 << i, shared * (1 << i)));
  for (int i = 0; i < 3; i++) p.blocks[i] = (int64_t)ceil((double)p.nnz / (fill * (16 << i) * (16 << i)));
  return p;
}

static asparse_kernel_config choose(const asparse_profile *p) {
  return asparse_choose(p, &rates, ASPARSE_FORMAT_AUTO, 0, NULL, NULL);
}

static void test_scattered_matrix_takes_csr(void **state) {
  (void)state;
  for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) {
    for (int64_t n = 1; n <= 1024; n *= 4) {
      const asparse_profile p = profile((asparse_dtype)dtype, n, 1.1, 0.01);
      assert_int_equal(choose(&p).format, ASPARSE_FORMAT_CSR);
      assert_int_equal(choose(&p).unit, 1);
    }
  }
}

static void test_full_blocks_take_bcsr(void **state) {
  (void)state;
  for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) {
    const asparse_profile p = profile((asparse_dtype)dtype, 64, 8, 1);
    assert_int_equal(choose(&p).format, ASPARSE_FORMAT_BCSR);
  }
}

static void test_shared_columns_take_low_windows(void **state) {
  (void)state;
  const asparse_profile p = profile(ASPARSE_FP32, 16, 6, 0.2);
  assert_int_equal(choose(&p).format, ASPARSE_FORMAT_WCSR);
  assert_int_equal(choose(&p).unit, 8);
}

/* A halo part: what it adds to few rows of C does not cost all of C. */
static void test_few_rows_are_added_to(void **state) {
  (void)state;
  for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) {
    asparse_profile p = profile((asparse_dtype)dtype, 64, 1.1, 0.01);
    p.nnz = p.used_rows = 100;
    p.c_dtype = asparse_dtype_result(p.dtype);
    for (int i = 0; i < 4; i++) p.windows[i] = (asparse_window_counts){p.nnz, 16 * p.nnz, 1, p.nnz};
    for (int i = 0; i < 3; i++) p.blocks[i] = p.nnz;
    const double overwritten = choose(&p).predicted_seconds;
    const double overwritten_there =
        asparse_choose_device(&p, ASPARSE_FORMAT_AUTO, 0, NULL, NULL, NULL).predicted_seconds;
    p.accumulate = true;
    assert_true(choose(&p).predicted_seconds < overwritten / 10);
    assert_int_equal(choose(&p).format, ASPARSE_FORMAT_CSR); /* windows would touch eight rows for one */
    assert_true(asparse_choose_device(&p, ASPARSE_FORMAT_AUTO, 0, NULL, NULL, NULL).predicted_seconds <
                overwritten_there);
    p.used_rows = p.m;
    for (int i = 0; i < 4; i++) p.windows[i].used = p.m;
    assert_true(choose(&p).predicted_seconds > overwritten);
  }
}

static void test_wanted_format_and_unit(void **state) {
  (void)state;
  static const int32_t heights[] = {8, 16, 32, 64}, sizes[] = {16, 32, 64};
  const asparse_profile p = profile(ASPARSE_FP64, 64, 1.1, 0.01);
  for (int i = 0; i < 4; i++) {
    asparse_kernel_config c = asparse_choose(&p, &rates, ASPARSE_FORMAT_WCSR, heights[i], NULL, NULL);
    assert_int_equal(c.format, ASPARSE_FORMAT_WCSR);
    assert_int_equal(c.unit, heights[i]);
  }
  for (int i = 0; i < 3; i++) {
    asparse_kernel_config c = asparse_choose(&p, &rates, ASPARSE_FORMAT_BCSR, sizes[i], NULL, NULL);
    assert_int_equal(c.format, ASPARSE_FORMAT_BCSR);
    assert_int_equal(c.unit, sizes[i]);
  }
  assert_int_equal(asparse_choose(&p, &rates, ASPARSE_FORMAT_WCSR, 0, NULL, NULL).unit, 8);
  assert_true(isinf(asparse_choose(&p, &rates, ASPARSE_FORMAT_WCSR, 48, NULL, NULL).predicted_seconds));
}

static void test_candidates(void **state) {
  (void)state;
  const asparse_profile p = profile(ASPARSE_FP32, 100, 3, 0.1);
  asparse_kernel_config candidates[8];
  int count = 0;
  const asparse_kernel_config best = asparse_choose(&p, &rates, ASPARSE_FORMAT_AUTO, 0, candidates, &count);
  assert_int_equal(count, 8);
  for (int i = 0; i < count; i++) {
    assert_true(isfinite(candidates[i].predicted_seconds));
    assert_true(candidates[i].predicted_seconds >= best.predicted_seconds);
  }
}

/* More columns, or a slower machine, never take less time. */
static void test_predictions_are_monotone(void **state) {
  (void)state;
  const asparse_host_rates slow = {1, 1e10, {2e10, 4e10, 2.5e10}};
  asparse_kernel_config before[8] = {{0}}, now[8];
  for (int64_t n = 1; n < 600; n++) {
    const asparse_profile p = profile(ASPARSE_FP64, n, 3, 0.1);
    asparse_choose(&p, &slow, ASPARSE_FORMAT_AUTO, 0, now, NULL);
    for (int i = 0; i < 8; i++) assert_true(now[i].predicted_seconds >= before[i].predicted_seconds);
    memcpy(before, now, sizeof before);
    asparse_choose(&p, &rates, ASPARSE_FORMAT_AUTO, 0, now, NULL);
    for (int i = 0; i < 8; i++) assert_true(now[i].predicted_seconds <= before[i].predicted_seconds);
  }
}

static void test_empty_matrix(void **state) {
  (void)state;
  const asparse_profile p = {.n = 4};
  assert_int_equal(choose(&p).format, ASPARSE_FORMAT_CSR);
  assert_true(choose(&p).predicted_seconds == 0);
}

/* Comes first among those that measure: once measured, the rates need no memory. */
static void test_rates_without_memory(void **state) {
  (void)state;
  asparse_host_rates r = {0};
  const int64_t blocks = asparse_memory_live_blocks();
  asparse_status status = ASPARSE_ERR_MEMORY;
  int64_t failures = 0;
  for (int64_t n = 1; n < 100 && status != ASPARSE_OK; n++) {
    asparse_memory_fail_at(n);
    status = asparse_host_rates_get(&r);
    assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
    failures += status == ASPARSE_ERR_MEMORY;
    assert_int_equal(asparse_memory_live_blocks(), blocks);
    asparse_error_clear();
  }
  asparse_memory_fail_at(0);
  assert_int_equal(status, ASPARSE_OK);
  assert_true(failures > 2);
}

static void test_rates(void **state) {
  (void)state;
  asparse_host_rates first, second;
  assert_int_equal(asparse_host_rates_get(&first), ASPARSE_OK);
  assert_true(first.threads >= 1);
  assert_true(first.bytes_per_second > 1e7 && first.bytes_per_second < 1e15);
  for (int i = 0; i < 3; i++) assert_true(first.flops_per_second[i] > 1e6 && first.flops_per_second[i] < 1e16);
  assert_int_equal(asparse_host_rates_get(&second), ASPARSE_OK);
  assert_memory_equal(&first, &second, sizeof first);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scattered_matrix_takes_csr),
      cmocka_unit_test(test_full_blocks_take_bcsr),
      cmocka_unit_test(test_shared_columns_take_low_windows),
      cmocka_unit_test(test_few_rows_are_added_to),
      cmocka_unit_test(test_wanted_format_and_unit),
      cmocka_unit_test(test_candidates),
      cmocka_unit_test(test_predictions_are_monotone),
      cmocka_unit_test(test_empty_matrix),
      cmocka_unit_test(test_rates_without_memory),
      cmocka_unit_test(test_rates),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
