/* Groups of block rows: every block row and block once, block rows with common columns together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/dense.h"
#include "base/shard.h"
#include "kernels/bcsr_groups.h"

/* The pattern of block rows as bits of up to 64 block columns. */
static asparse_bcsr *from_patterns(const uint64_t *patterns, int32_t n_block_rows, int32_t block_cols) {
  asparse_bcsr *a = NULL;
  int64_t blocks = 0;
  for (int32_t i = 0; i < n_block_rows; i++) blocks += __builtin_popcountll(patterns[i]);
  assert_int_equal(asparse_bcsr_create(&a, n_block_rows * 16, block_cols * 16, 16, blocks, ASPARSE_BF16), ASPARSE_OK);
  a->block_row_ptr[0] = blocks = 0;
  for (int32_t i = 0; i < n_block_rows; i++) {
    for (uint64_t left = patterns[i]; left != 0; left &= left - 1) a->block_col_idx[blocks++] = __builtin_ctzll(left);
    a->block_row_ptr[i + 1] = blocks;
  }
  return a;
}

static uint64_t random_pattern(uint64_t *seed, int percent) {
  uint64_t pattern = 0;
  for (int bit = 0; bit < 64; bit++) pattern |= (uint64_t)(asparse_mix64((*seed)++) % 100 < (uint64_t)percent) << bit;
  return pattern;
}

/* Block columns of neighbours taken together, summed. */
static int64_t columns_of_neighbours(const uint64_t *patterns, int32_t n, int32_t rows) {
  int64_t sum = 0;
  for (int32_t first = 0; first < n; first += rows) {
    uint64_t together = 0;
    for (int32_t i = first; i < n && i < first + rows; i++) together |= patterns[i];
    sum += __builtin_popcountll(together);
  }
  return sum;
}

/* Every block row in one group, every block in one step of its group, at its column; columns increase. */
static void check_groups(const asparse_bcsr *a, const asparse_bcsr_groups *g) {
  const int64_t n_blocks = a->block_row_ptr[a->n_block_rows];
  char *row_seen = calloc((size_t)a->n_block_rows + 1, 1), *block_seen = calloc((size_t)n_blocks + 1, 1);
  int64_t rows = 0, blocks = 0;
  for (int32_t i = 0; i < g->n_groups * g->rows; i++) {
    const int32_t row = g->block_rows[i];
    if (row < 0) continue;
    assert_true(row < a->n_block_rows && !row_seen[row]);
    row_seen[row] = 1;
    rows++;
  }
  assert_int_equal(rows, a->n_block_rows);
  assert_int_equal(g->step_ptr[0], 0);
  assert_int_equal(g->step_ptr[g->n_groups], g->n_steps);
  for (int32_t group = 0; group < g->n_groups; group++)
    for (int32_t s = g->step_ptr[group]; s < g->step_ptr[group + 1]; s++) {
      assert_true(s == g->step_ptr[group] || g->steps[s].block_col > g->steps[s - 1].block_col);
      for (int32_t r = 0; r < ASPARSE_BCSR_MOST_ROWS; r++) {
        const int32_t block = g->steps[s].block[r];
        if (block < 0) continue;
        const int32_t row = g->block_rows[group * g->rows + r];
        assert_true(r < g->rows && block >= a->block_row_ptr[row] && block < a->block_row_ptr[row + 1]);
        assert_int_equal(a->block_col_idx[block], g->steps[s].block_col);
        assert_false(block_seen[block]);
        block_seen[block] = 1;
        blocks++;
      }
    }
  assert_int_equal(blocks, n_blocks);
  free(row_seen);
  free(block_seen);
}

static void random_blocks(void **state) {
  (void)state;
  static const int32_t sizes[] = {0, 1, 2, 5, 296, 480, 481, 1003};
  uint64_t seed = 7, patterns[1003];
  for (int32_t i = 0; i < 1003; i++) patterns[i] = random_pattern(&seed, i % 50 == 0 ? 0 : 10);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    asparse_bcsr *a = from_patterns(patterns, sizes[s], 64);
    for (int32_t rows = 1; rows <= ASPARSE_BCSR_MOST_ROWS; rows++) {
      asparse_bcsr_groups *g = NULL;
      assert_int_equal(asparse_bcsr_groups_build(a, rows, &g), ASPARSE_OK);
      check_groups(a, g);
      if (sizes[s] > 200 && rows > 1)
        assert_true((double)g->n_steps <
                    (rows == 2 ? 0.9 : 0.85) * (double)columns_of_neighbours(patterns, sizes[s], rows));
      asparse_bcsr_groups_destroy(&g);
      assert_null(g);
    }
    asparse_bcsr_destroy(&a);
  }
}

/* Three of each pattern, far apart, meet again. */
static void equal_rows_meet(void **state) {
  (void)state;
  enum { PATTERNS = 60, COPIES = 3 };
  uint64_t seed = 1, patterns[PATTERNS * COPIES];
  int64_t least = 0;
  for (int i = 0; i < PATTERNS; i++) {
    patterns[i] = random_pattern(&seed, 20);
    least += __builtin_popcountll(patterns[i]);
    for (int copy = 1; copy < COPIES; copy++) patterns[i + copy * PATTERNS] = patterns[i];
  }
  asparse_bcsr *a = from_patterns(patterns, PATTERNS * COPIES, 64);
  asparse_bcsr_groups *g = NULL;
  assert_int_equal(asparse_bcsr_groups_build(a, COPIES, &g), ASPARSE_OK);
  assert_int_equal(g->n_steps, least);
  asparse_bcsr_groups_destroy(&g);
  asparse_bcsr_destroy(&a);
}

static void errors(void **state) {
  (void)state;
  const uint64_t patterns[2] = {3, 5};
  asparse_bcsr *a = from_patterns(patterns, 2, 3);
  asparse_bcsr_groups *g = NULL;
  for (int32_t rows = 0; rows <= 4; rows += 4) {
    assert_int_equal(asparse_bcsr_groups_build(a, rows, &g), ASPARSE_ERR_USAGE);
    asparse_error_clear();
  }
  const int64_t live = asparse_memory_live_blocks();
  for (int n = 1; n <= 6; n++) {
    asparse_memory_fail_at(n);
    assert_int_equal(asparse_bcsr_groups_build(a, 2, &g), ASPARSE_ERR_MEMORY);
    asparse_memory_fail_at(0);
    asparse_error_clear();
    assert_null(g);
    assert_int_equal(asparse_memory_live_blocks(), live);
  }
  asparse_bcsr_destroy(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_blocks), cmocka_unit_test(equal_rows_meet),
                                     cmocka_unit_test(errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
