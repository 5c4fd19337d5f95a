/* Halo volumes against brute force, for any partition on any number of ranks. */
#include "partition/partition.h"
#include "partition/sort_keys.h"
#include "tests/slabs.h"

/* Part of each row (columns for a square matrix) of the whole matrix. */
static int part_of(const int64_t *starts, int parts, int64_t number) {
  int q = 0;
  while (q < parts - 1 && number >= starts[q + 1]) q++;
  return q;
}

/* new_row [m] of the whole matrix, or NULL. */
static asparse_partition_quality brute_force(const asparse_csr *a, const asparse_partition *p, const int64_t *new_row) {
  asparse_partition_quality quality = {0};
  char *used = malloc((size_t)a->k + 1);
  for (int q = 0; q < p->parts; q++) {
    int64_t halo = 0, nnz = 0, rows = 0;
    memset(used, 0, (size_t)a->k + 1);
    for (int64_t i = 0; i < a->m; i++) {
      if (part_of(p->row_starts, p->parts, new_row ? new_row[i] : i) != q) continue;
      rows++;
      nnz += a->row_ptr[i + 1] - a->row_ptr[i];
      for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) used[a->col_idx[e]] = 1;
    }
    for (int64_t j = 0; j < a->k; j++)
      halo += used[j] && part_of(p->col_starts, p->parts, new_row ? new_row[j] : j) != q;
    quality.halo_total += halo;
    if (halo > quality.halo_max) quality.halo_max = halo;
    if (nnz > quality.nnz_max) quality.nnz_max = nnz;
    if (rows > quality.rows_max) quality.rows_max = rows;
  }
  free(used);
  return quality;
}

static void check_quality(const asparse_csr *slab, const asparse_csr *whole, const asparse_partition *p,
                          const int64_t *new_row) {
  asparse_partition_quality found, wanted = brute_force(whole, p, new_row);
  assert_int_equal(asparse_partition_evaluate(test_comm, slab, p, &found), ASPARSE_OK);
  assert_int_equal(found.halo_total, wanted.halo_total);
  assert_int_equal(found.halo_max, wanted.halo_max);
  assert_int_equal(found.nnz_max, wanted.nnz_max);
  assert_int_equal(found.rows_max, wanted.rows_max);
  double nnz_imbalance = whole->nnz ? (double)wanted.nnz_max * p->parts / (double)whole->nnz : 1;
  double imbalance = p->total_cost ? (double)p->largest_cost * p->parts / (double)p->total_cost : 1;
  assert_true(found.nnz_imbalance == nnz_imbalance);
  assert_true(found.imbalance == imbalance);
}

static asparse_csr *random_whole(uint64_t *seed, bool square) {
  int64_t m = test_random(seed, 40), k = square ? m : test_random(seed, 60);
  int64_t dense = m > 0 && test_random(seed, 4) == 0 ? test_random(seed, m) : -1;
  return test_whole(seed, m, k, 1 + test_random(seed, 30), dense);
}

static void test_contiguous_parts(void **state) {
  (void)state;
  uint64_t seed = 21;
  for (int i = 0; i < 400; i++) {
    asparse_csr *whole = random_whole(&seed, i % 2), *slab = test_slab(whole, test_comm, &seed);
    asparse_partition *p = NULL;
    int64_t cost[64] = {0};
    for (int64_t r = 0; r < slab->n_rows; r++) cost[r] = slab->row_ptr[r + 1] - slab->row_ptr[r];
    assert_int_equal(asparse_partition_contiguous(test_comm, slab, cost, 1 + (int)test_random(&seed, 50), &p),
                     ASPARSE_OK);
    check_quality(slab, whole, p, NULL);
    asparse_partition_destroy(&p);
    asparse_csr_destroy(&whole);
    asparse_csr_destroy(&slab);
  }
}

/* Any permutation in place of METIS's. */
static void test_permuted_parts(void **state) {
  (void)state;
  uint64_t seed = 22;
  for (int i = 0; i < 400; i++) {
    asparse_csr *whole = random_whole(&seed, true), *slab = test_slab(whole, test_comm, &seed);
    int64_t m = whole->m, new_row[64], starts[16] = {0};
    int parts = 1 + (int)test_random(&seed, 12);
    for (int64_t r = 0; r < m; r++) {
      int64_t other = test_random(&seed, r + 1);
      new_row[r] = new_row[other];
      new_row[other] = r;
    }
    for (int q = 1; q < parts; q++) starts[q] = starts[q - 1] + test_random(&seed, m - starts[q - 1] + 1);
    starts[parts] = m;
    asparse_partition p = {.parts = parts,
                           .method = ASPARSE_PARTITION_METIS,
                           .m = m,
                           .k = m,
                           .row_starts = starts,
                           .col_starts = starts,
                           .n_slab_rows = slab->n_rows,
                           .new_row = new_row + slab->row_begin};
    check_quality(slab, whole, &p, new_row);
    asparse_csr_destroy(&whole);
    asparse_csr_destroy(&slab);
  }
}

static void test_sort_unique(void **state) {
  (void)state;
  uint64_t seed = 1, keys[500], scratch[500];
  static const int64_t bounds[] = {1, 2, 100, 2048, 2049, (int64_t)1 << 23, INT64_MAX};
  for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
    for (int64_t n = 0; n <= 500; n += 125) {
      uint64_t sum = 0;
      for (int64_t i = 0; i < n; i++) keys[i] = (uint64_t)test_random(&seed, bounds[b]);
      for (int64_t i = 0; i < n; i++) { /* sum of the distinct ones */
        bool first = true;
        for (int64_t j = 0; j < i; j++) first = first && keys[j] != keys[i];
        if (first) sum += keys[i];
      }
      int64_t kept = asparse_sort_unique(keys, scratch, n, (uint64_t)bounds[b]);
      for (int64_t i = 0; i < kept; i++) {
        sum -= keys[i];
        if (i > 0) assert_true(keys[i] > keys[i - 1]);
      }
      assert_true(sum == 0);
    }
  }
}

static void test_allocation_failure(void **state) {
  (void)state;
  uint64_t seed = 9;
  asparse_csr *whole = test_whole(&seed, 30, 30, 4, -1), *slab = test_slab(whole, test_comm, &seed);
  int64_t cost[30] = {0}, failures = 0;
  asparse_partition *p = NULL;
  asparse_partition_quality quality;
  assert_int_equal(asparse_partition_contiguous(test_comm, slab, cost, 3, &p), ASPARSE_OK);
  int64_t live = asparse_memory_live_blocks();
  for (int n = 1; n <= 20; n++) {
    asparse_memory_fail_at(test_comm->rank == test_comm->size - 1 ? n : 0);
    asparse_status status = asparse_partition_evaluate(test_comm, slab, p, &quality);
    asparse_memory_fail_at(0);
    assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
    failures += status != ASPARSE_OK;
    assert_int_equal(asparse_memory_live_blocks(), live);
    asparse_error_clear();
  }
  assert_true(failures >= 12 && failures < 20);
  asparse_partition_destroy(&p);
  asparse_csr_destroy(&whole);
  asparse_csr_destroy(&slab);
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_contiguous_parts),
      cmocka_unit_test(test_permuted_parts),
      cmocka_unit_test(test_sort_unique),
      cmocka_unit_test(test_allocation_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, run); }
