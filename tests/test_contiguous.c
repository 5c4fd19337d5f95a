/* The contiguous partitioner against dynamic programming, on any number of ranks. */
#include "partition/partition.h"
#include "tests/slabs.h"

enum { MOST_ROWS = 40 };

/* An empty matrix whose rows bear the costs. */
typedef struct instance {
  asparse_csr *whole, *slab;
  int64_t cost[MOST_ROWS];
} instance;

static instance make_instance(uint64_t *seed, int64_t m, int64_t k) {
  instance it = {.whole = test_whole(seed, m, k, 1000, -1)};
  it.slab = test_slab(it.whole, test_comm, seed);
  return it;
}

static void free_instance(instance *it) {
  asparse_csr_destroy(&it->whole);
  asparse_csr_destroy(&it->slab);
}

/* Least largest sum of m costs in parts: best[q][i] = min over j of max(best[q-1][j], cost j … i-1). */
static int64_t least_largest(const int64_t *cost, int64_t m, int parts) {
  int64_t prefix[MOST_ROWS + 1] = {0}, best[MOST_ROWS + 1], next[MOST_ROWS + 1];
  for (int64_t i = 0; i < m; i++) prefix[i + 1] = prefix[i] + cost[i];
  memcpy(best, prefix, sizeof best);
  for (int q = 2; q <= parts && q <= m; q++) {
    for (int64_t i = 0; i <= m; i++) {
      next[i] = best[i];
      for (int64_t j = 0; j <= i; j++) {
        int64_t largest = best[j] > prefix[i] - prefix[j] ? best[j] : prefix[i] - prefix[j];
        if (largest < next[i]) next[i] = largest;
      }
    }
    memcpy(best, next, sizeof best);
  }
  return best[m];
}

static void check_starts(const asparse_partition *p, const int64_t *cost, int64_t m, int64_t k, int parts) {
  int64_t largest = 0, total = 0;
  assert_int_equal(p->parts, parts);
  assert_int_equal(p->row_starts[0], 0);
  assert_int_equal(p->row_starts[parts], m);
  for (int q = 0; q < parts; q++) {
    int64_t sum = 0;
    assert_true(p->row_starts[q] <= p->row_starts[q + 1]);
    for (int64_t i = p->row_starts[q]; i < p->row_starts[q + 1]; i++) sum += cost[i];
    if (sum > largest) largest = sum;
    total += sum;
  }
  for (int q = 0; q <= parts; q++)
    assert_int_equal(p->col_starts[q], m == k ? p->row_starts[q] : asparse_even_start(k, parts, q));
  assert_int_equal(largest, least_largest(cost, m, parts));
  assert_int_equal(p->largest_cost, largest);
  assert_int_equal(p->total_cost, total);
  for (int q = 0; q < parts && m >= parts; q++) assert_true(p->row_starts[q] < p->row_starts[q + 1]);
  assert_null(p->new_row);
}

/* Costs of several kinds: small, zeros among large, one giant, all zero, huge. */
static int64_t random_cost(uint64_t *seed, int kind) {
  switch (kind) {
  case 0: return test_random(seed, 10);
  case 1: return test_random(seed, 3) ? 0 : test_random(seed, 1000000);
  case 2: return test_random(seed, MOST_ROWS) ? test_random(seed, 5) : 1000;
  case 3: return 0;
  default: return test_random(seed, (int64_t)1 << 56);
  }
}

static void test_least_and_same_on_any_ranks(void **state) {
  (void)state;
  uint64_t seed = 11;
  for (int i = 0; i < 1000; i++) {
    int64_t m = test_random(&seed, MOST_ROWS), k = i % 2 ? m : 1 + test_random(&seed, 30);
    int parts = 1 + (int)test_random(&seed, 12);
    instance it = make_instance(&seed, m, k);
    for (int64_t r = 0; r < m; r++) it.cost[r] = random_cost(&seed, i % 5);
    asparse_partition *p = NULL, *alone = NULL;
    assert_int_equal(asparse_partition_contiguous(test_comm, it.slab, it.cost + it.slab->row_begin, parts, &p),
                     ASPARSE_OK);
    check_starts(p, it.cost, m, k, parts);
    assert_int_equal(asparse_partition_contiguous(test_self, it.whole, it.cost, parts, &alone), ASPARSE_OK);
    assert_memory_equal(p->row_starts, alone->row_starts, ((size_t)parts + 1) * sizeof *p->row_starts);
    asparse_partition_destroy(&p);
    asparse_partition_destroy(&alone);
    free_instance(&it);
  }
}

