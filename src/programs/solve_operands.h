/* B and C of asparse_solve: where B comes from, where C goes. */
#ifndef ASPARSE_SOLVE_OPERANDS_H
#define ASPARSE_SOLVE_OPERANDS_H

#include "plan/plan.h"
#include "programs/solve_options.h"

typedef struct operand_source {
  char *path;          /* NULL: random; freed by operand_source_free */
  int64_t m, n;        /* shape of the dataset; m = -1 for random */
  asparse_dtype dtype; /* of the dataset as stored */
} operand_source;

/* Collective. --b, else dataset B of the matrix file, else random with --cols columns. */
asparse_status operand_find(asparse_comm *comm, const solve_options *options, operand_source *source);
void operand_source_free(operand_source *source);

/* B must have as many rows as A has columns. Same on all ranks. */
asparse_status operand_check(const operand_source *source, const asparse_matrix *a);

/* Collective. This rank's share of B; with b_from_root rank 0 has all of it first. */
asparse_status operand_fill(asparse_comm *comm, const solve_options *options, const operand_source *source,
                            const asparse_plan *plan, asparse_dense *b);

/* Collective. C in the original order of rows; whole: C gathered on rank 0, which then writes alone. */
asparse_status operand_write(asparse_comm *comm, const solve_options *options, const char *command,
                             const asparse_plan *plan, const asparse_dense *c, const asparse_dense *whole);

#endif
