/* The work list of the register-gather kernel: every tile once, in groups as the limits say. Host only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/shard.h"
#include "kernels/wcsr_groups.h"

enum { W = ASPARSE_WCSR_WARPS };

/* Windows of 0, 1, 2, … tiles in a mixed order, whose columns are their places; no values are needed. */
static asparse_wcsr windows(int32_t n, int64_t largest) {
  asparse_wcsr a = {.m = 8 * n, .k = 100000, .window_height = 8, .n_windows = n};
  a.window_row_ptr = calloc((size_t)n + 1, sizeof *a.window_row_ptr);
  for (int32_t w = 0; w < n; w++)
    a.window_row_ptr[w + 1] = a.window_row_ptr[w] + w * INT64_C(7919) % (largest + 1) * ASPARSE_TILE_COLUMNS;
  a.window_col_idx = malloc((size_t)(a.window_row_ptr[n] + 1) * sizeof *a.window_col_idx);
  for (int64_t i = 0; i < a.window_row_ptr[n]; i++) a.window_col_idx[i] = (int32_t)i;
  return a;
}

static int64_t tiles_of(const asparse_wcsr *a, int32_t w) {
  return (a->window_row_ptr[w + 1] - a->window_row_ptr[w]) / ASPARSE_TILE_COLUMNS;
}

static void free_windows(asparse_wcsr *a) {
  free(a->window_row_ptr);
  free(a->window_col_idx);
}

static void check_first_columns(const asparse_wcsr_share *s) {
  for (int32_t i = 0; i < ASPARSE_TILE_COLUMNS; i++)
    assert_int_equal(s->columns[i], s->n_tiles > 0 ? s->first_tile * ASPARSE_TILE_COLUMNS + i : -1);
}

/* A window's shares follow each other without gaps, and its parts are slots in order. */
static void check_group(const asparse_wcsr *a, const asparse_wcsr_groups *g, asparse_wcsr_limits limits, int64_t *next,
                        const asparse_wcsr_share *shares) {
  for (int i = 0; i < W; i++) {
    const asparse_wcsr_share *s = shares + i;
    if (s->part == ASPARSE_WCSR_IDLE) continue;
    const int64_t tiles = tiles_of(a, s->window);
    assert_int_equal(s->first_tile, next[s->window]);
    next[s->window] += s->n_tiles;
    check_first_columns(s);
    if (s->part == ASPARSE_WCSR_ALONE) {
      assert_true(s->n_tiles == tiles && tiles <= limits.alone);
      continue;
    }
    assert_true(tiles > limits.alone && s->window == shares->window && s->part == shares->part);
    assert_true(s->n_tiles <= 2 * limits.most);
    if (s->part == ASPARSE_WCSR_SHARED) continue;
    const asparse_wcsr_split *split = g->splits + g->slot_split[s->part];
    assert_true(split->window == s->window && s->part >= split->first_slot);
    assert_true(s->part < split->first_slot + split->n_slots && split->n_slots > 1);
  }
}

static void check(const asparse_wcsr *a, asparse_wcsr_limits limits) {
  asparse_wcsr_groups *g = NULL;
  assert_int_equal(asparse_wcsr_groups_build(a, limits, &g), ASPARSE_OK);
  int64_t *next = calloc((size_t)a->n_windows + 1, sizeof *next);
  int32_t n_shared = 0, slots = 0;
  for (int32_t w = 0; w < a->n_windows; w++) next[w] = a->window_row_ptr[w] / ASPARSE_TILE_COLUMNS;
  for (int32_t i = 0; i < g->n_groups; i++) {
    check_group(a, g, limits, next, g->shares + (int64_t)i * W);
    n_shared += g->shares[(int64_t)i * W].part != ASPARSE_WCSR_ALONE;
    assert_int_equal(tiles_of(a, g->shares[(int64_t)i * W].window) > 0, i < g->n_used);
  }
  for (int32_t w = 0; w < a->n_windows; w++) assert_int_equal(next[w], a->window_row_ptr[w + 1] / ASPARSE_TILE_COLUMNS);
  for (int32_t i = 0; i < g->n_splits; i++) {
    assert_int_equal(g->splits[i].first_slot, slots);
    slots += g->splits[i].n_slots;
  }
  assert_int_equal(slots, g->n_slots);
  assert_int_equal(n_shared, g->n_shared);
  free(next);
  asparse_wcsr_groups_destroy(&g);
}

static void every_tile_once(void **state) {
  (void)state;
  static const int32_t counts[] = {0, 1, 3, 4, 5, 1000};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    for (int64_t largest = 0; largest < 2000; largest = 3 * largest + 1) {
      asparse_wcsr a = windows(counts[i], largest);
      check(&a, (asparse_wcsr_limits){1, 1});
      check(&a, (asparse_wcsr_limits){6, 16});
      check(&a, asparse_wcsr_limits_for(a.window_row_ptr[a.n_windows] / ASPARSE_TILE_COLUMNS, 8, 256));
      check(&a, (asparse_wcsr_limits){1 << 20, 16});
      free_windows(&a);
    }
  }
}

/* Much work leaves windows alone, little shares them. */
static void limits_follow_the_work(void **state) {
  (void)state;
  const asparse_wcsr_limits little = asparse_wcsr_limits_for(500, 16, 64),
                            much = asparse_wcsr_limits_for(1000000, 16, 64);
  assert_true(little.alone < 5 && little.most < 16);
  assert_true(much.alone > 30 && much.most > 16);
  assert_true(asparse_wcsr_limits_for(1000000, 16, 1024).alone >= much.alone);
}

static void allocation_failures(void **state) {
  (void)state;
  asparse_wcsr a = windows(100, 300);
  asparse_status status = ASPARSE_ERR_MEMORY;
  for (int64_t n = 1; status != ASPARSE_OK; n++) {
    asparse_wcsr_groups *g = NULL;
    assert_true(n < 10);
    asparse_memory_fail_at(n);
    status = asparse_wcsr_groups_build(&a, (asparse_wcsr_limits){2, 2}, &g);
    asparse_memory_fail_at(0);
    asparse_error_clear();
    asparse_wcsr_groups_destroy(&g);
    assert_int_equal(asparse_memory_live_blocks(), 0);
  }
  free_windows(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_tile_once), cmocka_unit_test(limits_follow_the_work),
                                     cmocka_unit_test(allocation_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
