/* What rows of B travel by, under asparse_halo. A transport is a small table of functions over the same lists. */
#ifndef ASPARSE_TRANSPORT_H
#define ASPARSE_TRANSPORT_H

#include "plan/halo.h"

typedef struct asparse_transport {
  const char *name; /* "mpi", "nccl" */
  /* Local. Buffers and lists of its own beside the halo's, as halo->transport_state. destroy takes a halo without. */
  asparse_status (*create)(asparse_halo *halo);
  void (*destroy)(asparse_halo *halo);
  /* As the halo's functions. In the engine's exchange queue, begin records halo->started before it packs and
   * halo->packed_all after, end at the latest records halo->arrived[chunk], and the compute queue waits for that. */
  asparse_status (*begin)(asparse_halo *halo, const void *b, int64_t ldb);
  asparse_status (*progress)(asparse_halo *halo);
  asparse_status (*end)(asparse_halo *halo, int chunk);
  /* Local. The error of what is under way without this thread; NULL: nothing is. */
  asparse_status (*check)(asparse_halo *halo);
} asparse_transport;

/* MPI between hosts' memories. From and to a GPU rows go through pinned memory: each destination's are packed and
 * copied out beside the local part and sent as soon as they are there; each source's are copied in as soon as they
 * arrive. */
extern const asparse_transport asparse_mpi_transport;

/* NCCL between GPUs: rows are packed on the device; then, chunk after chunk, rank r sends to r + s and receives from
 * r - s, one group for each s. begin and end only enqueue. Where ASPARSE_HAVE_NCCL. */
extern const asparse_transport asparse_nccl_transport;

/* Collective. Decides what rows travel by between the ranks of comm and of communicators split from it later, each rank
 * with its engine; connects the GPUs. AUTO takes NCCL where every rank has a GPU of its own, and says on rank 0's
 * standard error where GPUs are shared. ERR_USAGE or ERR_DEVICE when NCCL was asked for and cannot be. */
asparse_status asparse_transport_open(asparse_comm *comm, asparse_engine *engine, asparse_comm_kind wanted);

/* Collective. The transport of a halo of comm on engine: what was decided, MPI on the host and where nothing was. */
asparse_status asparse_transport_find(asparse_comm *comm, const asparse_engine *engine,
                                      const asparse_transport **transport);

/* Rows that are packed for all destinations together. */
static inline int64_t asparse_halo_packed_rows(const asparse_halo *halo) {
  return halo->send_rows ? halo->send_starts[halo->n_destinations] : halo->n_own;
}

static inline int64_t asparse_halo_element_bytes(const asparse_halo *halo) {
  return (int64_t)asparse_dtype_size(halo->shape.dtype);
}
/* Bytes of a row of B, of that row in a chunk, and of the columns before the chunk in one row. */
static inline int64_t asparse_halo_row_bytes(const asparse_halo *halo) {
  return halo->shape.n * asparse_halo_element_bytes(halo);
}
static inline int64_t asparse_halo_chunk_row_bytes(const asparse_halo *halo, int chunk) {
  return asparse_halo_chunk_columns(&halo->shape, chunk) * asparse_halo_element_bytes(halo);
}
static inline int64_t asparse_halo_chunk_row_offset(const asparse_halo *halo, int chunk) {
  return asparse_halo_chunk_start(&halo->shape, chunk) * asparse_halo_element_bytes(halo);
}
/* Bytes of a chunk of the rows for destination i, and where they start among the packed ones. */
static inline int64_t asparse_halo_send_bytes(const asparse_halo *halo, int chunk, int i) {
  return (halo->send_starts[i + 1] - halo->send_starts[i]) * asparse_halo_chunk_row_bytes(halo, chunk);
}
static inline int64_t asparse_halo_send_offset(const asparse_halo *halo, int chunk, int i) {
  const int64_t before = halo->send_rows ? halo->send_starts[i] : 0;
  return asparse_halo_packed_rows(halo) * asparse_halo_chunk_row_offset(halo, chunk) +
         before * asparse_halo_chunk_row_bytes(halo, chunk);
}
/* The same of the rows from source i, in the buffer. */
static inline int64_t asparse_halo_receive_bytes(const asparse_halo *halo, int chunk, int i) {
  return (halo->receive_starts[i + 1] - halo->receive_starts[i]) * asparse_halo_chunk_row_bytes(halo, chunk);
}
static inline int64_t asparse_halo_receive_offset(const asparse_halo *halo, int chunk, int i) {
  return halo->n_rows * asparse_halo_chunk_row_offset(halo, chunk) +
         halo->receive_starts[i] * asparse_halo_chunk_row_bytes(halo, chunk);
}

#endif
