/* Groups of block rows whose tiles are computed together, so that they share slices of B. Local, host. */
#ifndef ASPARSE_BCSR_GROUPS_H
#define ASPARSE_BCSR_GROUPS_H

#include "asparse_types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ASPARSE_BCSR_MOST_ROWS = 3 }; /* block rows of a group */

/* A block column of a group. */
typedef struct asparse_bcsr_step {
  int32_t block_col;
  int32_t block[ASPARSE_BCSR_MOST_ROWS]; /* the block of each block row there, -1: none */
} asparse_bcsr_step;

typedef struct asparse_bcsr_groups {
  int32_t rows;             /* block rows of a group, 1 … ASPARSE_BCSR_MOST_ROWS */
  int32_t n_groups;         /* ⌈n_block_rows / rows⌉ */
  int32_t n_steps;          /* at most the number of blocks */
  int32_t *block_rows;      /* [n_groups · rows], each block row once; -1 at the end of the last group */
  int32_t *step_ptr;        /* [n_groups + 1] */
  asparse_bcsr_step *steps; /* [n_steps], by block column in each group */
} asparse_bcsr_groups;

/* Groups that have few block columns each; longer ones first in every band of 480 block rows. The caller destroys them.
 * Costs some 240 reads for each block. ERR_USAGE when rows is out of range or a has 2^31 blocks or more; ERR_MEMORY. */
asparse_status asparse_bcsr_groups_build(const asparse_bcsr *a, int32_t rows, asparse_bcsr_groups **groups);
void asparse_bcsr_groups_destroy(asparse_bcsr_groups **groups);

#ifdef __cplusplus
}
#endif
#endif
