/* Structure of a stored matrix: what a triangle stands for. */
#ifndef ASPARSE_STRUCTURE_H
#define ASPARSE_STRUCTURE_H

#include "base/comm.h"
#include "base/csr.h"

typedef enum asparse_structure {
  ASPARSE_GENERAL = 0,
  ASPARSE_SYMMETRIC_LOWER,
  ASPARSE_SYMMETRIC_UPPER,
  ASPARSE_SKEW_SYMMETRIC_LOWER,
  ASPARSE_SKEW_SYMMETRIC_UPPER,
  ASPARSE_HERMITIAN_LOWER, /* real values: the same as symmetric */
  ASPARSE_HERMITIAN_UPPER
} asparse_structure;

const char *asparse_structure_name(asparse_structure structure);
bool asparse_structure_parse(const char *name, asparse_structure *structure); /* false: unknown */
/* Of the transposed matrix: the other triangle. */
asparse_structure asparse_structure_transposed(asparse_structure structure);

/* Collective. Replaces *a, slabs that hold one triangle, by slabs of the same rows with both: entry
 * (i, j), i ≠ j, also becomes (j, i), negated when skew. A skew diagonal is kept as it is stored. Rows
 * that were sorted stay sorted. ERR_DATA: not square, or an entry in the other triangle. */
asparse_status asparse_structure_expand(asparse_comm *comm, asparse_structure structure, asparse_csr **a);

#endif
