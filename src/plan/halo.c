#include "plan/halo.h"

#include <limits.h>

enum { TAG_HALO = 21 };

static int64_t row_bytes(const asparse_halo *halo) { return halo->n * (int64_t)asparse_dtype_size(halo->dtype); }

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

/* The host's engine packs and multiplies what MPI sends and fills. */
static asparse_status allocate_engine_buffers(asparse_halo *halo, int64_t n_send) {
  const asparse_backend *backend = halo->engine->backend;
  const size_t size = (size_t)row_bytes(halo);
  if (on_host(halo)) {
    halo->buffer = halo->host_buffer;
    halo->packed = halo->send_buffer;
    halo->engine_send_rows = halo->send_rows;
    return ASPARSE_OK;
  }
  PASS(backend->allocate(halo->engine, halo->n_rows, size, "halo of B", &halo->buffer));
  PASS(
      backend->allocate(halo->engine, halo->send_rows ? n_send : halo->n_own, size, "packed rows of B", &halo->packed));
  if (!halo->send_rows) return ASPARSE_OK;
  const size_t list = (size_t)n_send * sizeof *halo->send_rows;
  PASS(backend->allocate(halo->engine, n_send, sizeof *halo->send_rows, "rows to send",
                         (void **)&halo->engine_send_rows));
  return backend->copy_in(halo->engine, halo->engine_send_rows, list, halo->send_rows, list, list, 1);
}

static asparse_status allocate_buffers(asparse_halo *halo) {
  asparse_status status = ASPARSE_OK;
  int64_t n_send = halo->send_starts[halo->n_destinations], n_requests = 0;
  size_t size = (size_t)row_bytes(halo);
  ALLOC_BYTES(halo->host_buffer, halo->n_rows, size);
  ALLOC_BYTES(halo->send_buffer, halo->send_rows ? n_send : halo->n_own, size);
  TRY(allocate_engine_buffers(halo, n_send));
  for (int i = 0; i < halo->n_sources; i++)
    n_requests +=
        asparse_comm_pieces(halo->comm, (halo->receive_starts[i + 1] - halo->receive_starts[i]) * row_bytes(halo));
  for (int i = 0; i < halo->n_destinations; i++)
    n_requests += asparse_comm_pieces(halo->comm, (halo->send_starts[i + 1] - halo->send_starts[i]) * row_bytes(halo));
  TRY_THAT(n_requests <= INT_MAX, ASPARSE_ERR_RUNTIME, "an exchange needs %lld messages; use more ranks",
           (long long)n_requests);
  ALLOC(halo->requests, n_requests);
  halo->bytes_received = halo->n_rows * row_bytes(halo);
  halo->bytes_sent = n_send * row_bytes(halo);
cleanup:
  return status;
}

