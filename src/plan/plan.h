/* The plan: shards, exchange lists and buffers for one matrix and one number of columns. */
#ifndef ASPARSE_PLAN_H
#define ASPARSE_PLAN_H

#include "plan/cover.h"
#include "plan/halo.h"
#include "plan/layout.h"
#include "plan/matrix.h"
#include "plan/merged.h"

struct asparse_plan {
  asparse_matrix *matrix; /* borrowed; with keep_csr false its CSR is freed once shards stand */
  asparse_engine *engine;
  int64_t n_global;        /* columns of B and C */
  int64_t n, column_begin; /* of this rank's block of them */
  asparse_dtype c_dtype;
  asparse_exchange_mode exchange;
  int chunks;              /* that the halo's columns come in */
  asparse_local_csr *offd; /* offd with the columns of the halo buffer; its arrays are the matrix's or the cover's, */
  bool offd_owns_columns;  /* but col_idx with replicate: renumbered to all rows of B but own ones */
  asparse_cover *cover;    /* NULL with other exchanges */
  asparse_merged *merged;  /* both halves as one, which diag_shard then is; NULL unless reproducible */
  asparse_shard *diag_shard, *offd_shard;
  bool borrows_diag_shard, borrows_offd_shard; /* they belong to the matrix (loaded from a partition file) */
  asparse_operator diag_operator, offd_operator;
  asparse_dense *engine_b,
      *engine_c;      /* copies for operands on the host, where the engine is a GPU; NULL until needed */
  asparse_halo *halo; /* among the ranks with this block of columns */
  /* Where operands are rows and the grid has several columns: the way to blocks of columns, and the blocks. */
  asparse_layout *b_layout, *c_layout;
  asparse_dense *b_block, *c_block;
  double own_predicted_seconds; /* of what needs no rows from others, by the cost model */
  int pieces;                   /* that a multiplication is cut into, with a look at the network after each */
  asparse_stats stats;
};

/* What a rank holds of B or C: rows row_begin … row_begin+m-1 in the new order, columns col_begin … col_begin+n-1. */
typedef struct asparse_extent {
  int64_t row_begin, m, col_begin, n;
} asparse_extent;

/* Local. As rows or as the plan's blocks of columns; and as the plan's options say. */
asparse_extent asparse_plan_extent_of_b(const asparse_plan *plan, asparse_placement placement);
asparse_extent asparse_plan_extent_of_c(const asparse_plan *plan, asparse_placement placement);
static inline asparse_placement asparse_plan_placement(const asparse_plan *plan) {
  return plan->b_layout || plan->matrix->grid.columns == 1 ? ASPARSE_PLACEMENT_ROWS : ASPARSE_PLACEMENT_PLANNER;
}

/* Collective. Fills the predictions of the plan's stats that are not of local work alone, from its volumes. */
asparse_status asparse_plan_predict(asparse_plan *plan);

/* Local. Blocks of B and C in the memory the engine computes in. */
asparse_status asparse_plan_engine_blocks(const asparse_plan *plan, asparse_dense **b, asparse_dense **c);

/* Collective. The ways between rows and blocks, whatever the operands of the plan; a grid with several columns. */
asparse_status asparse_plan_layout_of_b(const asparse_plan *plan, asparse_layout **layout);
asparse_status asparse_plan_layout_of_c(const asparse_plan *plan, asparse_layout **layout);

#endif
