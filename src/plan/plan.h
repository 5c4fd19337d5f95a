/* The plan: shards, exchange lists and buffers for one matrix and one number of columns. */
#ifndef ASPARSE_PLAN_H
#define ASPARSE_PLAN_H

#include "plan/halo.h"
#include "plan/matrix.h"

struct asparse_plan {
  asparse_matrix *matrix; /* borrowed; with keep_csr false its CSR is freed once shards stand */
  asparse_engine *engine;
  int64_t n;
  asparse_dtype c_dtype;
  asparse_exchange_mode exchange;
  asparse_local_csr *offd; /* offd with the columns of the halo buffer; its arrays are the matrix's, */
  bool offd_owns_columns;  /* but col_idx with replicate: renumbered to all rows of B but own ones */
  asparse_shard *diag_shard, *offd_shard;
  bool borrows_diag_shard, borrows_offd_shard; /* they belong to the matrix (loaded from a partition file) */
  asparse_operator diag_operator, offd_operator;
  asparse_dense *engine_b,
      *engine_c; /* copies for operands on the host, where the engine is a GPU; NULL until needed */
  asparse_halo *halo;
  int64_t chunk_units; /* units of diag computed between two looks at the network */
  asparse_stats stats;
};

#endif
