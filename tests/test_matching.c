/* The size of a maximum matching, and the cover made of it, against the weight of the best vertex cover, found by
 * trying all sets of rows. */
#include "plan/matching.h"
#include "slabs.h"

enum { MOST_ROWS = 10, MOST_COLS = 14 };

/* Rows of the set and the columns of all other rows cover every edge. */
static int64_t least_cover(const uint32_t *cols_of_row, int n_rows, int row_weight) {
  int64_t least = INT64_MAX;
  for (uint32_t set = 0; set < UINT32_C(1) << n_rows; set++) {
    uint32_t cols = 0;
    for (int i = 0; i < n_rows; i++) {
      if (!(set >> i & 1)) cols |= cols_of_row[i];
    }
    const int64_t weight = row_weight * (int64_t)__builtin_popcount(set) + __builtin_popcount(cols);
    if (weight < least) least = weight;
  }
  return least;
}

/* Columns without edges are left out, as callers do, or kept. */
static asparse_bipartite make_graph(const uint32_t *cols_of_row, int n_rows, bool keep_empty, int capacity,
                                    int32_t *col_ptr, int32_t *rows) {
  asparse_bipartite graph = {0, col_ptr, rows, capacity};
  int32_t n = 0;
  for (int j = 0; j < MOST_COLS; j++) {
    const int32_t begin = n;
    for (int i = 0; i < n_rows; i++) {
      if (cols_of_row[i] >> j & 1) rows[n++] = i;
    }
    if (n > begin || keep_empty) col_ptr[graph.n_cols++] = begin;
  }
  col_ptr[graph.n_cols] = n;
  return graph;
}

/* Of the columns that are covered, and of the rows that the others touch. */
static int64_t cover_weight(const asparse_bipartite *graph, asparse_matching *matching) {
  bool covered[MOST_COLS], touched[MOST_ROWS] = {false};
  int64_t weight = 0;
  asparse_matching_cover(graph, matching, covered);
  for (int c = 0; c < graph->n_cols; c++) {
    weight += covered[c];
    for (int32_t e = graph->col_ptr[c]; e < graph->col_ptr[c + 1] && !covered[c]; e++) {
      weight += touched[graph->rows[e]] ? 0 : graph->row_capacity;
      touched[graph->rows[e]] = true;
    }
  }
  return weight;
}

static void size_equals_least_cover(void **unused) {
  (void)unused;
  uint64_t state = 1;
  for (int capacity = 1; capacity <= 3; capacity++) {
    asparse_matching matching;
    assert_int_equal(asparse_matching_create(&matching, MOST_ROWS, MOST_COLS, capacity), ASPARSE_OK);
    for (int trial = 0; trial < 1000; trial++) { /* one workspace serves all */
      uint32_t cols_of_row[MOST_ROWS] = {0};
      int32_t col_ptr[MOST_COLS + 1], rows[MOST_ROWS * MOST_COLS];
      const int n_rows = 1 + (int)test_random(&state, MOST_ROWS);
      const int64_t sparsity = 1 + test_random(&state, 6);
      for (int i = 0; i < n_rows; i++) {
        for (int j = 0; j < MOST_COLS; j++) cols_of_row[i] |= (uint32_t)(test_random(&state, sparsity) == 0) << j;
      }
      const asparse_bipartite graph = make_graph(cols_of_row, n_rows, trial % 2, capacity, col_ptr, rows);
      assert_int_equal(asparse_matching_size(&graph, &matching), least_cover(cols_of_row, n_rows, capacity));
      assert_int_equal(cover_weight(&graph, &matching), least_cover(cols_of_row, n_rows, capacity));
    }
    asparse_matching_free(&matching);
  }
}

/* Edges (i, i) and (i, i + 1), columns from last to first: greedy choices have to be undone along one long path. */
static void long_paths(void **unused) {
  (void)unused;
  enum { N = 10000 };
  static int32_t col_ptr[N + 1], rows[2 * N];
  for (int32_t c = 0; c < N; c++) { /* column c has rows c - 1 and c, but column 0 row 0 alone and last in order */
    const int32_t at = c == 0 ? 0 : 2 * c - 1;
    col_ptr[c] = at;
    rows[at] = c == 0 ? 0 : c - 1;
    if (c > 0) rows[at + 1] = c;
  }
  col_ptr[N] = 2 * N - 1;
  const asparse_bipartite graph = {N, col_ptr, rows, 1};
  asparse_matching matching;
  assert_int_equal(asparse_matching_create(&matching, N, N, 1), ASPARSE_OK);
  assert_int_equal(asparse_matching_size(&graph, &matching), N);
  asparse_matching_free(&matching);
}

static int group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(size_equals_least_cover), cmocka_unit_test(long_paths)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
