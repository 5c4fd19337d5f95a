/* Grids of nodes in two and three dimensions, with one or more unknowns a node. */
#include <math.h>

#include "generate/draw.h"
#include "generate/kind.h"

typedef struct node {
  int64_t x, y, z;
} node;

static node node_of(const asparse_generator_grid *grid, int64_t row) {
  int64_t number = row / grid->unknowns;
  return (node){number % grid->nx, number / grid->nx % grid->ny, number / grid->nx / grid->ny};
}

/* Stencils of 5 and 7 points reach along the axes only, those of 9 and 27 over the corners as well. */
static bool is_star(const asparse_generator_grid *grid) { return grid->points == 5 || grid->points == 7; }

static asparse_status prepare(asparse_generator *g) {
  asparse_generator_grid *grid = &g->grid;
  if (grid->nz == 0) grid->nz = 1;
  if (grid->unknowns == 0) grid->unknowns = 1;
  double rows = (double)grid->nx * (double)grid->ny * (double)grid->nz * (double)grid->unknowns;
  return generator_set_size(g, rows, rows, rows * (double)grid->points * (double)grid->unknowns);
}

/* Neighbours before and after along one axis. */
static int64_t neighbours(int64_t at, int64_t n) { return (at > 0) + (at < n - 1); }

static void count(const asparse_generator *g, int64_t row_begin, int64_t n_rows, int64_t *room) {
  const asparse_generator_grid *grid = &g->grid;
  for (int64_t i = 0; i < n_rows; i++) {
    node at = node_of(grid, row_begin + i);
    int64_t x = neighbours(at.x, grid->nx), y = neighbours(at.y, grid->ny), z = neighbours(at.z, grid->nz);
    room[i] = grid->unknowns * (is_star(grid) ? 1 + x + y + z : (1 + x) * (1 + y) * (1 + z));
  }
}

static int64_t columns(const asparse_generator *g, int64_t row, int64_t room, int64_t *cols) {
  const asparse_generator_grid *grid = &g->grid;
  const node at = node_of(grid, row);
  int64_t n = 0;
  for (int d = 0; d < 27; d++) { /* offsets in the order of node numbers */
    int dx = d % 3 - 1, dy = d / 3 % 3 - 1, dz = d / 9 - 1;
    node to = {at.x + dx, at.y + dy, at.z + dz};
    if (is_star(grid) && (dx != 0) + (dy != 0) + (dz != 0) > 1) continue;
    if (to.x < 0 || to.y < 0 || to.z < 0 || to.x >= grid->nx || to.y >= grid->ny || to.z >= grid->nz) continue;
    int64_t first = (to.x + grid->nx * (to.y + grid->ny * to.z)) * grid->unknowns;
    for (int64_t u = 0; u < grid->unknowns; u++) cols[n++] = first + u;
  }
  (void)room;
  return n;
}

/* The Laplacian with zero boundary values: -1 to each neighbour, one less than the stencil's points on the diagonal. */
static void laplacian(const asparse_generator *g, asparse_csr *a, int64_t i) {
  for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
    bool diagonal = a->col_idx[e] == a->row_begin + i;
    asparse_store(a->dtype, a->values, e, diagonal ? (double)(g->grid.points - 1) : -1.0);
  }
}

/* Dense symmetric blocks of random numbers; diagonal = 1 + Σ |others of the row|, so that it dominates. */
static void stiffness(const asparse_generator *g, asparse_csr *a, int64_t i) {
  const int64_t row = a->row_begin + i;
  int64_t diagonal = a->row_ptr[i];
  double sum = 1;
  for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
    int64_t col = a->col_idx[e];
    if (col == row) {
      diagonal = e;
      continue;
    }
    double value = draw_signed(draw_key(g->seed, DRAW_VALUE, row < col ? row : col, row < col ? col : row));
    asparse_store(a->dtype, a->values, e, value);
    sum += fabs(value);
  }
  asparse_store(a->dtype, a->values, diagonal, sum);
}

#define SIDE(axis, otherwise)                                                                                          \
  {                                                                                                                    \
    "n" #axis, GENERATOR_WHOLE, offsetof(asparse_generator, grid.n##axis), 1, GENERATOR_MOST_ROWS, otherwise,          \
        "nodes along " #axis                                                                                           \
  }
#define POINTS(star, box, otherwise)                                                                                   \
  {                                                                                                                    \
    "points", GENERATOR_EITHER, offsetof(asparse_generator, grid.points), star, box, otherwise,                        \
        "a node and those it meets"                                                                                    \
  }
#define UNKNOWNS                                                                                                       \
  { "unknowns", GENERATOR_WHOLE, offsetof(asparse_generator, grid.unknowns), 1, 1024, "3", "rows of a node" }

/* Kinds without nz or unknowns leave them 0. */
static const generator_parameter grid2d_parameters[] = {
    SIDE(x, "1000"), SIDE(y, "nx"), POINTS(5, 9, "5"), {.name = NULL}};
static const generator_parameter grid3d_parameters[] = {
    SIDE(x, "100"), SIDE(y, "nx"), SIDE(z, "nx"), POINTS(7, 27, "7"), {.name = NULL}};
static const generator_parameter fem2d_parameters[] = {
    SIDE(x, "300"), SIDE(y, "nx"), UNKNOWNS, POINTS(5, 9, "9"), {.name = NULL}};
static const generator_parameter fem3d_parameters[] = {SIDE(x, "30"), SIDE(y, "nx"),       SIDE(z, "nx"),
                                                       UNKNOWNS,      POINTS(7, 27, "27"), {.name = NULL}};

#define KIND(kind, words, values)                                                                                      \
  const asparse_generator_kind generator_##kind = {.name = #kind,                                                      \
                                                   .meaning = words,                                                   \
                                                   .parameters = kind##_parameters,                                    \
                                                   .prepare = prepare,                                                 \
                                                   .count = count,                                                     \
                                                   .columns = columns,                                                 \
                                                   .spd_values = values}

KIND(grid2d, "plane grid; values of the Laplacian", laplacian);
KIND(grid3d, "grid in space; values of the Laplacian", laplacian);
KIND(fem2d, "plane finite elements: dense symmetric node blocks", stiffness);
KIND(fem3d, "finite elements in space: dense symmetric node blocks", stiffness);
