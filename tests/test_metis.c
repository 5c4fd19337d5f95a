/* The METIS partitioner: a valid, stable numbering on any number of ranks; small halos; clear refusals. */
#include <stdio.h>
#include <unistd.h>

#include "asparse_config.h"
#include "partition/partition.h"
#include "tests/slabs.h"

enum { MOST_ROWS = 400 };

static asparse_status partition_with(asparse_comm *comm, const asparse_csr *slab, const int64_t *cost, int parts,
                                     asparse_partition **p) {
  return asparse_partition_metis(comm, slab, cost + slab->row_begin, parts, p);
}

#if ASPARSE_HAVE_METIS

static int part_of(const asparse_partition *p, int64_t number) {
  int q = 0;
  while (number >= p->row_starts[q + 1]) q++;
  return q;
}

/* Rows are numbered by (part, old number), and costs add up. */
static void check_alone(const asparse_partition *p, const int64_t *cost, int64_t m, int parts) {
  char seen[MOST_ROWS] = {0};
  int64_t last_of_part[64], part_cost[64] = {0}, largest = 0, total = 0;
  assert_int_equal(p->parts, parts);
  assert_int_equal(p->n_slab_rows, m);
  assert_int_equal(p->row_starts[parts], m);
  memset(last_of_part, -1, sizeof last_of_part);
  for (int64_t i = 0; i < m; i++) {
    int64_t number = p->new_row[i];
    assert_true(number >= 0 && number < m && !seen[number]);
    seen[number] = 1;
    int q = part_of(p, number);
    assert_true(number > last_of_part[q]);
    last_of_part[q] = number;
    part_cost[q] += cost[i];
  }
  for (int q = 0; q < parts; q++) {
    if (part_cost[q] > largest) largest = part_cost[q];
    total += part_cost[q];
  }
  assert_int_equal(p->largest_cost, largest);
  assert_int_equal(p->total_cost, total);
  assert_memory_equal(p->col_starts, p->row_starts, ((size_t)parts + 1) * sizeof *p->row_starts);
}

/* Partitions whole on this rank alone and the slab on all: both must be the same. */
static void check_matrix(const asparse_csr *whole, const int64_t *cost, int parts, uint64_t *seed) {
  asparse_csr *slab = test_slab(whole, test_comm, seed);
  asparse_partition *alone = NULL, *p = NULL;
  assert_int_equal(partition_with(test_self, whole, cost, parts, &alone), ASPARSE_OK);
  check_alone(alone, cost, whole->m, parts);
  assert_int_equal(partition_with(test_comm, slab, cost, parts, &p), ASPARSE_OK);
  assert_int_equal(p->n_slab_rows, slab->n_rows);
  assert_memory_equal(p->row_starts, alone->row_starts, ((size_t)parts + 1) * sizeof *p->row_starts);
  assert_memory_equal(p->new_row, alone->new_row + slab->row_begin, (size_t)slab->n_rows * sizeof *p->new_row);
  assert_int_equal(p->largest_cost, alone->largest_cost);
  asparse_partition_destroy(&p);
  asparse_partition_destroy(&alone);
  asparse_csr_destroy(&slab);
}

/* Unsymmetric patterns, some with nothing but the diagonal or nothing at all; more parts than rows. */
static void test_random_matrices(void **state) {
  (void)state;
  uint64_t seed = 31;
  for (int i = 0; i < 150; i++) {
    int64_t m = test_random(&seed, i % 3 ? 60 : 6), cost[MOST_ROWS];
    asparse_csr *whole = test_whole(&seed, m, m, 1 + test_random(&seed, 60), m && i % 7 == 0 ? 0 : -1);
    for (int64_t r = 0; r < m; r++) cost[r] = i % 5 ? 1 + test_random(&seed, 1000000000000) : 0;
    check_matrix(whole, cost, 1 + (int)test_random(&seed, 12), &seed);
    asparse_csr_destroy(&whole);
  }
}

/* A 20 × 20 grid with scattered numbers. */
static asparse_csr *scattered_grid(void) {
  asparse_csr *a = NULL;
  assert_int_equal(asparse_csr_create(&a, 400, 400, 0, 400, 2000, ASPARSE_FP64), ASPARSE_OK);
  int64_t n = 0;
  for (int64_t i = 0; i < 400; i++) {
    int64_t cell = i * 187 % 400, x = cell % 20, y = cell / 20; /* 187 · 323 = 1 (mod 400) */
    static const int64_t steps[][2] = {{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}};
    for (int s = 0; s < 5; s++) {
      int64_t nx = x + steps[s][0], ny = y + steps[s][1];
      if (nx < 0 || nx >= 20 || ny < 0 || ny >= 20) continue;
      a->col_idx[n] = (ny * 20 + nx) * 323 % 400;
      ((double *)a->values)[n++] = 1;
    }
    a->row_ptr[i + 1] = n;
  }
  a->nnz = n;
  assert_int_equal(asparse_csr_sort_rows(a), ASPARSE_OK);
  return a;
}

