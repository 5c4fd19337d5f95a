/* What is counted of a matrix for the cost models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "partition/partition.h"
#include "plan/profile.h"

static uint64_t next(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

/* m × k, per_row entries a row, of row i at most spread away from i·k/m; spread 0: anywhere. Columns may repeat. */
static asparse_local_csr *random_rows(int32_t m, int32_t k, int32_t per_row, int32_t spread, uint64_t seed) {
  asparse_local_csr *a = NULL;
  assert_int_equal(asparse_local_csr_create(&a, m, k, (int64_t)m * per_row, ASPARSE_BF16), ASPARSE_OK);
  for (int32_t i = 0; i < m; i++) {
    const int64_t centre = (int64_t)i * k / m, first = spread > 0 && centre > spread ? centre - spread : 0;
    const int64_t end = spread > 0 && centre + spread < k ? centre + spread : k;
    a->row_ptr[i + 1] = (int64_t)(i + 1) * per_row;
    for (int32_t e = 0; e < per_row; e++)
      a->col_idx[(int64_t)i * per_row + e] = (int32_t)(first + (int64_t)(next(&seed) % (uint64_t)(end - first)));
  }
  return a;
}

static int64_t rereads_of(const asparse_local_csr *a, int64_t n) {
  asparse_profile p = {.n = n, .dtype = ASPARSE_BF16, .b_rereads = -1};
  assert_int_equal(asparse_profile_add_rereads(a, &p), ASPARSE_OK);
  return p.b_rereads;
}

/* Misses of a cache of that many rows that drops the row touched longest ago, those of rows never seen left out. Rows
 * are a ring of before/after, at[k] its head, the last touched. */
static int64_t exact_rereads(const asparse_local_csr *a, int64_t rows) {
  const int32_t k = a->k;
  int32_t *before = malloc(((size_t)k + 1) * sizeof *before), *after = malloc(((size_t)k + 1) * sizeof *after);
  char *state = calloc((size_t)k, 1); /* 0: never seen, 1: dropped, 2: there */
  int64_t held = 0, misses = 0;
  before[k] = after[k] = k;
  for (int64_t e = 0; e < a->row_ptr[a->m]; e++) {
    const int32_t c = a->col_idx[e];
    misses += state[c] == 1;
    if (state[c] == 2) {
      after[before[c]] = after[c], before[after[c]] = before[c];
    } else if (held == rows) {
      const int32_t last = before[k];
      state[last] = 1;
      before[k] = before[last], after[before[last]] = k;
    } else {
      held++;
    }
    state[c] = 2;
    after[c] = after[k], before[c] = k, before[after[k]] = c, after[k] = c;
  }
  free(before);
  free(after);
  free(state);
  return misses;
}

/* Between what caches of all and of half the rows read again. */
static void scattered_rows_are_read_again(void **state) {
  (void)state;
  const int64_t cached = asparse_device_cached_rows(256, ASPARSE_BF16);
  for (uint64_t seed = 1; seed <= 3; seed++) {
    const int32_t k = (int32_t)cached * 2 + (int32_t)seed * 1000;
    asparse_local_csr *a = random_rows(60000, k, 8, 0, seed);
    const int64_t rereads = rereads_of(a, 256);
    assert_true(rereads >= exact_rereads(a, cached) && rereads <= exact_rereads(a, cached / 2));
    assert_true(rereads > 60000);
    assert_int_equal(rereads, rereads_of(a, 1024));
    assert_int_equal(rereads_of(a, 32), 0); /* narrow rows all fit */
    asparse_local_csr_destroy(&a);
  }
}

static void near_columns_stay(void **state) {
  (void)state;
  asparse_local_csr *a = random_rows(200000, 200000, 6, 900, 4);
  assert_int_equal(rereads_of(a, 256), 0);
  asparse_local_csr_destroy(&a);
  assert_int_equal(rereads_of(NULL, 256), 0);
}

/* Every row of the list counted as the whole is; a sample's share of its rows. */
static void counts_are_those_of_shards(void **state) {
  (void)state;
  asparse_local_csr *a = random_rows(20000, 5000, 7, 300, 5);
  a->row_ptr[a->m] -= 3;
  asparse_profile p, sample;
  assert_int_equal(asparse_profile_create(a, 64, false, &p), ASPARSE_OK);
  assert_true(p.m == 20000 && p.k == 5000 && p.n == 64 && p.nnz == 139997 && p.longest_row == 7 &&
              p.used_rows == 20000);
  for (int h = 0; h < 4; h++) {
    asparse_window_counts counts;
    assert_int_equal(asparse_count_window_columns(a, 8 << h, &counts), ASPARSE_OK);
    assert_true(counts.columns == p.windows[h].columns && counts.padded == p.windows[h].padded);
    assert_true(counts.widest == p.windows[h].widest && counts.used == p.windows[h].used);
  }
  assert_int_equal(asparse_profile_create(a, 64, true, &sample), ASPARSE_OK);
  assert_true(sample.m * 8 > 19000 && sample.m * 8 <= 20000 && sample.nnz == 7 * sample.m);
  assert_true(8 * sample.windows[1].columns > 0.95 * (double)p.windows[1].columns);
  assert_true(8 * sample.windows[1].columns < 1.05 * (double)p.windows[1].columns);
  asparse_local_csr_destroy(&a);
}

static void no_memory(void **state) {
  (void)state;
  asparse_local_csr *a = random_rows(10, 200000, 6, 900, 6);
  const int64_t live = asparse_memory_live_blocks();
  asparse_profile p = {.n = 256, .dtype = ASPARSE_BF16};
  asparse_memory_fail_at(1);
  assert_int_equal(asparse_profile_add_rereads(a, &p), ASPARSE_ERR_MEMORY);
  asparse_memory_fail_at(0);
  asparse_error_clear();
  assert_int_equal(asparse_memory_live_blocks(), live);
  asparse_local_csr_destroy(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(scattered_rows_are_read_again),
                                     cmocka_unit_test(near_columns_stay), cmocka_unit_test(counts_are_those_of_shards),
                                     cmocka_unit_test(no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
