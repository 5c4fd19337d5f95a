/* Rows of B by NCCL, from GPU to GPU. */
#include "base/nccl_comm.h"
#include "plan/transport.h"

typedef struct nccl_state {
  /* [comm->size] index among destinations of rank + s, and among sources of rank - s, at step s; -1: no rows. */
  int *destination_at, *source_at;
} nccl_state;

static asparse_status nccl_create(asparse_halo *halo) {
  asparse_status status = ASPARSE_OK;
  const int size = halo->comm->size, rank = halo->comm->rank;
  nccl_state *state = NULL;
  ALLOC_ZERO(state, 1);
  halo->transport_state = state;
  ALLOC(state->destination_at, size);
  ALLOC(state->source_at, size);
  for (int s = 0; s < size; s++) state->destination_at[s] = state->source_at[s] = -1;
  for (int i = 0; i < halo->n_destinations; i++)
    state->destination_at[(halo->destinations[i] - rank + size) % size] = i;
  for (int i = 0; i < halo->n_sources; i++) state->source_at[(rank - halo->sources[i] + size) % size] = i;
cleanup:
  return status;
}

static void nccl_destroy(asparse_halo *halo) {
  nccl_state *state = halo->transport_state;
  if (!state) return;
  asparse_free(state->destination_at);
  asparse_free(state->source_at);
  FREE(halo->transport_state);
}

/* Sends and receives are cut at message_bytes alike on both sides; NCCL matches them in order. */
static asparse_status send(asparse_halo *halo, const char *rows, int64_t bytes, int to, cudaStream_t stream) {
  const asparse_nccl *nccl = halo->comm->nccl;
  const int64_t most = halo->comm->message_bytes;
  for (int64_t done = 0; done < bytes; done += most) {
    const int64_t piece = bytes - done < most ? bytes - done : most;
    PASS_NCCL(nccl, ncclSend(rows + done, (size_t)piece, ncclInt8, to, nccl->comm, stream));
  }
  return ASPARSE_OK;
}

static asparse_status receive(asparse_halo *halo, char *rows, int64_t bytes, int from, cudaStream_t stream) {
  const asparse_nccl *nccl = halo->comm->nccl;
  const int64_t most = halo->comm->message_bytes;
  for (int64_t done = 0; done < bytes; done += most) {
    const int64_t piece = bytes - done < most ? bytes - done : most;
    PASS_NCCL(nccl, ncclRecv(rows + done, (size_t)piece, ncclInt8, from, nccl->comm, stream));
  }
  return ASPARSE_OK;
}

/* A chunk to rank + s and from rank - s at once; the calls of a group are one launch. */
static asparse_status exchange_step(asparse_halo *halo, int chunk, int s, const char *rows) {
  const nccl_state *state = halo->transport_state;
  const asparse_nccl *nccl = halo->comm->nccl;
  cudaStream_t stream = halo->engine->backend->stream(halo->engine, ASPARSE_QUEUE_EXCHANGE);
  const int to = state->destination_at[s], from = state->source_at[s];
  if (to < 0 && from < 0) return ASPARSE_OK;
  PASS_NCCL(nccl, ncclGroupStart());
  if (to >= 0)
    PASS(send(halo, rows + asparse_halo_send_offset(halo, chunk, to), asparse_halo_send_bytes(halo, chunk, to),
              halo->destinations[to], stream));
  if (from >= 0)
    PASS(receive(halo, (char *)halo->buffer + asparse_halo_receive_offset(halo, chunk, from),
                 asparse_halo_receive_bytes(halo, chunk, from), halo->sources[from], stream));
  PASS_NCCL(nccl, ncclGroupEnd());
  return asparse_nccl_settle(halo->comm);
}

static asparse_status pack(asparse_halo *halo, const void *b, int64_t ldb) {
  asparse_engine *engine = halo->engine;
  for (int c = 0; c < halo->shape.chunks; c++) {
    const char *columns = (const char *)b + asparse_halo_chunk_row_offset(halo, c);
    PASS(engine->backend->pack(engine, ASPARSE_QUEUE_EXCHANGE, halo->shape.dtype, asparse_halo_packed_rows(halo),
                               halo->engine_send_rows, asparse_halo_chunk_columns(&halo->shape, c), columns, ldb,
                               (char *)halo->packed +
                                   asparse_halo_packed_rows(halo) * asparse_halo_chunk_row_offset(halo, c)));
  }
  return ASPARSE_OK;
}

static asparse_status nccl_begin(asparse_halo *halo, const void *b, int64_t ldb) {
  asparse_engine *engine = halo->engine;
  const asparse_backend *backend = engine->backend;
  const bool as_it_is = !halo->send_rows && halo->shape.chunks == 1 && ldb == halo->shape.n;
  PASS(backend->record(engine, ASPARSE_QUEUE_EXCHANGE, halo->started));
  if (!as_it_is) PASS(pack(halo, b, ldb));
  PASS(backend->record(engine, ASPARSE_QUEUE_EXCHANGE, halo->packed_all));
  for (int c = 0; c < halo->shape.chunks; c++) {
    for (int s = 1; s < halo->comm->size; s++) PASS(exchange_step(halo, c, s, as_it_is ? b : halo->packed));
    PASS(backend->record(engine, ASPARSE_QUEUE_EXCHANGE, halo->arrived[c]));
  }
  return ASPARSE_OK;
}

static asparse_status nccl_check(asparse_halo *halo) { return asparse_nccl_check(halo->comm); }

static asparse_status nccl_end(asparse_halo *halo, int chunk) {
  (void)halo;
  (void)chunk;
  return ASPARSE_OK;
}

const asparse_transport asparse_nccl_transport = {.name = "nccl",
                                                  .create = nccl_create,
                                                  .destroy = nccl_destroy,
                                                  .begin = nccl_begin,
                                                  .progress = nccl_check,
                                                  .end = nccl_end,
                                                  .check = nccl_check};
