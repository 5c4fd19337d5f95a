#include "plan/halo.h"

#include "base/clock.h"
#include "base/fault.h"
#include "plan/transport.h"

/* Of a chunk. Multiples keep the alignment that the GPU kernels' fast paths need. */
enum { LEAST_COLUMNS = 8 };

/* Ranks with a non-zero count, and where their rows start: the compact form of counts [size]. */
static asparse_status compact_counts(const int64_t *counts, int size, int *n_peers, int **peers, int64_t **starts) {
  asparse_status status = ASPARSE_OK;
  *n_peers = 0;
  for (int r = 0; r < size; r++) *n_peers += counts[r] > 0;
  ALLOC(*peers, *n_peers);
  ALLOC_ZERO(*starts, *n_peers + (int64_t)1);
  int peer = 0;
  for (int r = 0; r < size; r++) {
    if (counts[r] == 0) continue;
    (*peers)[peer] = r;
    (*starts)[peer + 1] = (*starts)[peer] + counts[r];
    peer++;
  }
cleanup:
  return status;
}

/* Tells every owner which of its rows this rank wants, and learns which it must send. Collective. */
static asparse_status exchange_wants(asparse_halo *halo, const int64_t *col_starts, const int64_t *wanted,
                                     int64_t *counts) {
  asparse_status status = ASPARSE_OK;
  asparse_comm *comm = halo->comm;
  int size = comm->size;
  int64_t *asked = NULL, n_send = 0;
  int64_t *receive = counts, *send = counts + size, *displs = counts + 2 * size, *send_displs = counts + 3 * size;
  for (int64_t i = 0; i < halo->n_rows; i++) receive[asparse_owner(col_starts, size, wanted[i])]++;
  TRY(asparse_comm_agree(comm, compact_counts(receive, size, &halo->n_sources, &halo->sources, &halo->receive_starts)));
  TRY(asparse_comm_alltoall_int64(comm, receive, send));
  for (int r = 0; r < size; r++) n_send += send[r];
  status = compact_counts(send, size, &halo->n_destinations, &halo->destinations, &halo->send_starts);
  if (status == ASPARSE_OK && (!(asked = asparse_malloc(n_send, sizeof *asked, "asked rows")) ||
                               !(halo->send_rows = asparse_malloc(n_send, sizeof *halo->send_rows, "send rows"))))
    status = ASPARSE_ERR_MEMORY;
  TRY(asparse_comm_agree(comm, status));
  for (int r = 0; r < size; r++) {
    receive[r] *= 8;
    send[r] *= 8;
    if (r > 0) displs[r] = displs[r - 1] + receive[r - 1];
    if (r > 0) send_displs[r] = send_displs[r - 1] + send[r - 1];
  }
  TRY(asparse_comm_alltoallv(comm, wanted, receive, displs, asked, send, send_displs));
  for (int64_t i = 0; i < n_send; i++) halo->send_rows[i] = (int32_t)(asked[i] - col_starts[comm->rank]);
cleanup:
  asparse_free(asked);
  return status;
}

/* Every rank sends all its rows to every other: nothing to ask. Local. */
static asparse_status replicate_wants(asparse_halo *halo, const int64_t *col_starts, int64_t *counts) {
  asparse_status status = ASPARSE_OK;
  int size = halo->comm->size, rank = halo->comm->rank;
  int64_t *receive = counts, *send = counts + size;
  for (int r = 0; r < size; r++) {
    receive[r] = r == rank ? 0 : col_starts[r + 1] - col_starts[r];
    send[r] = r == rank ? 0 : halo->n_own;
  }
  halo->n_rows = col_starts[size] - halo->n_own;
  TRY(compact_counts(receive, size, &halo->n_sources, &halo->sources, &halo->receive_starts));
  TRY(compact_counts(send, size, &halo->n_destinations, &halo->destinations, &halo->send_starts));
cleanup:
  return status;
}

static bool on_host(const asparse_halo *halo) { return halo->engine->backend->space == ASPARSE_SPACE_HOST; }

static asparse_status create_events(asparse_halo *halo) {
  const asparse_backend *backend = halo->engine->backend;
  PASS(backend->event_create(halo->engine, &halo->ready));
  PASS(backend->event_create(halo->engine, &halo->started));
  PASS(backend->event_create(halo->engine, &halo->packed_all));
  for (int c = 0; c < halo->shape.chunks; c++) PASS(backend->event_create(halo->engine, &halo->arrived[c]));
  return ASPARSE_OK;
}

