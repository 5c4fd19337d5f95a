/* The exchange of B rows between ranks. */
#ifndef ASPARSE_HALO_H
#define ASPARSE_HALO_H

#include "base/comm.h"
#include "kernels/kernels.h"

/* What travels: n columns of B of dtype, in chunks of columns one after the other, so that the first can be multiplied
 * while the rest travels. */
typedef struct asparse_halo_shape {
  int64_t n;
  int chunks; /* 1 … ASPARSE_MOST_CHUNKS */
  asparse_dtype dtype;
} asparse_halo_shape;

enum { ASPARSE_MOST_CHUNKS = 4 };

/* Rows of B travel in ascending global order; buffer rows stand in that order, so each source's rows of a chunk
 * are one contiguous piece. Between begin and end neither b nor the buffer may be touched. */
typedef struct asparse_halo {
  asparse_comm *comm;     /* borrowed */
  asparse_engine *engine; /* borrowed */
  asparse_halo_shape shape;
  int64_t n_rows; /* rows received */

  int n_sources, n_destinations;
  int *sources, *destinations; /* ascending */
  int64_t *receive_starts;     /* [n_sources + 1] rows of buffer */
  int64_t *send_starts;        /* [n_destinations + 1] rows of send_rows */
  int32_t *send_rows;          /* [send_starts[n_destinations]] own rows of B; NULL: every row to everyone */
  int first_destination;       /* the first of a higher rank, sent to first */
  int64_t n_own;               /* own rows of B */

  /* In the engine's space. */
  void *buffer;              /* the halo of B: chunk after chunk, [n_rows × columns of the chunk] of dtype */
  void *packed;              /* the same of send_starts[n_destinations] rows, of n_own without send_rows */
  int32_t *engine_send_rows; /* as send_rows */
  /* On the host: the buffer itself, or where the transport or asparse_halo_host_rows copies it; else NULL. */
  void *host_buffer;
  bool owns_host_buffer;

  const struct asparse_transport *transport; /* what the rows travel by; see plan/transport.h */
  void *transport_state;                     /* its own */
  asparse_event *ready, *started, *packed_all;
  asparse_event *arrived[ASPARSE_MOST_CHUNKS];
  int64_t bytes_sent, bytes_received; /* per exchange */
} asparse_halo;

/* Collective. This rank will receive the global rows wanted[n_rows] of B (ascending, none its own), or,
 * when wanted is NULL on every rank, all rows but its own; col_starts [comm->size + 1] says who owns
 * which. Finds out what to send, allocates everything. */
asparse_status asparse_halo_create(asparse_comm *comm, asparse_engine *engine, const int64_t *col_starts,
                                   const int64_t *wanted, int64_t n_rows, asparse_halo_shape shape,
                                   asparse_halo **halo);
void asparse_halo_destroy(asparse_halo **halo);

/* Local, pure. wanted chunks, but 1 … ASPARSE_MOST_CHUNKS, and no more than give each 8 of n columns. */
int asparse_halo_chunks(int64_t n, int wanted);
/* Local, pure. First column of a chunk; of chunks for chunk = chunks. Chunks may be empty where n is small. */
int64_t asparse_halo_chunk_start(const asparse_halo_shape *shape, int chunk);
static inline int64_t asparse_halo_chunk_columns(const asparse_halo_shape *shape, int chunk) {
  return asparse_halo_chunk_start(shape, chunk + 1) - asparse_halo_chunk_start(shape, chunk);
}
/* Local. Rows of a chunk in the buffer: [n_rows × columns of the chunk], without gaps. */
const void *asparse_halo_chunk(const asparse_halo *halo, int chunk);

/* Collective among ranks that exchange rows; begin returns at once, end_chunk (chunk 0, 1, …, each once) when that part
 * of the buffer is filled, with the last one b may change; end is all of them. On a GPU this holds for what is enqueued
 * for computation afterwards. b: own rows, of the halo's dtype, n columns. A failure of any of them, or a peer that
 * does not answer within the communicator's time limit, ends the job where there are peers: they wait for rows, and
 * nothing can be agreed on. */
asparse_status asparse_halo_exchange_begin(asparse_halo *halo, const void *b, int64_t ldb);
asparse_status asparse_halo_exchange_progress(asparse_halo *halo); /* local: lets messages advance */
asparse_status asparse_halo_exchange_end_chunk(asparse_halo *halo, int chunk);
asparse_status asparse_halo_exchange_end(asparse_halo *halo);

/* Local. A failure between begin and end elsewhere than in these functions: ends the job where there are peers. Returns
 * status. */
asparse_status asparse_halo_fail(asparse_halo *halo, asparse_status status);

/* Local. Waits until an exchange that was begun and ended has also happened, which on a GPU comes later. */
asparse_status asparse_halo_wait(asparse_halo *halo);

/* Local. Seconds of the last exchange, from the start of packing: until all was packed, until all had arrived. Waits.
 */
asparse_status asparse_halo_times(asparse_halo *halo, double *pack, double *communication);

/* Local. The buffer after the last exchange on the host, valid until the next; waits for it. */
asparse_status asparse_halo_host_rows(asparse_halo *halo, const void **rows);

/* Bytes of buffers and lists. */
int64_t asparse_halo_bytes(const asparse_halo *halo);

/* "mpi", "nccl" */
const char *asparse_halo_transport(const asparse_halo *halo);

#endif
