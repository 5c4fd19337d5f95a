/* The grid of ranks: which part of the rows and which block of the dense columns each one works on. */
#ifndef ASPARSE_GRID_H
#define ASPARSE_GRID_H

#include "asparse.h"
#include "base/comm.h"

/* Rank i·columns + j holds row part i of A, and block j of the columns of B and C. */
typedef struct asparse_grid {
  int rows, columns;
  asparse_comm *column_comm; /* the ranks with this rank's block, by part; all ranks (borrowed) where columns = 1 */
  asparse_comm *row_comm;    /* the ranks with this rank's part, by block; NULL where columns = 1 */
} asparse_grid;

/* Collective. The grid that exchange and grid_rows × grid_columns of options ask for, by default comm->size × 1;
 * ERR_USAGE where it does not have comm->size ranks. */
asparse_status asparse_grid_create(asparse_comm *comm, const asparse_options *options, asparse_grid *grid);
void asparse_grid_free(asparse_grid *grid);

/* Local. ERR_USAGE where options ask for another grid than this one of size ranks. */
asparse_status asparse_grid_check(const asparse_grid *grid, const asparse_options *options);

/* First of block's columns when n are cut into blocks: multiples of 8 where every block gets that many. */
int64_t asparse_grid_column_start(int64_t n, int blocks, int block);

#endif