static asparse_status allocate_buffers(asparse_halo *halo) {
  const asparse_backend *backend = halo->engine->backend;
  const size_t size = (size_t)asparse_halo_row_bytes(halo);
  const int64_t n_send = halo->send_starts[halo->n_destinations];
  halo->bytes_received = halo->n_rows * (int64_t)size;
  halo->bytes_sent = n_send * (int64_t)size;
  while (halo->first_destination < halo->n_destinations &&
         halo->destinations[halo->first_destination] < halo->comm->rank)
    halo->first_destination++;
  PASS(backend->allocate(halo->engine, halo->n_rows, size, "halo of B", &halo->buffer));
  PASS(backend->allocate(halo->engine, asparse_halo_packed_rows(halo), size, "packed rows of B", &halo->packed));
  PASS(create_events(halo));
  if (on_host(halo) || !halo->send_rows) {
    halo->engine_send_rows = halo->send_rows;
    return ASPARSE_OK;
  }
  const size_t list = (size_t)n_send * sizeof *halo->send_rows;
  PASS(backend->allocate(halo->engine, n_send, sizeof *halo->send_rows, "rows to send",
                         (void **)&halo->engine_send_rows));
  return backend->copy_in(halo->engine, halo->engine_send_rows, list, halo->send_rows, list, list, 1);
}

