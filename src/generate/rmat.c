/* Power-law graphs: R-MAT (Chakrabarti, Zhan, Faloutsos, SDM 2004).
 *
 * R-MAT drops each edge into one of four quadrants of the matrix, again and again down to one element. Seen by rows:
 * of the edges in a range of rows, Binomial(edges, a + b) lie in its upper half, and once the row of an edge is
 * known, each bit of its column depends on the same bit of the row alone. So rows are made independently of each
 * other, from one descent to each row, and the edges follow the same distribution as those dropped one by one. */
#include <math.h>
#include <string.h>

#include "base/comm.h"
#include "generate/draw.h"
#include "generate/kind.h"

static asparse_status prepare(asparse_generator *g) {
  asparse_rmat *r = &g->rmat;
  double n = ldexp(1, (int)r->scale), d = 1 - r->a - r->b - r->c;
  if (d < -1e-12)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "rmat: a + b + c is %g; d is the rest to 1, so they may be 1 at most",
                        r->a + r->b + r->c);
  if (d < 0) d = 0;
  r->upper = r->a + r->b;
  r->right_of[0] = r->upper > 0 ? r->b / r->upper : 0;
  r->right_of[1] = r->c + d > 0 ? d / (r->c + d) : 0;
  PASS(generator_set_size(g, n, n, round(n * r->edges)));
  r->n_edges = g->expected_entries;
  return ASPARSE_OK;
}

/* Edges in the upper half of the 2^level rows from `first` on, which hold `edges`. */
static int64_t upper_edges(const asparse_generator *g, int level, int64_t first, int64_t edges) {
  return draw_binomial(draw_key(g->seed, DRAW_SPLIT, level, first), edges, g->rmat.upper);
}

/* Adds the edges of each row that lies in [begin, end) to room[row - begin]. */
static void descend(const asparse_generator *g, int level, int64_t first, int64_t edges, int64_t begin, int64_t end,
                    int64_t *room) {
  const int64_t size = (int64_t)1 << level, half = size / 2;
  if (edges == 0 || first >= end || first + size <= begin) return;
  if (level == 0) {
    room[first - begin] = edges;
    return;
  }
  int64_t upper = upper_edges(g, level, first, edges);
  descend(g, level - 1, first, upper, begin, end, room);
  descend(g, level - 1, first + half, edges - upper, begin, end, room);
}

static void count(const asparse_generator *g, int64_t row_begin, int64_t n_rows, int64_t *room) {
  memset(room, 0, (size_t)n_rows * sizeof *room);
  descend(g, (int)g->rmat.scale, 0, g->rmat.n_edges, row_begin, row_begin + n_rows, room);
}

static int64_t columns(const asparse_generator *g, int64_t row, int64_t room, int64_t *cols) {
  for (int64_t e = 0; e < room; e++) {
    uint64_t key = draw_key(g->seed, DRAW_EDGE, row, e);
    cols[e] = 0;
    for (int level = (int)g->rmat.scale - 1; level >= 0; level--)
      cols[e] = 2 * cols[e] + (draw_unit(key, level) < g->rmat.right_of[row >> level & 1]);
  }
  return draw_sort_unique(cols, room);
}

/* The row that holds the first edge of the part, edges counted row by row. */
static int64_t cut(const asparse_generator *g, int parts, int part) {
  int64_t edge = asparse_even_start(g->rmat.n_edges, parts, part), edges = g->rmat.n_edges, row = 0;
  for (int level = (int)g->rmat.scale; level > 0; level--) {
    int64_t upper = upper_edges(g, level, row, edges);
    if (edge < upper) {
      edges = upper;
    } else {
      edge -= upper;
      edges -= upper;
      row += (int64_t)1 << (level - 1);
    }
  }
  return row;
}

#define QUADRANT(name, otherwise, where)                                                                               \
  { #name, false, offsetof(asparse_generator, rmat.name), 0, 1, otherwise, "chance of the " where " quadrant" }

static const generator_parameter parameters[] = {
    {"scale", GENERATOR_WHOLE, offsetof(asparse_generator, rmat.scale), 1, 40, "16", "2^scale vertices"},
    {"edges", GENERATOR_REAL, offsetof(asparse_generator, rmat.edges), 0, 1 << 20, "16", "of a vertex, on average"},
    QUADRANT(a, "0.57", "upper left"),
    QUADRANT(b, "0.19", "upper right"),
    QUADRANT(c, "0.19", "lower left"),
    {.name = NULL}};

const asparse_generator_kind generator_rmat = {
    .name = "rmat",
    .meaning = "power-law graph (R-MAT); the chance of the lower right quadrant is the rest; duplicates are dropped",
    .parameters = parameters,
    .prepare = prepare,
    .count = count,
    .columns = columns,
    .cut = cut};
