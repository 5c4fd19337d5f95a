/* The distributed sparse matrix: each rank's rows, split into own and halo columns. */
#ifndef ASPARSE_MATRIX_H
#define ASPARSE_MATRIX_H

#include "asparse.h"
#include "io/io.h"
#include "partition/partition.h"
#include "plan/grid.h"
#include "plan/planner.h"

struct asparse_matrix {
  asparse_comm *comm; /* borrowed */
  asparse_grid grid;
  asparse_planning planning; /* how B will be exchanged, where that was left open */
  int64_t m, k, nnz;         /* global */
  asparse_dtype dtype;
  asparse_partition_method method;
  int64_t *row_starts, *col_starts; /* [grid.rows + 1], new order */
  asparse_part part;                /* number grid.column_comm->rank; no shards unless loaded from a partition file */
  uint64_t hash;                    /* of (row, column, value) of all entries, original numbering */
  double imbalance;                 /* largest cost / mean cost */
  double partition_seconds, move_seconds;
  /* From a partition file only. */
  asparse_shard_kind ready; /* of the own columns' shard; format AUTO: no ready shards */
  double saved_seconds;     /* partitioning and building that loading saved */
};

/* Collective. asparse_matrix_create in two steps, so that one partition serves several rounds: the
 * partition, then this rank's part `part` of it (-1: none), in rounds that every rank joins. With consume
 * the slab's columns and values are freed on the way: there is no further round. */
asparse_status asparse_matrix_partition(asparse_comm *comm, const asparse_csr *slab, asparse_partition_method method,
                                        int64_t n, int parts, asparse_partition **partition);
asparse_status asparse_matrix_part(asparse_comm *comm, asparse_csr *slab, const asparse_partition *partition, int part,
                                   bool consume, asparse_part *out);

/* Collective. Loads a partition file made for comm->size parts. */
asparse_status asparse_matrix_load(asparse_comm *comm, const char *path, asparse_matrix **a);

/* Local. Original number of a row (of A and C, or of B) of this rank's part, given in the new order. */
static inline int64_t asparse_matrix_original_row(const asparse_matrix *a, const int64_t *starts, int64_t row) {
  return a->part.row_map ? a->part.row_map[row - starts[a->grid.column_comm->rank]] : row;
}

#endif
