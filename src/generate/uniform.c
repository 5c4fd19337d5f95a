/* Entries scattered over each row, every set of columns equally likely. */
#include "generate/draw.h"
#include "generate/kind.h"

static double mean_length(const asparse_generator *g) {
  return g->uniform.density > 0 ? g->uniform.density * (double)g->k : g->uniform.per_row;
}

static asparse_status prepare(asparse_generator *g) {
  asparse_uniform *u = &g->uniform;
  if (u->per_row > 0 && u->density > 0)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "uniform: give per_row or density, not both");
  if (u->per_row > (double)g->k)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "uniform: %g entries of a row do not fit into %lld columns", u->per_row,
                        (long long)g->k);
  if (u->per_row == 0 && u->density == 0) u->per_row = g->k < 16 ? (double)g->k : 16;
  return generator_set_size(g, (double)g->m, (double)g->k, (double)g->m * mean_length(g));
}

static void count(const asparse_generator *g, int64_t row_begin, int64_t n_rows, int64_t *room) {
  for (int64_t i = 0; i < n_rows; i++) {
    int64_t length = draw_spread(mean_length(g), row_begin + i);
    room[i] = length < g->k ? length : g->k;
  }
}

static int64_t columns(const asparse_generator *g, int64_t row, int64_t room, int64_t *cols) {
  draw_columns(draw_key(g->seed, DRAW_COLUMNS, row, 0), room, g->k, cols);
  return room;
}

static const generator_parameter parameters[] = {
    {"m", GENERATOR_WHOLE, offsetof(asparse_generator, m), 1, GENERATOR_MOST_ROWS, "10000", "rows"},
    {"k", GENERATOR_WHOLE, offsetof(asparse_generator, k), 1, GENERATOR_MOST_ROWS, "m", "columns"},
    {"per_row", GENERATOR_REAL, offsetof(asparse_generator, uniform.per_row), 1e-12, GENERATOR_MOST_ROWS, NULL,
     "entries of a row, a fraction spread over rows; without density 16"},
    {"density", GENERATOR_REAL, offsetof(asparse_generator, uniform.density), 1e-12, 1, NULL, "instead: part of k"},
    {.name = NULL}};

const asparse_generator_kind generator_uniform = {.name = "uniform",
                                                  .meaning = "entries scattered evenly, equally many in each row",
                                                  .parameters = parameters,
                                                  .prepare = prepare,
                                                  .count = count,
                                                  .columns = columns};
