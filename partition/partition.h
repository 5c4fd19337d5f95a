/* Partitioning of rows over ranks, and the building of rank-local shards. */
#ifndef ASPARSE_PARTITION_H
#define ASPARSE_PARTITION_H

#include "base/comm.h"
#include "base/shard.h"
#include "partition/cluster.h"

/* Who owns which rows of A and C and which rows of B (columns of A). Rows are numbered in a new
 * order when permuted (METIS); otherwise the new order is the old one. */
typedef struct asparse_partition {
  int parts;
  asparse_partition_method method;
  int64_t m, k;
  int64_t *row_starts; /* [parts + 1], in the new order */
  int64_t *col_starts; /* [parts + 1], rows of B; equals row_starts when m = k, else even cuts */
  int64_t n_slab_rows;
  int64_t *new_row;     /* [n_slab_rows] new number of each row of this rank's slab; NULL if not permuted */
  int64_t largest_cost; /* of any part, in the unit of the costs given */
  int64_t total_cost;
} asparse_partition;

/* Collective. Cuts the rows of the matrix whose slabs the ranks hold into parts contiguous ranges so
 * that the largest sum of costs is the least possible (Pinar & Aykanat, J. Parallel Distrib. Comput.
 * 64, 2004: probing), and among those cuts stays close to even. cost [a->n_rows], each ≥ 0, sums
 * below 2^62. parts may differ from the number of ranks and exceed m. */
asparse_status asparse_partition_contiguous(asparse_comm *comm, const asparse_csr *a, const int64_t *cost, int parts,
                                            asparse_partition **partition);

/* Collective. METIS k-way on the pattern of A + Aᵀ, minimising communication volume, weights = cost.
 * ERR_USAGE when built without METIS, m ≠ k, or the graph does not fit METIS's integers. Rank 0
 * holds the pattern while it runs. */
asparse_status asparse_partition_metis(asparse_comm *comm, const asparse_csr *a, const int64_t *cost, int parts,
                                       asparse_partition **partition);

void asparse_partition_destroy(asparse_partition **partition);

/* Predicted cost of each row of the slab, in picoseconds for n dense columns (at most 1024 are counted): the
 * padded shard's work (own share of its window's columns), the C row written; whatever the slabs. cost [a->n_rows].
 * Collective. */
asparse_status asparse_partition_row_cost(asparse_comm *comm, const asparse_csr *a, int64_t n, int64_t *cost);

/* One part's entries of A, and the rows of B it and the others send each other when everyone receives just what its
 * columns use. */
typedef struct asparse_part_traffic {
  int64_t nnz;
  int64_t received, sent;        /* rows of B; a row sent to two parts counts twice */
  int64_t sources, destinations; /* parts they come from and go to */
} asparse_part_traffic;

/* Collective. traffic [partition->parts], the same on every rank. Beside the slab it needs memory for a batch of parts:
 * some 4 M entries a rank, or those of one part. */
asparse_status asparse_partition_traffic(asparse_comm *comm, const asparse_csr *a, const asparse_partition *partition,
                                         asparse_part_traffic *traffic);

/* The same in short. Collective. */
typedef struct asparse_partition_quality {
  double imbalance;             /* largest cost / mean cost */
  double nnz_imbalance;         /* largest nnz / mean nnz */
  int64_t halo_total, halo_max; /* distinct non-local B rows over parts: sum, largest */
  int64_t rows_max, nnz_max;
} asparse_partition_quality;
asparse_status asparse_partition_evaluate(asparse_comm *comm, const asparse_csr *a, const asparse_partition *partition,
                                          asparse_partition_quality *quality);

/* ---- shards ------------------------------------------------------------------------------- */

/* Local, threaded. Values are those of a, in a's dtype; a must be sorted. */
asparse_status asparse_wcsr_build(const asparse_local_csr *a, int32_t window_height, asparse_wcsr **out);
asparse_status asparse_bcsr_build(const asparse_local_csr *a, int32_t block_size, asparse_bcsr **out);

/* format: not AUTO; unit: window height or block size. A CSR shard borrows a, which must outlive it. */
asparse_status asparse_shard_build(asparse_local_csr *a, asparse_format format, int32_t unit, asparse_shard **out);

/* WCSR of rows that were brought together (see cluster.h): copies order into its row_map. */
asparse_status asparse_shard_build_clustered(const asparse_clustered *a, int32_t window_height, asparse_shard **out);

/* Windows of one height, and non-empty blocks of one size. Local, threaded. */
asparse_status asparse_count_window_columns(const asparse_local_csr *a, int32_t window_height,
                                            asparse_window_counts *counts);
asparse_status asparse_count_blocks(const asparse_local_csr *a, int32_t block_size, int64_t *blocks);

#endif
