/* Sparse matrices from a short description: grids, finite elements, bands, power-law graphs, random, blocks.
 *
 * Every row is a pure function of description, seed and global row: any cut into slabs gives the same matrix, and
 * so does any number of ranks. Local, no communication; threaded inside. */
#ifndef ASPARSE_GENERATE_H
#define ASPARSE_GENERATE_H

#include <stdio.h>

#include "base/csr.h"

/* Where the values of entries come from. */
typedef enum asparse_generator_values {
  ASPARSE_VALUES_RANDOM = 0, /* uniform in [-1, 1), by global position */
  ASPARSE_VALUES_ONE,
  ASPARSE_VALUES_SPD /* symmetric positive definite: grids and finite elements only */
} asparse_generator_values;

/* Grids and finite elements: nodes (x, y, z) numbered x fastest, `unknowns` rows a node. */
typedef struct asparse_generator_grid {
  int64_t nx, ny, nz, points, unknowns;
} asparse_generator_grid;

typedef struct asparse_banded {
  int64_t half; /* |row - column| ≤ half */
  double fill;  /* part of the band that is stored; the diagonal always is */
} asparse_banded;

typedef struct asparse_rmat {
  int64_t scale;
  double edges;              /* a vertex, before duplicates are dropped */
  double a, b, c;            /* of the quadrants; d is the rest */
  double upper, right_of[2]; /* chance of the upper half; of the right half, given upper (0) or lower (1) */
  int64_t n_edges;           /* of the whole graph */
} asparse_rmat;

typedef struct asparse_uniform {
  double per_row, density; /* entries of a row on average; the same as a part of k */
} asparse_uniform;

typedef struct asparse_blocks {
  int64_t size;   /* rows and columns of a block */
  double empty;   /* part of the blocks without entries */
  double per_row; /* filled blocks of a row of blocks, on average */
} asparse_blocks;

/* A parsed description. Holds no memory; may be copied. */
typedef struct asparse_generator {
  const struct asparse_generator_kind *kind;
  int64_t m, k;
  int64_t expected_entries; /* of the whole matrix; estimates memory */
  uint64_t seed;
  asparse_dtype dtype;
  asparse_generator_values values;
  union {
    asparse_generator_grid grid;
    asparse_banded banded;
    asparse_rmat rmat;
    asparse_uniform uniform;
    asparse_blocks blocks;
  };
} asparse_generator;

enum { ASPARSE_GENERATOR_TEXT = 256 };

/* Reads "kind", "kind:name=value,…" or, in the order of asparse_generator_list, "kind:value,…"; what is not given
 * has its default. dtype: fp64, fp32 or bf16. ERR_USAGE says what is wrong and what is allowed. */
asparse_status asparse_generator_parse(const char *text, uint64_t seed, asparse_dtype dtype, asparse_generator *g);

/* The description with every parameter, which parses to the same matrix. */
void asparse_generator_text(const asparse_generator *g, char text[ASPARSE_GENERATOR_TEXT]);

/* All kinds, their parameters, what they take and their defaults. */
void asparse_generator_list(FILE *file);

/* First row of part `part` when rows are cut into `parts` slabs of near-equal work; part = parts gives m. */
int64_t asparse_generator_cut(const asparse_generator *g, int parts, int part);

/* Rows row_begin … row_begin + n_rows - 1, columns sorted and unique, caller destroys. slab->nnz is the slab's own
 * number of entries: the caller sums over the slabs. ERR_USAGE: rows outside the matrix; ERR_MEMORY. */
asparse_status asparse_generate_slab(const asparse_generator *g, int64_t row_begin, int64_t n_rows, asparse_csr **slab);

#endif
