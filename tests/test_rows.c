/* Rows to the owners of a permuted partition, new numbers of columns, dense rows to even slabs and back. */
#include "plan/rows.h"
#include "slabs.h"

/* A partition in random order: row i becomes new[i]; the same on every rank. */
static void random_partition(uint64_t *state, int64_t m, int parts, asparse_partition *p, int64_t *new_of_old) {
  int64_t *starts = malloc(((size_t)parts + 1) * sizeof *starts);
  int *part_of = malloc((size_t)m * sizeof *part_of);
  memset(starts, 0, ((size_t)parts + 1) * sizeof *starts);
  for (int64_t i = 0; i < m; i++) starts[1 + (part_of[i] = (int)test_random(state, parts))]++;
  for (int q = 0; q < parts; q++) starts[q + 1] += starts[q];
  int64_t *next = malloc((size_t)parts * sizeof *next);
  memcpy(next, starts, (size_t)parts * sizeof *next);
  for (int64_t i = 0; i < m; i++) new_of_old[i] = next[part_of[i]]++;
  *p = (asparse_partition){.parts = parts, .m = m, .k = m, .row_starts = starts, .col_starts = starts};
  free(part_of);
  free(next);
}

static void permuted_rows_arrive(void **unused) {
  (void)unused;
  uint64_t state = 1;
  int size = test_comm->size, part_of_rank[8];
  for (int64_t m = 1; m < 120; m = 2 * m + 3) {
    int64_t new_of_old[128], wanted[128], found[128];
    asparse_partition p;
    asparse_csr *whole = test_whole(&state, m, m, 4, -1), *slab = test_slab(whole, test_comm, &state), *rows = NULL;
    int64_t *row_map = NULL;
    random_partition(&state, m, size + 1, &p, new_of_old);
    p.new_row = new_of_old + slab->row_begin;
    for (int r = 0; r < size; r++) part_of_rank[r] = r == 0 ? -1 : (r + 1) % (size + 1); /* one rank sits out */
    assert_int_equal(asparse_rows_gather(test_comm, slab, &p, part_of_rank, false, &rows, &row_map), ASPARSE_OK);
    int part = part_of_rank[test_comm->rank];
    assert_int_equal(rows->n_rows, part < 0 ? 0 : p.row_starts[part + 1] - p.row_starts[part]);
    for (int64_t i = 0; i < rows->n_rows; i++) {
      int64_t old = row_map[i], length = whole->row_ptr[old + 1] - whole->row_ptr[old];
      assert_int_equal(new_of_old[old], p.row_starts[part] + i);
      assert_int_equal(rows->row_ptr[i + 1] - rows->row_ptr[i], length);
      assert_memory_equal(rows->col_idx + rows->row_ptr[i], whole->col_idx + whole->row_ptr[old], (size_t)length * 8);
      assert_memory_equal((double *)rows->values + rows->row_ptr[i], (double *)whole->values + whole->row_ptr[old],
                          (size_t)length * 8);
    }
    int64_t n = 0;
    for (int64_t i = test_comm->rank % 2; i < m; i += 2) wanted[n++] = i;
    assert_int_equal(asparse_rows_new_numbers(test_comm, slab, &p, wanted, n, found), ASPARSE_OK);
    for (int64_t i = 0; i < n; i++) assert_int_equal(found[i], new_of_old[wanted[i]]);
    asparse_free(row_map);
    asparse_csr_destroy(&rows);
    asparse_csr_destroy(&slab);
    asparse_csr_destroy(&whole);
    free(p.row_starts);
  }
}

static void dense_rows_there_and_back(void **unused) {
  (void)unused;
  uint64_t state = 2;
  for (int64_t m = 0; m < 60; m = 3 * m + 1) {
    int64_t row_map[64], n = 0;
    for (int64_t i = 0; i < m; i++) {
      if (test_random(&state, test_comm->size) == test_comm->rank) row_map[n++] = i;
    }
    asparse_dense *mine = NULL, *even = NULL, *back = NULL;
    assert_int_equal(asparse_dense_create(&mine, n, 3, ASPARSE_FP32), ASPARSE_OK);
    assert_int_equal(asparse_dense_create(&back, n, 3, ASPARSE_FP32), ASPARSE_OK);
    asparse_dense_fill_random(mine, 9, 0, row_map);
    assert_int_equal(asparse_rows_to_even(test_comm, mine, row_map, m, &even), ASPARSE_OK);
    int64_t begin = asparse_even_start(m, test_comm->size, test_comm->rank);
    for (int64_t i = 0; i < even->m; i++) {
      for (int64_t j = 0; j < 3; j++)
        assert_true(((float *)even->values)[3 * i + j] == (float)asparse_random_element(9, begin + i, j));
    }
    assert_int_equal(asparse_rows_from_even(test_comm, even, row_map, m, back), ASPARSE_OK);
    assert_memory_equal(back->values, mine->values, (size_t)n * 12);
    asparse_dense_destroy(&mine);
    asparse_dense_destroy(&even);
    asparse_dense_destroy(&back);
  }
}

static int group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(permuted_rows_arrive),
                                     cmocka_unit_test(dense_rows_there_and_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
