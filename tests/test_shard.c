/* WCSR and BCSR builders against the CSR they were built from. */
#include <omp.h>

#include "partition/column_set.h"
#include "partition/partition.h"
#include "tests/slabs.h"

static const int32_t heights[] = {8, 16, 32, 64}, sizes[] = {16, 32, 64};
static const asparse_dtype dtypes[] = {ASPARSE_FP64, ASPARSE_FP32, ASPARSE_BF16};

static asparse_local_csr *random_csr(uint64_t seed, int32_t m, int32_t k, int64_t sparsity, int32_t dense_row,
                                     asparse_dtype dtype) {
  asparse_local_csr *a = NULL;
  asparse_csr *whole = test_whole(&seed, m, k, sparsity, dense_row);
  assert_int_equal(asparse_local_csr_create(&a, m, k, whole->nnz, dtype), ASPARSE_OK);
  memcpy(a->row_ptr, whole->row_ptr, ((size_t)m + 1) * sizeof *a->row_ptr);
  for (int64_t e = 0; e < whole->nnz; e++) {
    a->col_idx[e] = (int32_t)whole->col_idx[e];
    asparse_store(dtype, a->values, e, asparse_load(ASPARSE_FP64, whole->values, e));
  }
  asparse_csr_destroy(&whole);
  return a;
}

/* Expands CSR into dense values and presence, both [m × k]. */
static void expand_csr(const asparse_local_csr *a, double *values, char *present) {
  for (int32_t i = 0; i < a->m; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      values[(int64_t)i * a->k + a->col_idx[e]] = asparse_load(a->dtype, a->values, e);
      present[(int64_t)i * a->k + a->col_idx[e]] = 1;
    }
  }
}

/* Puts one element of a shard into values and present, after checking padding. */
static void expand_element(int64_t i, int64_t j, int32_t m, int32_t k, double value, bool stored, double *values,
                           char *present) {
  if (!stored) {
    assert_true(value == 0);
    return;
  }
  assert_true(i < m && j >= 0 && j < k);
  assert_false(present[i * k + j]);
  values[i * k + j] = value;
  present[i * k + j] = 1;
}

static void expand_wcsr(const asparse_wcsr *a, double *values, char *present) {
  int64_t h = a->window_height;
  for (int32_t w = 0; w < a->n_windows; w++) {
    int64_t first = a->window_row_ptr[w], width = a->window_row_ptr[w + 1] - first, previous = -1;
    assert_int_equal(first % 16, 0);
    for (int64_t c = 0; c < width; c++) {
      int32_t col = a->window_col_idx[first + c];
      uint64_t mask = a->row_mask[first + c];
      if (col >= 0) assert_true(col > previous && mask != 0);
      else assert_true(mask == 0 && col == -1);
      previous = col >= 0 ? col : INT32_MAX; /* padding only at the end */
      for (int64_t r = 0; r < h; r++) {
        double value = asparse_load(a->dtype, a->values, (first + c / 16 * 16) * h + r * 16 + c % 16);
        expand_element(w * h + r, col, a->m, a->k, value, mask >> r & 1, values, present);
      }
      if (h < 64) assert_true(mask >> h == 0);
    }
    if (width > 0) assert_true(a->window_col_idx[first + width - 16] >= 0);
  }
}

static void expand_bcsr(const asparse_bcsr *a, double *values, char *present) {
  int64_t r = a->block_size;
  for (int32_t w = 0; w < a->n_block_rows; w++) {
    for (int64_t b = a->block_row_ptr[w]; b < a->block_row_ptr[w + 1]; b++) {
      if (b > a->block_row_ptr[w]) assert_true(a->block_col_idx[b] > a->block_col_idx[b - 1]);
      uint64_t any = 0;
      for (int64_t i = 0; i < r; i++) {
        uint64_t mask = a->entry_mask[b * r + i];
        any |= mask;
        for (int64_t j = 0; j < r; j++)
          expand_element(w * r + i, a->block_col_idx[b] * r + j, a->m, a->k,
                         asparse_load(a->dtype, a->blocks, (b * r + i) * r + j), mask >> j & 1, values, present);
      }
      assert_true(any != 0);
    }
  }
}

static int64_t widest_window(const asparse_wcsr *a) {
  int64_t widest = 0;
  for (int32_t w = 0; w < a->n_windows; w++) {
    int64_t columns = 0;
    for (int64_t c = a->window_row_ptr[w]; c < a->window_row_ptr[w + 1]; c++) columns += a->window_col_idx[c] >= 0;
    if (columns > widest) widest = columns;
  }
  return widest;
}