static void test_halo_is_small(void **state) {
  (void)state;
  uint64_t seed = 2;
  asparse_csr *whole = scattered_grid(), *slab = test_slab(whole, test_comm, &seed);
  int64_t cost[400];
  for (int i = 0; i < 400; i++) cost[i] = 1000;
  asparse_partition *metis = NULL, *contiguous = NULL;
  asparse_partition_quality metis_quality, contiguous_quality;
  check_matrix(whole, cost, 4, &seed);
  assert_int_equal(partition_with(test_comm, slab, cost, 4, &metis), ASPARSE_OK);
  assert_int_equal(asparse_partition_contiguous(test_comm, slab, cost, 4, &contiguous), ASPARSE_OK);
  assert_int_equal(asparse_partition_evaluate(test_comm, slab, metis, &metis_quality), ASPARSE_OK);
  assert_int_equal(asparse_partition_evaluate(test_comm, slab, contiguous, &contiguous_quality), ASPARSE_OK);
  /* Four 10 × 10 squares have 4 · 20 halo cells. */
  assert_true(metis_quality.halo_total <= 120);
  assert_true(metis_quality.halo_total * 3 < contiguous_quality.halo_total);
  assert_true(metis_quality.imbalance < 1.1);
  asparse_partition_destroy(&metis);
  asparse_partition_destroy(&contiguous);
  asparse_csr_destroy(&whole);
  asparse_csr_destroy(&slab);
}

/* METIS warns on standard output about graphs it cannot bisect; ours belongs to results. */
static void test_stdout_stays_clean(void **state) {
  (void)state;
  uint64_t seed = 4;
  int64_t cost[MOST_ROWS] = {0};
  asparse_csr *whole = test_whole(&seed, 20, 20, 1000000, -1);
  asparse_partition *p = NULL;
  FILE *file = tmpfile();
  fflush(stdout);
  int saved = dup(STDOUT_FILENO);
  dup2(fileno(file), STDOUT_FILENO);
  asparse_status status = partition_with(test_self, whole, cost, 19, &p);
  fflush(stdout);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  assert_int_equal(status, ASPARSE_OK);
  assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0);
  fclose(file);
  asparse_partition_destroy(&p);
  asparse_csr_destroy(&whole);
}

static void test_refusals(void **state) {
  (void)state;
  uint64_t seed = 5;
  int64_t cost[MOST_ROWS] = {0};
  asparse_csr *whole = test_whole(&seed, 20, 21, 4, -1), *slab = test_slab(whole, test_comm, &seed);
  asparse_partition *p = NULL;
  assert_int_equal(partition_with(test_comm, slab, cost, 2, &p), ASPARSE_ERR_USAGE);
  assert_non_null(strstr(asparse_error_message(), "--partition contiguous"));
  asparse_error_clear();
  slab->k = 20;
  assert_int_equal(partition_with(test_comm, slab, cost, 0, &p), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  slab->m = slab->k = (int64_t)1 << 40;
  assert_int_equal(partition_with(test_comm, slab, cost, 2, &p), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  assert_null(p);
  asparse_csr_destroy(&whole);
  asparse_csr_destroy(&slab);
}

static void test_allocation_failure(void **state) {
  (void)state;
  uint64_t seed = 9;
  int64_t cost[MOST_ROWS] = {0};
  asparse_csr *whole = test_whole(&seed, 30, 30, 4, -1), *slab = test_slab(whole, test_comm, &seed);
  for (int rank = 0; rank < test_comm->size; rank++) {
    int64_t live = asparse_memory_live_blocks(), failures = 0;
    for (int n = 1; n <= 40; n++) {
      asparse_partition *p = NULL;
      asparse_memory_fail_at(test_comm->rank == rank ? n : 0);
      asparse_status status = partition_with(test_comm, slab, cost, 3, &p);
      asparse_memory_fail_at(0);
      assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
      failures += status != ASPARSE_OK;
      asparse_partition_destroy(&p);
      assert_int_equal(asparse_memory_live_blocks(), live);
      asparse_error_clear();
    }
    assert_true(failures >= 12 && failures < 40);
  }
  asparse_csr_destroy(&whole);
  asparse_csr_destroy(&slab);
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_matrices),    cmocka_unit_test(test_halo_is_small),
      cmocka_unit_test(test_stdout_stays_clean), cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_allocation_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_says_what_is_missing(void **state) {
  (void)state;
  uint64_t seed = 5;
  int64_t cost[MOST_ROWS] = {0};
  asparse_csr *whole = test_whole(&seed, 20, 20, 4, -1);
  asparse_partition *p = NULL;
  assert_int_equal(partition_with(test_self, whole, cost, 2, &p), ASPARSE_ERR_USAGE);
  assert_non_null(strstr(asparse_error_message(), "libmetis-dev"));
  asparse_csr_destroy(&whole);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_says_what_is_missing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif

int main(int argc, char **argv) { return test_run(&argc, &argv, run); }