asparse_status asparse_halo_create(asparse_comm *comm, asparse_engine *engine, const int64_t *col_starts,
                                   const int64_t *wanted, int64_t n_rows, asparse_halo_shape shape,
                                   asparse_halo **out) {
  asparse_status status = ASPARSE_OK;
  asparse_halo *halo = asparse_calloc(1, sizeof *halo, "halo");
  int64_t *counts = asparse_calloc(4 * (int64_t)comm->size, sizeof *counts, "halo counts");
  TRY(asparse_comm_agree(comm, halo && counts ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  halo->comm = comm;
  halo->engine = engine;
  halo->shape = shape;
  halo->n_rows = n_rows;
  halo->n_own = col_starts[comm->rank + 1] - col_starts[comm->rank];
  if (wanted) TRY(exchange_wants(halo, col_starts, wanted, counts));
  else TRY(asparse_comm_agree(comm, replicate_wants(halo, col_starts, counts)));
  TRY(asparse_transport_find(comm, engine, &halo->transport));
  status = allocate_buffers(halo);
  if (status == ASPARSE_OK) status = halo->transport->create(halo);
  TRY(asparse_comm_agree(comm, status));
  *out = halo;
  halo = NULL;
cleanup:
  asparse_free(counts);
  asparse_halo_destroy(&halo);
  return status;
}

void asparse_halo_destroy(asparse_halo **halo_pointer) {
  if (!halo_pointer || !*halo_pointer) return;
  asparse_halo *halo = *halo_pointer;
  if (halo->transport) halo->transport->destroy(halo);
  if (halo->engine) {
    const asparse_backend *backend = halo->engine->backend;
    backend->event_destroy(halo->ready);
    backend->event_destroy(halo->started);
    backend->event_destroy(halo->packed_all);
    for (int i = 0; i < halo->shape.chunks; i++) backend->event_destroy(halo->arrived[i]);
    if (halo->engine_send_rows != halo->send_rows) backend->release(halo->engine_send_rows);
    backend->release(halo->buffer);
    backend->release(halo->packed);
  }
  if (halo->owns_host_buffer) asparse_free(halo->host_buffer);
  asparse_free(halo->sources);
  asparse_free(halo->destinations);
  asparse_free(halo->receive_starts);
  asparse_free(halo->send_starts);
  asparse_free(halo->send_rows);
  FREE(*halo_pointer);
}

static bool has_peers(const asparse_halo *halo) { return halo->n_sources > 0 || halo->n_destinations > 0; }

asparse_status asparse_halo_fail(asparse_halo *halo, asparse_status status) {
  if (status != ASPARSE_OK && has_peers(halo)) asparse_comm_abort(halo->comm, status);
  return status;
}

/* The exchange queue starts once what was enqueued before is done: then b is there and the buffer no longer read. */
static asparse_status begin(asparse_halo *halo, const void *b, int64_t ldb) {
  const asparse_backend *backend = halo->engine->backend;
  PASS(backend->record(halo->engine, ASPARSE_QUEUE_COMPUTE, halo->ready));
  PASS(backend->after(halo->engine, ASPARSE_QUEUE_EXCHANGE, halo->ready));
  return halo->transport->begin(halo, b, ldb);
}

asparse_status asparse_halo_exchange_begin(asparse_halo *halo, const void *b, int64_t ldb) {
  asparse_fault_point(halo->comm->rank, "exchange");
  return has_peers(halo) ? asparse_halo_fail(halo, begin(halo, b, ldb)) : ASPARSE_OK;
}

asparse_status asparse_halo_exchange_progress(asparse_halo *halo) {
  return has_peers(halo) ? asparse_halo_fail(halo, halo->transport->progress(halo)) : ASPARSE_OK;
}

asparse_status asparse_halo_exchange_end_chunk(asparse_halo *halo, int chunk) {
  if (!has_peers(halo)) return ASPARSE_OK;
  asparse_status status = halo->transport->end(halo, chunk);
  if (status == ASPARSE_OK)
    status = halo->engine->backend->after(halo->engine, ASPARSE_QUEUE_COMPUTE, halo->arrived[chunk]);
  return asparse_halo_fail(halo, status);
}

asparse_status asparse_halo_exchange_end(asparse_halo *halo) {
  for (int c = 0; c < halo->shape.chunks; c++) PASS(asparse_halo_exchange_end_chunk(halo, c));
  return ASPARSE_OK;
}

static asparse_status all_reached(const asparse_halo *halo, bool *reached) {
  *reached = true;
  for (int c = 0; c < halo->shape.chunks && *reached; c++)
    PASS(halo->engine->backend->reached(halo->engine, halo->arrived[c], reached));
  return ASPARSE_OK;
}

asparse_status asparse_halo_wait(asparse_halo *halo) {
  const double since = asparse_seconds();
  bool reached = false;
  if (!has_peers(halo) || !halo->transport->check) return ASPARSE_OK;
  for (;;) {
    PASS(asparse_halo_fail(halo, all_reached(halo, &reached)));
    if (reached) return ASPARSE_OK;
    PASS(asparse_halo_fail(halo, halo->transport->check(halo)));
    asparse_comm_check_time(halo->comm, since, -1, "rows of B");
  }
}

asparse_status asparse_halo_times(asparse_halo *halo, double *pack, double *communication) {
  const asparse_backend *backend = halo->engine->backend;
  *pack = *communication = 0;
  if (!has_peers(halo)) return ASPARSE_OK;
  PASS(backend->elapsed(halo->engine, halo->started, halo->packed_all, pack));
  for (int c = 0; c < halo->shape.chunks; c++) {
    double seconds = 0;
    PASS(backend->elapsed(halo->engine, halo->started, halo->arrived[c], &seconds));
    if (seconds > *communication) *communication = seconds;
  }
  return ASPARSE_OK;
}

asparse_status asparse_halo_host_rows(asparse_halo *halo, const void **rows) {
  asparse_status status = ASPARSE_OK;
  const size_t bytes = (size_t)halo->bytes_received;
  if (!halo->host_buffer) {
    ALLOC_BYTES(halo->host_buffer, halo->n_rows, (size_t)asparse_halo_row_bytes(halo));
    halo->owns_host_buffer = true;
  }
  TRY(asparse_halo_wait(halo));
  if (halo->owns_host_buffer && bytes > 0)
    TRY(halo->engine->backend->copy_out(halo->engine, halo->host_buffer, bytes, halo->buffer, bytes, bytes, 1));
  *rows = halo->host_buffer;
cleanup:
  return status;
}

int asparse_halo_chunks(int64_t n, int wanted) {
  const int64_t most = n / LEAST_COLUMNS < ASPARSE_MOST_CHUNKS ? n / LEAST_COLUMNS : ASPARSE_MOST_CHUNKS;
  const int chunks = wanted > most ? (int)most : wanted;
  return chunks > 1 ? chunks : 1;
}

int64_t asparse_halo_chunk_start(const asparse_halo_shape *shape, int chunk) {
  return chunk == shape->chunks ? shape->n : shape->n * chunk / shape->chunks / LEAST_COLUMNS * LEAST_COLUMNS;
}

const void *asparse_halo_chunk(const asparse_halo *halo, int chunk) {
  return (const char *)halo->buffer + asparse_halo_receive_offset(halo, chunk, 0);
}

int64_t asparse_halo_bytes(const asparse_halo *halo) {
  const int64_t list = halo->send_rows ? 4 * halo->send_starts[halo->n_destinations] : 0;
  return halo->bytes_received + asparse_halo_packed_rows(halo) * asparse_halo_row_bytes(halo) + list;
}

const char *asparse_halo_transport(const asparse_halo *halo) { return halo->transport->name; }