static void check_shard(asparse_local_csr *a, asparse_format format, int32_t unit) {
  size_t elements = (size_t)a->m * (size_t)a->k + 1;
  double *wanted = calloc(elements, sizeof *wanted), *found = calloc(elements, sizeof *found);
  char *wanted_at = calloc(elements, 1), *found_at = calloc(elements, 1);
  asparse_shard *shard = NULL;
  asparse_window_counts windows = {0};
  int64_t count = -1;
  assert_int_equal(asparse_shard_build(a, format, unit, &shard), ASPARSE_OK);
  assert_int_equal(asparse_shard_nnz(shard), a->row_ptr[a->m]);
  assert_int_equal(asparse_shard_rows(shard), a->m);
  assert_int_equal(asparse_shard_columns(shard), a->k);
  expand_csr(a, wanted, wanted_at);
  if (format == ASPARSE_FORMAT_WCSR) {
    expand_wcsr(shard->wcsr, found, found_at);
    assert_int_equal(asparse_count_window_columns(a, unit, &windows), ASPARSE_OK);
    count = windows.columns;
    assert_int_equal(windows.padded, shard->wcsr->window_row_ptr[shard->wcsr->n_windows]);
    assert_int_equal(windows.widest, widest_window(shard->wcsr));
    for (int32_t w = 0; w < shard->wcsr->n_windows; w++)
      windows.used -= shard->wcsr->window_row_ptr[w] < shard->wcsr->window_row_ptr[w + 1];
    assert_int_equal(windows.used, 0);
    for (int64_t c = 0; c < shard->wcsr->window_row_ptr[shard->wcsr->n_windows]; c++)
      count -= shard->wcsr->window_col_idx[c] >= 0;
  } else {
    expand_bcsr(shard->bcsr, found, found_at);
    assert_int_equal(asparse_count_blocks(a, unit, &count), ASPARSE_OK);
    count -= shard->bcsr->block_row_ptr[shard->bcsr->n_block_rows];
  }
  assert_int_equal(count, 0);
  assert_memory_equal(wanted_at, found_at, elements);
  assert_memory_equal(wanted, found, elements * sizeof *wanted);
  asparse_shard_destroy(&shard);
  free(wanted), free(found), free(wanted_at), free(found_at);
}

static void check_all_formats(asparse_local_csr *a) {
  for (int i = 0; i < 4; i++) check_shard(a, ASPARSE_FORMAT_WCSR, heights[i]);
  for (int i = 0; i < 3; i++) check_shard(a, ASPARSE_FORMAT_BCSR, sizes[i]);
}

static void test_random_shapes(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (int i = 0; i < 60; i++) {
    int32_t m = (int32_t)test_random(&seed, 200), k = 1 + (int32_t)test_random(&seed, 300);
    int32_t dense_row = i % 5 == 0 && m > 0 ? (int32_t)test_random(&seed, m) : -1;
    asparse_local_csr *a = random_csr(seed, m, k, 1 + test_random(&seed, 40), dense_row, dtypes[i % 3]);
    check_all_formats(a);
    asparse_local_csr_destroy(&a);
  }
}

static void test_awkward_shapes(void **state) {
  (void)state;
  static const int32_t shapes[][4] = {/* m, k, sparsity, dense row */
                                      {0, 0, 1, -1},          {0, 5, 1, -1},           {5, 0, 1, -1},
                                      {1, 1, 1, -1},          {1, 1, 1000, -1},        {64, 64, 1, -1},
                                      {65, 65, 1, -1},        {130, 1, 1, -1},         {1, 5000, 1, -1},
                                      {70, 300, 1 << 30, 69}, {16, 64 * 64 + 1, 2, -1}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    asparse_local_csr *a = random_csr(7, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], ASPARSE_FP32);
    check_all_formats(a);
    asparse_local_csr_destroy(&a);
  }
}

/* Columns up to the largest int32: the set works in six levels. */
static void test_widest(void **state) {
  (void)state;
  static const int32_t columns[] = {0, 63, 64, 4095, 4096, 1 << 24, INT32_MAX - 1};
  asparse_column_set *set = NULL;
  int32_t members[7];
  assert_int_equal(asparse_column_sets_create(&set, 1, INT32_MAX), ASPARSE_OK);
  for (int round = 0; round < 2; round++) {
    for (int i = 6; i >= 0; i--) assert_true(asparse_column_set_insert(set, columns[i]));
    for (int i = 0; i < 7; i++) assert_false(asparse_column_set_insert(set, columns[i]));
    assert_int_equal(asparse_column_set_list(set, members), 7);
    assert_memory_equal(members, columns, sizeof columns);
    for (int i = 0; i < 7; i++) assert_int_equal(asparse_column_set_position(set, columns[i]), i);
    asparse_column_set_clear(set);
  }
  asparse_column_sets_destroy(&set);
}

