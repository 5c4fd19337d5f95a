#include "plan/layout.h"

#include <limits.h>

#include "plan/grid.h"

enum { TAG_LAYOUT = 22 };

static int64_t element(const asparse_layout *l) { return (int64_t)asparse_dtype_size(l->dtype); }
static int64_t slice_rows(const asparse_layout *l, int j) { return l->slice_starts[j + 1] - l->slice_starts[j]; }
static int64_t block_columns(const asparse_layout *l, int j) { return l->col_starts[j + 1] - l->col_starts[j]; }

/* What rank j's slice has of rank i's block. */
static int64_t share_bytes(const asparse_layout *l, int j, int i) {
  return slice_rows(l, j) * block_columns(l, i) * element(l);
}

/* Where this rank's slice keeps its share of rank j's block, and this rank's block its share of rank j's slice. */
static char *packed_share(const asparse_layout *l, int j) {
  return (char *)l->packed + slice_rows(l, l->comm->rank) * l->col_starts[j] * element(l);
}
static char *block_share(const asparse_layout *l, const asparse_dense *block, int j) {
  return (char *)block->values + l->slice_starts[j] * block_columns(l, l->comm->rank) * element(l);
}

static asparse_status layout_allocate(asparse_layout *l, int64_t m) {
  asparse_status status = ASPARSE_OK;
  const int size = l->comm->size, rank = l->comm->rank;
  int64_t n_requests = 0;
  ALLOC(l->slice_starts, size + (int64_t)1);
  ALLOC(l->col_starts, size + (int64_t)1);
  for (int j = 0; j <= size; j++) {
    l->slice_starts[j] = asparse_even_start(m, size, j);
    l->col_starts[j] = asparse_grid_column_start(l->n, size, j);
  }
  for (int j = 0; j < size; j++) {
    if (j == rank) continue;
    l->slice_bytes += share_bytes(l, rank, j);
    l->block_bytes += share_bytes(l, j, rank);
    n_requests += asparse_comm_pieces(l->comm, share_bytes(l, rank, j));
    n_requests += asparse_comm_pieces(l->comm, share_bytes(l, j, rank));
  }
  TRY_THAT(n_requests <= INT_MAX, ASPARSE_ERR_RUNTIME, "a change of layout needs %lld messages; use more ranks",
           (long long)n_requests);
  ALLOC_BYTES(l->packed, slice_rows(l, rank), (size_t)(l->n * element(l)));
  ALLOC(l->requests, n_requests);
cleanup:
  return status;
}

asparse_status asparse_layout_create(asparse_comm *comm, int64_t m, int64_t n, asparse_dtype dtype,
                                     asparse_layout **out) {
  asparse_status status = ASPARSE_OK;
  asparse_layout *layout = asparse_calloc(1, sizeof *layout, "layout");
  TRY(asparse_comm_agree(comm, layout ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  *layout = (asparse_layout){.comm = comm, .dtype = dtype, .n = n};
  TRY(asparse_comm_agree(comm, layout_allocate(layout, m)));
  *out = layout;
  layout = NULL;
cleanup:
  asparse_layout_destroy(&layout);
  return status;
}

void asparse_layout_destroy(asparse_layout **layout) {
  if (!layout || !*layout) return;
  asparse_free((*layout)->slice_starts);
  asparse_free((*layout)->col_starts);
  asparse_free((*layout)->packed);
  asparse_free((*layout)->requests);
  FREE(*layout);
}

/* The columns of rank j's block between the slice and its packed share. */
static void copy_share(const asparse_layout *l, const asparse_dense *slice, int j, bool pack) {
  const size_t width = (size_t)(block_columns(l, j) * element(l));
  char *packed = packed_share(l, j), *rows = (char *)slice->values + l->col_starts[j] * element(l);
#pragma omp parallel for schedule(static) if (slice->m > 1000)
  for (int64_t i = 0; i < slice->m; i++) {
    char *row = rows + i * slice->ld * element(l), *share = packed + (size_t)i * width;
    if (pack) memcpy(share, row, width);
    else memcpy(row, share, width);
  }
}

/* Every share to its place; this rank's own is copied. */
static asparse_status move_shares(asparse_layout *l, asparse_dense *block, bool to_block) {
  asparse_status status = ASPARSE_OK;
  const int size = l->comm->size, rank = l->comm->rank;
  int64_t n_requests = 0;
  for (int step = 1; step < size; step++) {
    const int j = (rank - step + size) % size;
    TRY(asparse_comm_irecv(l->comm, to_block ? block_share(l, block, j) : packed_share(l, j),
                           to_block ? share_bytes(l, j, rank) : share_bytes(l, rank, j), j, TAG_LAYOUT, l->requests,
                           &n_requests));
  }
  for (int step = 1; step < size; step++) {
    const int j = (rank + step) % size;
    TRY(asparse_comm_isend(l->comm, to_block ? packed_share(l, j) : block_share(l, block, j),
                           to_block ? share_bytes(l, rank, j) : share_bytes(l, j, rank), j, TAG_LAYOUT, l->requests,
                           &n_requests));
  }
  char *packed = packed_share(l, rank), *in_block = block_share(l, block, rank);
  memcpy(to_block ? in_block : packed, to_block ? packed : in_block, (size_t)share_bytes(l, rank, rank));
  TRY(asparse_comm_wait(l->comm, n_requests, l->requests, NULL));
cleanup:
  return status;
}

asparse_status asparse_layout_to_block(asparse_layout *l, const asparse_dense *slice, asparse_dense *block) {
  for (int j = 0; j < l->comm->size; j++) copy_share(l, slice, j, true);
  return move_shares(l, block, true);
}

asparse_status asparse_layout_to_slice(asparse_layout *l, const asparse_dense *block, asparse_dense *slice) {
  PASS(move_shares(l, (asparse_dense *)block, false));
  for (int j = 0; j < l->comm->size; j++) copy_share(l, slice, j, false);
  return ASPARSE_OK;
}