/* Equal costs, zero ones included, give even parts. */
static void test_even(void **state) {
  (void)state;
  uint64_t seed = 5;
  for (int64_t cost = 0; cost < 3; cost++) {
    for (int parts = 1; parts < 12; parts++) {
      instance it = make_instance(&seed, 36, 36);
      for (int64_t r = 0; r < 36; r++) it.cost[r] = cost;
      asparse_partition *p = NULL;
      assert_int_equal(asparse_partition_contiguous(test_comm, it.slab, it.cost, parts, &p), ASPARSE_OK);
      for (int q = 0; q <= parts && (cost == 0 || 36 % parts == 0); q++)
        assert_int_equal(p->row_starts[q], asparse_even_start(36, parts, q));
      asparse_partition_destroy(&p);
      free_instance(&it);
    }
  }
}

/* One giant row leaves a loose bottleneck: the other parts still share the rest. */
static void test_near_even_below_the_bottleneck(void **state) {
  (void)state;
  uint64_t seed = 6;
  instance it = make_instance(&seed, 40, 40);
  for (int64_t r = 0; r < 40; r++) it.cost[r] = r == 39 ? 100 : 1;
  asparse_partition *p = NULL;
  assert_int_equal(asparse_partition_contiguous(test_comm, it.slab, it.cost + it.slab->row_begin, 2, &p), ASPARSE_OK);
  assert_int_equal(p->largest_cost, 100);
  assert_int_equal(p->row_starts[1], 39);
  asparse_partition_destroy(&p);
  for (int64_t r = 0; r < 40; r++) it.cost[r] = r == 0 ? 50 : 1;
  assert_int_equal(asparse_partition_contiguous(test_comm, it.slab, it.cost + it.slab->row_begin, 4, &p), ASPARSE_OK);
  assert_int_equal(p->largest_cost, 50);
  static const int64_t wanted[] = {0, 1, 14, 27, 40};
  assert_memory_equal(p->row_starts, wanted, sizeof wanted);
  asparse_partition_destroy(&p);
  free_instance(&it);
}

