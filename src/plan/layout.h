/* A dense operand between row slices and blocks of columns, among the ranks that hold the same row part of A. */
#ifndef ASPARSE_LAYOUT_H
#define ASPARSE_LAYOUT_H

#include "base/comm.h"
#include "base/dense.h"

/* Of the m × n rows of one part, rank j of comm holds as a slice its rows slice_starts[j] … with all columns, or as a
 * block all rows of its columns col_starts[j] …. Slices follow each other in rank order, so that a block receives
 * every rank's share in its place. */
typedef struct asparse_layout {
  asparse_comm *comm; /* borrowed: the ranks of the part */
  asparse_dtype dtype;
  int64_t n;
  int64_t *slice_starts, *col_starts; /* [comm->size + 1]; the whole part is slice_starts[comm->size] rows */
  void *packed;                       /* [slice × n], one block after the other */
  MPI_Request *requests;
  int64_t slice_bytes, block_bytes; /* of the slice and the block without what stays on this rank */
} asparse_layout;

/* Collective over comm. For m rows in even slices, and n columns in the blocks of asparse_grid_column_start. */
asparse_status asparse_layout_create(asparse_comm *comm, int64_t m, int64_t n, asparse_dtype dtype,
                                     asparse_layout **layout);
void asparse_layout_destroy(asparse_layout **layout);

/* Collective over comm; blocking. slice: on the host, any ld; block: on the host, ld = n. */
asparse_status asparse_layout_to_block(asparse_layout *layout, const asparse_dense *slice, asparse_dense *block);
asparse_status asparse_layout_to_slice(asparse_layout *layout, const asparse_dense *block, asparse_dense *slice);

#endif
