/* The exchange of B rows between ranks. */
#ifndef ASPARSE_HALO_H
#define ASPARSE_HALO_H

#include "base/comm.h"
#include "kernels/kernels.h"

/* Rows of B travel in ascending global order; buffer rows stand in that order, so each source's rows
 * are one contiguous piece. Between begin and end neither b nor the buffer may be touched. */
typedef struct asparse_halo {
  asparse_comm *comm;     /* borrowed */
  asparse_engine *engine; /* borrowed */
  asparse_dtype dtype;
  int64_t n;      /* columns */
  int64_t n_rows; /* rows received */

  int n_sources, n_destinations;
  int *sources, *destinations;
  int64_t *receive_starts; /* [n_sources + 1] rows of buffer */
  int64_t *send_starts;    /* [n_destinations + 1] rows of send_rows */
  int32_t *send_rows;      /* [send_starts[n_destinations]] own rows of B; NULL: every row to everyone */
  int64_t n_own;           /* own rows of B */

  void *buffer;      /* [n_rows × n] of dtype, in the engine's space: the halo of B */
  void *send_buffer; /* [send_starts[n_destinations] × n] of dtype; [n_own × n] without send_rows; host */
  /* Where the engine is a GPU: MPI fills and sends host memory, the engine packs and multiplies its own. */
  void *host_buffer;         /* [n_rows × n]; the buffer itself on the host */
  void *packed;              /* as send_buffer */
  int32_t *engine_send_rows; /* as send_rows */
  MPI_Request *requests;
  int64_t n_requests;                 /* under way */
  int64_t bytes_sent, bytes_received; /* per exchange */
} asparse_halo;

/* Collective. This rank will receive the global rows wanted[n_rows] of B (ascending, none its own), or,
 * when wanted is NULL on every rank, all rows but its own; col_starts [comm->size + 1] says who owns
 * which. Finds out what to send, allocates everything. */
asparse_status asparse_halo_create(asparse_comm *comm, asparse_engine *engine, const int64_t *col_starts,
                                   const int64_t *wanted, int64_t n_rows, int64_t n, asparse_dtype dtype,
                                   asparse_halo **halo);
void asparse_halo_destroy(asparse_halo **halo);

/* Collective among ranks that exchange rows; begin returns at once, end when the buffer is filled and b
 * may change. The blocking form is end(begin()). b: own rows, of the halo's dtype, n columns. */
asparse_status asparse_halo_exchange_begin(asparse_halo *halo, const void *b, int64_t ldb);
asparse_status asparse_halo_exchange_progress(asparse_halo *halo); /* local: lets MPI advance */
asparse_status asparse_halo_exchange_end(asparse_halo *halo);

/* Bytes of buffers and lists. */
int64_t asparse_halo_bytes(const asparse_halo *halo);

#endif