/* An entry stored as 0 is an entry: 0 · Inf is NaN in CSR arithmetic. */
static void test_explicit_zero(void **state) {
  (void)state;
  asparse_local_csr *a = random_csr(3, 20, 20, 4, -1, ASPARSE_FP64);
  memset(a->values, 0, (size_t)a->row_ptr[a->m] * sizeof(double));
  check_all_formats(a);
  asparse_local_csr_destroy(&a);
}

static void test_threads_agree(void **state) {
  (void)state;
  asparse_local_csr *a = random_csr(5, 3000, 300, 20, 17, ASPARSE_FP32);
  asparse_wcsr *one = NULL, *many = NULL;
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  assert_int_equal(asparse_wcsr_build(a, 16, &one), ASPARSE_OK);
  omp_set_num_threads(5);
  assert_int_equal(asparse_wcsr_build(a, 16, &many), ASPARSE_OK);
  omp_set_num_threads(threads);
  size_t columns = (size_t)one->window_row_ptr[one->n_windows];
  assert_memory_equal(one->window_row_ptr, many->window_row_ptr, ((size_t)one->n_windows + 1) * 8);
  assert_memory_equal(one->window_col_idx, many->window_col_idx, columns * 4);
  assert_memory_equal(one->row_mask, many->row_mask, columns * 8);
  assert_memory_equal(one->values, many->values, columns * 16 * 4);
  asparse_wcsr_destroy(&one);
  asparse_wcsr_destroy(&many);
  asparse_local_csr_destroy(&a);
}

static void test_csr_is_borrowed(void **state) {
  (void)state;
  asparse_local_csr *a = random_csr(5, 10, 10, 2, -1, ASPARSE_FP32);
  asparse_shard *shard = NULL;
  assert_int_equal(asparse_shard_build(a, ASPARSE_FORMAT_CSR, 1, &shard), ASPARSE_OK);
  assert_ptr_equal(shard->csr, a);
  assert_int_equal(asparse_shard_bytes(shard), 0);
  asparse_shard_destroy(&shard);
  assert_int_equal(a->m, 10);
  asparse_local_csr_destroy(&a);
}

static void test_wrong_unit(void **state) {
  (void)state;
  asparse_local_csr *a = random_csr(5, 10, 10, 2, -1, ASPARSE_FP32);
  asparse_shard *shard = NULL;
  asparse_window_counts windows;
  int64_t count;
  static const int32_t wrong[] = {-8, 0, 1, 4, 7, 128};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(asparse_shard_build(a, ASPARSE_FORMAT_WCSR, wrong[i], &shard), ASPARSE_ERR_USAGE);
    assert_int_equal(asparse_shard_build(a, ASPARSE_FORMAT_BCSR, wrong[i], &shard), ASPARSE_ERR_USAGE);
    assert_int_equal(asparse_count_window_columns(a, wrong[i], &windows), ASPARSE_ERR_USAGE);
    assert_int_equal(asparse_count_blocks(a, wrong[i], &count), ASPARSE_ERR_USAGE);
  }
  assert_int_equal(asparse_shard_build(a, ASPARSE_FORMAT_BCSR, 8, &shard), ASPARSE_ERR_USAGE);
  assert_int_equal(asparse_shard_build(a, ASPARSE_FORMAT_AUTO, 8, &shard), ASPARSE_ERR_USAGE);
  assert_null(shard);
  asparse_error_clear();
  asparse_local_csr_destroy(&a);
}

static void test_allocation_failure(void **state) {
  (void)state;
  asparse_local_csr *a = random_csr(5, 100, 100, 4, -1, ASPARSE_FP32);
  int64_t live = asparse_memory_live_blocks();
  int failures = 0;
  for (int format = ASPARSE_FORMAT_CSR; format <= ASPARSE_FORMAT_BCSR; format++) {
    for (int n = 1; n <= 12; n++) {
      asparse_shard *shard = NULL;
      asparse_memory_fail_at(n);
      asparse_status status = asparse_shard_build(a, (asparse_format)format, 16, &shard);
      asparse_memory_fail_at(0);
      assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
      assert_true((status == ASPARSE_OK) == (shard != NULL));
      failures += status != ASPARSE_OK;
      asparse_shard_destroy(&shard);
      assert_int_equal(asparse_memory_live_blocks(), live);
      asparse_error_clear();
    }
  }
  assert_true(failures >= 15);
  asparse_local_csr_destroy(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_shapes), cmocka_unit_test(test_awkward_shapes),
      cmocka_unit_test(test_widest),        cmocka_unit_test(test_explicit_zero),
      cmocka_unit_test(test_threads_agree), cmocka_unit_test(test_csr_is_borrowed),
      cmocka_unit_test(test_wrong_unit),    cmocka_unit_test(test_allocation_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
