/* Rows brought together: a permutation, the same for any number of threads, that finds groups of like rows again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <omp.h>

#include "base/dense.h"
#include "partition/partition.h"

static int64_t draw(uint64_t *state, int64_t bound) {
  *state = asparse_mix64(*state);
  return (int64_t)(*state % (uint64_t)bound);
}

static int compare(const void *left, const void *right) {
  const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
  return (a > b) - (a < b);
}

/* Row i has up to per_row columns of group i % groups, or of all columns with groups = 0; every tenth is empty. */
static asparse_local_csr *random_rows(uint64_t seed, int32_t m, int32_t k, int32_t per_row, int32_t groups) {
  asparse_local_csr *a = NULL;
  const int32_t width = groups ? k / groups : k;
  assert_int_equal(asparse_local_csr_create(&a, m, k, (int64_t)m * per_row, ASPARSE_FP32), ASPARSE_OK);
  a->row_ptr[0] = 0;
  for (int32_t i = 0; i < m; i++) {
    int32_t *cols = a->col_idx + a->row_ptr[i], n = 0;
    for (int32_t j = 0; j < per_row && i % 10 != 9; j++)
      cols[j] = (groups ? i % groups * width : 0) + (int32_t)draw(&seed, width);
    if (i % 10 != 9) qsort(cols, (size_t)per_row, sizeof *cols, compare);
    for (int32_t j = 0; j < per_row && i % 10 != 9; j++) {
      if (n == 0 || cols[n - 1] != cols[j]) cols[n++] = cols[j];
    }
    a->row_ptr[i + 1] = a->row_ptr[i] + n;
  }
  for (int64_t e = 0; e < a->row_ptr[m]; e++) ((float *)a->values)[e] = (float)e;
  return a;
}

static void check_permutation(const asparse_local_csr *a, const asparse_clustered *c) {
  char *seen = calloc((size_t)a->m + 1, 1);
  for (int32_t i = 0; i < a->m; i++) {
    const int32_t row = c->order[i];
    const int64_t from = a->row_ptr[row], n = a->row_ptr[row + 1] - from, to = c->rows->row_ptr[i];
    assert_true(row >= 0 && row < a->m && !seen[row]);
    seen[row] = 1;
    assert_int_equal(c->rows->row_ptr[i + 1] - to, n);
    assert_memory_equal(c->rows->col_idx + to, a->col_idx + from, (size_t)n * sizeof *a->col_idx);
    assert_memory_equal((float *)c->rows->values + to, (float *)a->values + from, (size_t)n * sizeof(float));
  }
  free(seen);
}

static void any_matrix(void **state) {
  (void)state;
  static const struct {
    int32_t m, k, per_row, groups;
  } shapes[] = {{0, 5, 1, 0}, {1, 1, 1, 0}, {17, 40, 3, 0}, {1000, 300, 5, 0}, {3000, 64, 40, 0}, {70000, 5000, 4, 50}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    asparse_local_csr *a = random_rows(s, shapes[s].m, shapes[s].k, shapes[s].per_row, shapes[s].groups);
    asparse_clustered one = {0}, many = {0};
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    assert_int_equal(asparse_rows_cluster(a, &one), ASPARSE_OK);
    omp_set_num_threads(4);
    assert_int_equal(asparse_rows_cluster(a, &many), ASPARSE_OK);
    omp_set_num_threads(threads);
    check_permutation(a, &one);
    assert_memory_equal(one.order, many.order, (size_t)a->m * sizeof *one.order);
    asparse_clustered_free(&one);
    asparse_clustered_free(&many);
    asparse_local_csr_destroy(&a);
  }
}

/* Rows of 25 groups in turn share columns with their own group only: windows of clustered rows need few columns. */
static void like_rows_meet(void **state) {
  (void)state;
  asparse_local_csr *a = random_rows(3, 4000, 1000, 20, 25);
  asparse_clustered c = {0};
  asparse_window_counts before, after;
  assert_int_equal(asparse_rows_cluster(a, &c), ASPARSE_OK);
  assert_int_equal(asparse_count_window_columns(a, 16, &before), ASPARSE_OK);
  assert_int_equal(asparse_count_window_columns(c.rows, 16, &after), ASPARSE_OK);
  assert_true(after.columns * 5 < before.columns);
  asparse_clustered_free(&c);
  asparse_local_csr_destroy(&a);
}

static void shard_keeps_the_order(void **state) {
  (void)state;
  asparse_local_csr *a = random_rows(4, 100, 80, 6, 4);
  asparse_clustered c = {0};
  asparse_shard *shard = NULL;
  assert_int_equal(asparse_rows_cluster(a, &c), ASPARSE_OK);
  assert_int_equal(asparse_shard_build_clustered(&c, 16, &shard), ASPARSE_OK);
  assert_memory_equal(shard->wcsr->row_map, c.order, 100 * sizeof *c.order);
  assert_int_equal(asparse_shard_nnz(shard), a->row_ptr[100]);
  asparse_shard_destroy(&shard);
  assert_int_equal(asparse_shard_build_clustered(&c, 24, &shard), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  asparse_clustered_free(&c);
  asparse_local_csr_destroy(&a);
}

static void allocation_failures(void **state) {
  (void)state;
  asparse_local_csr *a = random_rows(5, 200, 80, 6, 4);
  const int64_t blocks = asparse_memory_live_blocks();
  asparse_status status = ASPARSE_ERR_MEMORY;
  for (int64_t n = 1; status != ASPARSE_OK; n++) {
    asparse_clustered c = {0};
    assert_true(n < 40);
    asparse_memory_fail_at(n);
    status = asparse_rows_cluster(a, &c);
    asparse_memory_fail_at(0);
    assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
    assert_true(status == ASPARSE_OK || (c.order == NULL && c.rows == NULL));
    asparse_error_clear();
    asparse_clustered_free(&c);
    assert_int_equal(asparse_memory_live_blocks(), blocks);
  }
  asparse_local_csr_destroy(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_matrix), cmocka_unit_test(like_rows_meet),
                                     cmocka_unit_test(shard_keeps_the_order), cmocka_unit_test(allocation_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