static void test_wrong_arguments(void **state) {
  (void)state;
  uint64_t seed = 8;
  instance it = make_instance(&seed, 20, 20);
  asparse_partition *p = NULL;
  const int64_t *own = it.cost + it.slab->row_begin;
  static const int64_t wrong[] = {-1, INT64_MAX, (int64_t)1 << 62};
  for (size_t i = 0; i < 3; i++) {
    it.cost[13] = wrong[i]; /* one rank sees it, all report it */
    assert_int_equal(asparse_partition_contiguous(test_comm, it.slab, own, 2, &p), ASPARSE_ERR_USAGE);
    asparse_error_clear();
  }
  for (int r = 0; r < 20; r++) it.cost[r] = (int64_t)1 << 60; /* each fits, the sum does not */
  assert_int_equal(asparse_partition_contiguous(test_comm, it.slab, own, 2, &p), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  assert_int_equal(asparse_partition_contiguous(test_comm, it.slab, own, 0, &p), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  assert_null(p);
  free_instance(&it);
}

static void test_allocation_failure(void **state) {
  (void)state;
  uint64_t seed = 9;
  instance it = make_instance(&seed, 30, 30);
  int64_t live = asparse_memory_live_blocks(), failures = 0;
  for (int n = 1; n <= 12; n++) {
    asparse_partition *p = NULL;
    asparse_memory_fail_at(test_comm->rank == test_comm->size - 1 ? n : 0);
    asparse_status status = asparse_partition_contiguous(test_comm, it.slab, it.cost, 3, &p);
    asparse_memory_fail_at(0);
    assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
    failures += status != ASPARSE_OK;
    asparse_partition_destroy(&p);
    assert_int_equal(asparse_memory_live_blocks(), live);
    asparse_error_clear();
  }
  assert_true(failures >= 5 && failures < 12);
  free_instance(&it);
}

/* The cost of a row grows with its entries and its window's columns, and the C row alone costs something. */
static void test_row_cost(void **state) {
  (void)state;
  uint64_t seed = 3;
  asparse_csr *a = test_whole(&seed, 64, 300, 10, 40);
  int64_t cost[64], wide[64];
  assert_int_equal(asparse_partition_row_cost(test_self, a, 128, cost), ASPARSE_OK);
  assert_int_equal(asparse_partition_row_cost(test_self, a, 256, wide), ASPARSE_OK);
  for (int i = 0; i < 64; i++) {
    assert_true(cost[i] > 0 && cost[i] <= cost[40]);
    assert_true(wide[i] >= 2 * cost[i] - 1 && wide[i] <= 2 * cost[i] + 2);
  }
  asparse_csr_destroy(&a);
  a = test_whole(&seed, 17, 5, 1000000, -1);
  assert_int_equal(asparse_partition_row_cost(test_self, a, 1, cost), ASPARSE_OK);
  for (int i = 0; i < 17; i++) assert_true(cost[i] > 0 && cost[i] == cost[0]);
  asparse_csr_destroy(&a);
}

/* Windows that slabs cut cost what they cost whole. */
static void test_row_cost_on_any_ranks(void **state) {
  (void)state;
  uint64_t seed = 4;
  for (int trial = 0; trial < 100; trial++) {
    const int64_t m = 1 + test_random(&seed, 100), k = 1 + test_random(&seed, 80);
    asparse_csr *whole = test_whole(&seed, m, k, 1 + test_random(&seed, 40), test_random(&seed, m));
    asparse_csr *slab = test_slab(whole, test_comm, &seed);
    int64_t cost[100], wanted[100];
    assert_int_equal(asparse_partition_row_cost(test_self, whole, 128, wanted), ASPARSE_OK);
    assert_int_equal(asparse_partition_row_cost(test_comm, slab, 128, cost), ASPARSE_OK);
    assert_memory_equal(cost, wanted + slab->row_begin, (size_t)slab->n_rows * sizeof *cost);
    asparse_csr_destroy(&slab);
    asparse_csr_destroy(&whole);
  }
}

static void test_row_cost_allocation_failure(void **state) {
  (void)state;
  uint64_t seed = 5;
  asparse_csr *whole = test_whole(&seed, 90, 90, 4, -1), *slab = test_slab(whole, test_comm, &seed);
  const int64_t live = asparse_memory_live_blocks();
  int64_t cost[90], failures = 0;
  for (int n = 1; n <= 40; n++) {
    asparse_memory_fail_at(test_comm->rank == n % test_comm->size ? n : 0);
    asparse_status status = asparse_partition_row_cost(test_comm, slab, 128, cost);
    asparse_memory_fail_at(0);
    int64_t same = status;
    assert_int_equal(asparse_comm_max(test_comm, &same, 1), ASPARSE_OK);
    assert_int_equal(same, status);
    failures += status != ASPARSE_OK;
    assert_int_equal(asparse_memory_live_blocks(), live);
    asparse_error_clear();
  }
  assert_true(failures >= 6 && failures < 40);
  asparse_csr_destroy(&whole);
  asparse_csr_destroy(&slab);
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_least_and_same_on_any_ranks),
      cmocka_unit_test(test_even),
      cmocka_unit_test(test_near_even_below_the_bottleneck),
      cmocka_unit_test(test_wrong_arguments),
      cmocka_unit_test(test_allocation_failure),
      cmocka_unit_test(test_row_cost),
      cmocka_unit_test(test_row_cost_on_any_ranks),
      cmocka_unit_test(test_row_cost_allocation_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, run); }
