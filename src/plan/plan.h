/* The plan: shards, exchange lists and buffers for one matrix and one number of columns. */
#ifndef ASPARSE_PLAN_H
#define ASPARSE_PLAN_H

#include "plan/halo.h"
#include "plan/matrix.h"

struct asparse_plan {
  asparse_matrix *matrix; /* borrowed; with keep_csr false its CSR is freed once shards stand */
  const asparse_backend *backend;
  int64_t n;
  asparse_exchange_mode exchange;
  asparse_local_csr *offd; /* offd with the columns of the halo buffer; its arrays are the matrix's, */
  bool offd_owns_columns;  /* but col_idx with replicate: renumbered to all rows of B but own ones */
  asparse_shard *diag_shard, *offd_shard;
  bool borrows_diag_shard, borrows_offd_shard; /* they belong to the matrix (loaded from a partition file) */
  asparse_halo *halo;
  int64_t chunk_units; /* units of diag computed between two looks at the network */
  asparse_stats stats;
};

/* Collective. The format with the least predicted time summed over ranks, so that all ranks agree; a: this
 * rank's matrix, NULL if it has none. */
asparse_status asparse_plan_choose(asparse_comm *comm, const asparse_local_csr *a, int64_t n,
                                   const asparse_options *options, asparse_kernel_config *config);

#endif
