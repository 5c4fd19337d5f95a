/* What a kind of matrix consists of. Inside src/generate only. */
#ifndef ASPARSE_GENERATE_KIND_H
#define ASPARSE_GENERATE_KIND_H

#include "generate/generate.h"

/* The largest number of rows, columns, nodes along a side … a description may name. */
#define GENERATOR_MOST_ROWS ((double)((int64_t)1 << 40))

typedef enum generator_number {
  GENERATOR_REAL = 0, /* double from low to high */
  GENERATOR_WHOLE,    /* int64_t from low to high */
  GENERATOR_EITHER    /* int64_t, low or high */
} generator_number;

typedef struct generator_parameter {
  const char *name;
  generator_number number;
  size_t offset; /* in asparse_generator */
  double low, high;
  const char *otherwise; /* the default: a number, or the name of an earlier parameter */
  const char *meaning;
} generator_parameter;

typedef struct asparse_generator_kind {
  const char *name, *meaning;
  const generator_parameter *parameters; /* ends with a NULL name */

  /* Checks parameters together; sets m, k, expected_entries and what is derived. */
  asparse_status (*prepare)(asparse_generator *g);

  /* room[i] = entries that row row_begin + i needs at most; [n_rows]. */
  void (*count)(const asparse_generator *g, int64_t row_begin, int64_t n_rows, int64_t *room);

  /* The columns of a row, sorted and unique, into cols[room]; returns how many. */
  int64_t (*columns)(const asparse_generator *g, int64_t row, int64_t room, int64_t *cols);

  /* Symmetric positive definite values for row i of the slab; NULL where the kind has none. */
  void (*spd_values)(const asparse_generator *g, asparse_csr *a, int64_t i);

  /* As asparse_generator_cut; NULL: even rows. */
  int64_t (*cut)(const asparse_generator *g, int parts, int part);
} asparse_generator_kind;

extern const asparse_generator_kind generator_grid2d, generator_grid3d, generator_fem2d, generator_fem3d,
    generator_banded, generator_rmat, generator_uniform, generator_blocks;

/* Sets shape and expected entries, or ERR_USAGE when they are beyond what int64 indices are good for. */
asparse_status generator_set_size(asparse_generator *g, double m, double k, double entries);

#endif