asparse_status asparse_halo_create(asparse_comm *comm, asparse_engine *engine, const int64_t *col_starts,
                                   const int64_t *wanted, int64_t n_rows, int64_t n, asparse_dtype dtype,
                                   asparse_halo **out) {
  asparse_status status = ASPARSE_OK;
  asparse_halo *halo = asparse_calloc(1, sizeof *halo, "halo");
  int64_t *counts = asparse_calloc(4 * (int64_t)comm->size, sizeof *counts, "halo counts");
  TRY(asparse_comm_agree(comm, halo && counts ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  halo->comm = comm;
  halo->engine = engine;
  halo->dtype = dtype;
  halo->n = n;
  halo->n_rows = n_rows;
  halo->n_own = col_starts[comm->rank + 1] - col_starts[comm->rank];
  if (wanted) TRY(exchange_wants(halo, col_starts, wanted, counts));
  else TRY(asparse_comm_agree(comm, replicate_wants(halo, col_starts, counts)));
  TRY(asparse_comm_agree(comm, allocate_buffers(halo)));
  *out = halo;
  halo = NULL;
cleanup:
  asparse_free(counts);
  asparse_halo_destroy(&halo);
  return status;
}

void asparse_halo_destroy(asparse_halo **halo) {
  if (!halo || !*halo) return;
  asparse_free((*halo)->sources);
  asparse_free((*halo)->destinations);
  asparse_free((*halo)->receive_starts);
  asparse_free((*halo)->send_starts);
  asparse_free((*halo)->send_rows);
  if ((*halo)->engine && !on_host(*halo)) {
    const asparse_backend *backend = (*halo)->engine->backend;
    backend->release((*halo)->buffer);
    backend->release((*halo)->packed);
    backend->release((*halo)->engine_send_rows);
  }
  asparse_free((*halo)->host_buffer);
  asparse_free((*halo)->send_buffer);
  asparse_free((*halo)->requests);
  FREE(*halo);
}

/* Bytes that rows for destination i start at in the packed buffers. */
static int64_t send_offset(const asparse_halo *halo, int i) {
  return halo->send_rows ? halo->send_starts[i] * row_bytes(halo) : 0;
}

static int64_t send_bytes(const asparse_halo *halo, int i) {
  return (halo->send_starts[i + 1] - halo->send_starts[i]) * row_bytes(halo);
}

static asparse_status copy_out(asparse_engine *engine, void *to, const void *from, int64_t bytes) {
  const size_t size = (size_t)bytes;
  return engine->backend->copy_out(engine, to, size, from, size, size, 1);
}

/* The rows for destination i: packed; or, where everyone gets every row, b itself if it has no gaps. */
static asparse_status rows_to_send(asparse_halo *halo, int i, const void *b, int64_t ldb, const void **rows) {
  asparse_engine *engine = halo->engine;
  const int64_t offset = send_offset(halo, i);
  *rows = (char *)halo->send_buffer + offset;
  if (on_host(halo) && !halo->send_rows && ldb == halo->n) *rows = b;
  if (halo->send_rows) {
    const int64_t begin = halo->send_starts[i], count = halo->send_starts[i + 1] - begin;
    PASS(engine->backend->pack(engine, halo->dtype, count, halo->engine_send_rows + begin, halo->n, b, ldb,
                               (char *)halo->packed + offset));
    if (!on_host(halo))
      PASS(copy_out(engine, (char *)halo->send_buffer + offset, (char *)halo->packed + offset, send_bytes(halo, i)));
  }
  return ASPARSE_OK;
}

/* Where everyone gets every row: all of b, packed once. */
static asparse_status pack_all(asparse_halo *halo, const void *b, int64_t ldb) {
  asparse_engine *engine = halo->engine;
  if (halo->n_destinations == 0) return ASPARSE_OK;
  if (ldb != halo->n)
    PASS(engine->backend->pack(engine, halo->dtype, halo->n_own, NULL, halo->n, b, ldb, halo->packed));
  if (on_host(halo)) return ASPARSE_OK;
  return copy_out(engine, halo->send_buffer, ldb != halo->n ? halo->packed : b, halo->n_own * row_bytes(halo));
}

/* Receives first, so that no message arrives unexpected; then pack and send, next rank first. */
asparse_status asparse_halo_exchange_begin(asparse_halo *halo, const void *b, int64_t ldb) {
  asparse_status status = ASPARSE_OK;
  halo->n_requests = 0;
  for (int i = 0; i < halo->n_sources; i++) {
    int64_t begin = halo->receive_starts[i], rows = halo->receive_starts[i + 1] - begin;
    TRY(asparse_comm_irecv(halo->comm, (char *)halo->host_buffer + begin * row_bytes(halo), rows * row_bytes(halo),
                           halo->sources[i], TAG_HALO, halo->requests, &halo->n_requests));
  }
  if (!halo->send_rows) TRY(pack_all(halo, b, ldb));
  int first = 0;
  while (first < halo->n_destinations && halo->destinations[first] < halo->comm->rank) first++;
  for (int j = 0; j < halo->n_destinations; j++) {
    int i = (first + j) % halo->n_destinations;
    const void *rows = NULL;
    TRY(rows_to_send(halo, i, b, ldb, &rows));
    TRY(asparse_comm_isend(halo->comm, rows, send_bytes(halo, i), halo->destinations[i], TAG_HALO, halo->requests,
                           &halo->n_requests));
  }
cleanup:
  return status;
}

asparse_status asparse_halo_exchange_progress(asparse_halo *halo) {
  asparse_status status = ASPARSE_OK;
  int done = 0;
  if (halo->n_requests > 0) TRY_MPI(MPI_Testall((int)halo->n_requests, halo->requests, &done, MPI_STATUSES_IGNORE));
  if (done) halo->n_requests = 0;
cleanup:
  return status;
}

asparse_status asparse_halo_exchange_end(asparse_halo *halo) {
  asparse_status status = ASPARSE_OK;
  TRY_MPI(MPI_Waitall((int)halo->n_requests, halo->requests, MPI_STATUSES_IGNORE));
  halo->n_requests = 0;
  const size_t bytes = (size_t)(halo->n_rows * row_bytes(halo));
  if (!on_host(halo) && bytes > 0)
    TRY(halo->engine->backend->copy_in(halo->engine, halo->buffer, bytes, halo->host_buffer, bytes, bytes, 1));
cleanup:
  return status;
}

int64_t asparse_halo_bytes(const asparse_halo *halo) {
  int64_t send =
      halo->send_rows ? halo->bytes_sent + 4 * halo->send_starts[halo->n_destinations] : halo->n_own * row_bytes(halo);
  return halo->bytes_received + send;
}
