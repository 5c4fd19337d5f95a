/* A band around the diagonal, full or with random gaps. */
#include "generate/draw.h"
#include "generate/kind.h"

static asparse_status prepare(asparse_generator *g) {
  double n = (double)g->m, width = 2 * (double)g->banded.half + 1;
  return generator_set_size(g, n, n, n + n * g->banded.fill * (width < n ? width - 1 : n - 1));
}

/* Is (row, col) of the band stored? */
static bool is_filled(const asparse_generator *g, int64_t row, int64_t col) {
  return row == col || g->banded.fill >= 1 || draw_unit(draw_key(g->seed, DRAW_BAND, row, col), 0) < g->banded.fill;
}

/* cols NULL: counts only. */
static int64_t walk_band(const asparse_generator *g, int64_t row, int64_t *cols) {
  const int64_t half = g->banded.half;
  int64_t first = row > half ? row - half : 0, last = row < g->k - 1 - half ? row + half : g->k - 1, n = 0;
  for (int64_t col = first; col <= last; col++) {
    if (!is_filled(g, row, col)) continue;
    if (cols) cols[n] = col;
    n++;
  }
  return n;
}

static void count(const asparse_generator *g, int64_t row_begin, int64_t n_rows, int64_t *room) {
  for (int64_t i = 0; i < n_rows; i++) room[i] = walk_band(g, row_begin + i, NULL);
}

static int64_t columns(const asparse_generator *g, int64_t row, int64_t room, int64_t *cols) {
  (void)room;
  return walk_band(g, row, cols);
}

static const generator_parameter parameters[] = {
    {"n", GENERATOR_WHOLE, offsetof(asparse_generator, m), 1, GENERATOR_MOST_ROWS, "100000", "rows and columns"},
    {"half", GENERATOR_WHOLE, offsetof(asparse_generator, banded.half), 0, GENERATOR_MOST_ROWS, "8",
     "|row - column| at most"},
    {"fill", GENERATOR_REAL, offsetof(asparse_generator, banded.fill), 0, 1, "1",
     "part of the band that is stored; the diagonal always is"},
    {.name = NULL}};

const asparse_generator_kind generator_banded = {.name = "banded",
                                                 .meaning = "band around the diagonal",
                                                 .parameters = parameters,
                                                 .prepare = prepare,
                                                 .count = count,
                                                 .columns = columns};
