/* Dense blocks scattered over each row of blocks, as pruned weights have them. */
#include <math.h>

#include "generate/draw.h"
#include "generate/kind.h"

static asparse_status prepare(asparse_generator *g) {
  asparse_blocks *b = &g->blocks;
  double filled = 1 - b->empty;
  b->per_row = filled * ceil((double)g->k / (double)b->size);
  return generator_set_size(g, (double)g->m, (double)g->k,
                            (double)g->m * fmin(b->per_row * (double)b->size, (double)g->k));
}

static int64_t blocks_across(const asparse_generator *g) { return (g->k - 1) / g->blocks.size + 1; }

/* Filled blocks of the row of blocks that holds a row. */
static int64_t filled_blocks(const asparse_generator *g, int64_t row) {
  int64_t filled = draw_spread(g->blocks.per_row, row / g->blocks.size), most = blocks_across(g);
  return filled < most ? filled : most;
}

static void count(const asparse_generator *g, int64_t row_begin, int64_t n_rows, int64_t *room) {
  for (int64_t i = 0; i < n_rows; i++) room[i] = filled_blocks(g, row_begin + i) * g->blocks.size;
}

static int64_t columns(const asparse_generator *g, int64_t row, int64_t room, int64_t *cols) {
  const int64_t size = g->blocks.size, filled = room / size;
  draw_columns(draw_key(g->seed, DRAW_COLUMNS, row / size, 0), filled, blocks_across(g), cols);
  if (filled == 0) return 0;
  /* Each block column becomes its columns, from the last one on, so that none is overwritten unread. */
  int64_t cut_off = (cols[filled - 1] + 1) * size - g->k;
  for (int64_t f = filled - 1; f >= 0; f--) {
    int64_t block = cols[f];
    for (int64_t c = 0; c < size; c++) cols[f * size + c] = block * size + c;
  }
  return cut_off > 0 ? room - cut_off : room; /* the last block may stick out of the matrix */
}

static const generator_parameter parameters[] = {
    {"m", GENERATOR_WHOLE, offsetof(asparse_generator, m), 1, GENERATOR_MOST_ROWS, "4096", "rows"},
    {"k", GENERATOR_WHOLE, offsetof(asparse_generator, k), 1, GENERATOR_MOST_ROWS, "m", "columns"},
    {"size", GENERATOR_WHOLE, offsetof(asparse_generator, blocks.size), 1, 4096, "64", "rows and columns of a block"},
    {"empty", GENERATOR_REAL, offsetof(asparse_generator, blocks.empty), 0, 1, "0.9",
     "part of the blocks that is empty"},
    {.name = NULL}};

const asparse_generator_kind generator_blocks = {.name = "blocks",
                                                 .meaning = "dense blocks scattered evenly over each row of blocks",
                                                 .parameters = parameters,
                                                 .prepare = prepare,
                                                 .count = count,
                                                 .columns = columns};
