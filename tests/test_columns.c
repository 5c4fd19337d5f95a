/* Column sets, with bits and sorted. */
#include "plan/columns.h"
#include "slabs.h"

static void positions(void **unused) {
  (void)unused;
  uint64_t state = 1;
  static const int64_t ranges[] = {1, 63, 64, 65, 1000, (int64_t)1 << 40};
  for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
    for (int64_t count = 0; count < 300; count = 3 * count + 1) {
      int64_t col_idx[300], k = ranges[r], skip_begin = k / 4, skip_end = k / 2;
      for (int64_t e = 0; e < count; e++) col_idx[e] = test_random(&state, k);
      asparse_columns set;
      assert_int_equal(asparse_columns_create(&set, k, col_idx, count, skip_begin, skip_end), ASPARSE_OK);
      for (int64_t i = 1; i < set.n; i++) assert_true(set.sorted[i - 1] < set.sorted[i]);
      for (int64_t e = 0; e < count; e++) {
        if (col_idx[e] >= skip_begin && col_idx[e] < skip_end) continue;
        int64_t at = asparse_columns_position(&set, col_idx[e]);
        assert_in_range(at, 0, set.n - 1);
        assert_int_equal(set.sorted[at], col_idx[e]);
      }
      for (int64_t i = 0; i < set.n; i++) assert_false(set.sorted[i] >= skip_begin && set.sorted[i] < skip_end);
      asparse_columns_destroy(&set);
    }
  }
}

static void allocation_failures(void **unused) {
  (void)unused;
  static const int64_t col_idx[] = {5, 3, 5};
  int64_t live = asparse_memory_live_blocks();
  for (int64_t k = 10; k < (int64_t)1 << 40; k *= 1 << 20) {
    for (int64_t n = 1; n <= 4; n++) {
      asparse_columns set;
      asparse_memory_fail_at(n);
      asparse_status status = asparse_columns_create(&set, k, col_idx, 3, 0, 0);
      asparse_memory_fail_at(0);
      if (status == ASPARSE_OK) asparse_columns_destroy(&set);
      else assert_int_equal(status, ASPARSE_ERR_MEMORY);
      assert_int_equal(asparse_memory_live_blocks(), live);
      asparse_error_clear();
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(positions), cmocka_unit_test(allocation_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
