/* Entries in any order, sorted by row and brought to slabs. */
#include "csr_fixture.h"
#include "io/entries.h"

/* Entry e of n: rows scattered, the value tells its place in the whole list. */
static asparse_entry entry_of(int64_t m, int64_t k, int64_t e) {
  return (asparse_entry){(int64_t)(asparse_mix64((uint64_t)e) % (uint64_t)m),
                         (int64_t)(asparse_mix64((uint64_t)e + 1000003) % (uint64_t)k), (double)e};
}

/* Entries begin … end-1. */
static asparse_entries share(int64_t m, int64_t k, int64_t begin, int64_t end) {
  asparse_entries entries = {0};
  expect_ok(asparse_entries_create(comm, end - begin, "a test", &entries));
  for (int64_t e = begin; e < end; e++) entries.list[e - begin] = entry_of(m, k, e);
  return entries;
}

static void test_sorting_is_stable(void **state) {
  (void)state;
  const int64_t sizes[] = {1, 2, 100, 5000, (int64_t)1 << 22, (int64_t)1 << 40, INT64_MAX - 1};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const int64_t m = sizes[s], n = 3000;
    asparse_entries entries = share(m, 10, 0, n);
    double sum = 0;
    expect_ok(asparse_entries_sort_by_row(comm, m, &entries));
    assert_int_equal(entries.count, n);
    for (int64_t e = 0; e < n; e++) {
      const asparse_entry *own = &entries.list[e], wanted = entry_of(m, 10, (int64_t)own->value);
      assert_true(own->row == wanted.row && own->col == wanted.col);
      assert_true(e == 0 || own[-1].row < own->row || (own[-1].row == own->row && own[-1].value < own->value));
      sum += own->value;
    }
    assert_true(sum == (double)(n * (n - 1) / 2)); /* each once */
    asparse_entries_free(&entries);
  }
}

/* Rows hold their entries in the order of the whole list, however the ranks share it. */
static void check_slab_of(const asparse_csr *a, int64_t m, int64_t k, int64_t n) {
  int64_t total = asparse_csr_nnz_local(a);
  check_cover(a, m);
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t place = a->row_ptr[i];
    for (int64_t e = 0; e < n; e++) {
      asparse_entry wanted = entry_of(m, k, e);
      if (wanted.row != a->row_begin + i) continue;
      assert_true(place < a->row_ptr[i + 1] && a->col_idx[place] == wanted.col);
      assert_true(asparse_load(a->dtype, a->values, place++) == wanted.value);
    }
    assert_int_equal(place, a->row_ptr[i + 1]);
  }
  expect_ok(asparse_comm_sum(comm, &total, 1));
  assert_int_equal(total, n);
}

static void test_slabs_keep_the_order_of_the_list(void **state) {
  (void)state;
  const int64_t cases[][3] = {{50, 30, 400}, {1, 5, 40}, {0, 5, 0}, {200, 3, 0}, {3, 3, 1}, {500, 7, 60}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const int64_t m = cases[c][0], k = cases[c][1], n = cases[c][2];
    for (int uneven = 0; uneven < 2; uneven++) {
      asparse_csr *a = NULL;
      int64_t begin = asparse_even_start(n, comm->size, comm->rank);
      int64_t end = asparse_even_start(n, comm->size, comm->rank + 1);
      if (uneven) begin = comm->rank == comm->size - 1 ? 0 : n, end = n; /* all on the last rank */
      asparse_entries entries = share(m, k, begin, end);
      expect_ok(asparse_entries_to_slabs(comm, m, k, ASPARSE_FP64, &entries, &a));
      assert_true(entries.list == NULL);
      check_slab_of(a, m, k, n);
      asparse_csr_destroy(&a);
    }
  }
}

/* Rows + entries are shared evenly, up to the longest row. */
static void test_slabs_are_balanced(void **state) {
  (void)state;
  const int64_t m = 1000, n = 8000;
  asparse_csr *a = NULL;
  int64_t begin = asparse_even_start(n, comm->size, comm->rank), longest = 0;
  asparse_entries entries = share(m, 10, begin, asparse_even_start(n, comm->size, comm->rank + 1));
  for (int64_t e = 0; e < entries.count; e++) entries.list[e].row = e % 2 ? m - 1 - e % 10 : e % m; /* skewed */
  expect_ok(asparse_entries_to_slabs(comm, m, 10, ASPARSE_FP32, &entries, &a));
  for (int64_t i = 0; i < a->n_rows; i++) {
    if (a->row_ptr[i + 1] - a->row_ptr[i] > longest) longest = a->row_ptr[i + 1] - a->row_ptr[i];
  }
  expect_ok(asparse_comm_max(comm, &longest, 1));
  assert_true(asparse_csr_nnz_local(a) + a->n_rows <= (n + m) / comm->size + longest + 2);
  asparse_csr_destroy(&a);
}

static void test_sizes_beyond_64_bits(void **state) {
  (void)state;
  asparse_csr *a = NULL;
  asparse_entries entries = share(5, 5, 0, 3);
  expect_failure(asparse_entries_to_slabs(comm, INT64_MAX - 1, 5, ASPARSE_FP64, &entries, &a), ASPARSE_ERR_DATA,
                 "64-bit");
  entries = share(5, 5, 0, 3);
  expect_failure(asparse_entries_to_slabs(comm, INT64_MAX / 2, 5, ASPARSE_FP64, &entries, &a), ASPARSE_ERR_MEMORY,
                 "GiB");
}

static void test_allocation_failures(void **state) {
  (void)state;
  int64_t live = asparse_memory_live_blocks();
  int failures = 0;
  for (int n = 1; n < 60; n++) {
    asparse_csr *a = NULL;
    asparse_entries entries = share(50, 30, comm->rank * 100, comm->rank * 100 + 100);
    asparse_memory_fail_at(comm->rank == comm->size - 1 ? n : 0);
    asparse_status status = asparse_entries_to_slabs(comm, 50, 30, ASPARSE_FP64, &entries, &a);
    asparse_memory_fail_at(0);
    assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
    failures += status != ASPARSE_OK;
    asparse_csr_destroy(&a);
    asparse_entries_free(&entries);
    asparse_error_clear();
    assert_int_equal(asparse_memory_live_blocks(), live);
  }
  assert_true(failures >= 5 && failures < 50);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sorting_is_stable), cmocka_unit_test(test_slabs_keep_the_order_of_the_list),
      cmocka_unit_test(test_slabs_are_balanced), cmocka_unit_test(test_sizes_beyond_64_bits),
      cmocka_unit_test(test_allocation_failures)};
  io_fixture_begin(&argc, &argv);
  return io_fixture_end(cmocka_run_group_tests(tests, NULL, NULL));
}
