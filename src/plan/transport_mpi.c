/* Rows of B by MPI, from host memory to host memory. */
#include <limits.h>

#include "base/clock.h"
#include "plan/transport.h"

enum { TAG_HALO = 21 };

typedef struct mpi_state {
  bool staged;           /* the rows are on a GPU */
  void *receive_buffer;  /* host: as the halo's buffer; that itself where it is there */
  void *send_buffer;     /* host: as the packed rows; those themselves where they are there */
  const void *send_from; /* host: what is sent; send_buffer, or B itself */
  /* Receives, chunk by chunk and source by source, then sends in the order of posting. */
  MPI_Request *requests;
  int *peers;               /* [n_requests] */
  int64_t *receives;        /* [chunks × n_sources + 1] first request of each source of each chunk */
  int64_t n_requests, room; /* posted; at most */
  bool *arrived;            /* [chunks × n_sources] */
  int n_arrived[ASPARSE_MOST_CHUNKS];
  /* [chunks × packings] reached when the rows of a destination can be sent; one for all with replicate */
  asparse_event **packed;
  int packings;
  int n_packed, n_sent; /* destinations of chunks, in order of sending */
} mpi_state;

/* Destination j of a chunk in order of sending: the next rank first, so that not all send to one. */
static int destination(const asparse_halo *halo, int j) { return (halo->first_destination + j) % halo->n_destinations; }

static int all_sends(const asparse_halo *halo) { return halo->shape.chunks * halo->n_destinations; }

static int all_receives(const asparse_halo *halo) { return halo->shape.chunks * halo->n_sources; }

static asparse_status allocate_requests(asparse_halo *halo, mpi_state *state) {
  asparse_status status = ASPARSE_OK;
  for (int c = 0; c < halo->shape.chunks; c++) {
    for (int i = 0; i < halo->n_sources; i++)
      state->room += asparse_comm_pieces(halo->comm, asparse_halo_receive_bytes(halo, c, i));
    for (int i = 0; i < halo->n_destinations; i++)
      state->room += asparse_comm_pieces(halo->comm, asparse_halo_send_bytes(halo, c, i));
  }
  TRY_THAT(state->room <= INT_MAX, ASPARSE_ERR_RUNTIME, "an exchange needs %lld messages; use more ranks",
           (long long)state->room);
  ALLOC(state->requests, state->room);
  ALLOC(state->peers, state->room);
  ALLOC_ZERO(state->receives, all_receives(halo) + (int64_t)1);
  ALLOC_ZERO(state->arrived, all_receives(halo));
cleanup:
  return status;
}

static asparse_status allocate_buffers(asparse_halo *halo, mpi_state *state) {
  const asparse_backend *backend = halo->engine->backend;
  const size_t size = (size_t)asparse_halo_row_bytes(halo);
  if (!state->staged) {
    state->send_buffer = halo->packed;
    state->receive_buffer = halo->host_buffer = halo->buffer;
    return ASPARSE_OK;
  }
  PASS(backend->pin(halo->engine, halo->n_rows, size, "halo of B", &state->receive_buffer));
  halo->host_buffer = state->receive_buffer;
  return backend->pin(halo->engine, asparse_halo_packed_rows(halo), size, "packed rows of B", &state->send_buffer);
}

static asparse_status mpi_create(asparse_halo *halo) {
  asparse_status status = ASPARSE_OK;
  mpi_state *state = NULL;
  ALLOC_ZERO(state, 1);
  halo->transport_state = state;
  state->staged = halo->engine->backend->space == ASPARSE_SPACE_DEVICE;
  state->packings = halo->send_rows ? halo->n_destinations : 1;
  TRY(allocate_requests(halo, state));
  TRY(allocate_buffers(halo, state));
  const int packings = halo->shape.chunks * state->packings;
  ALLOC_ZERO(state->packed, packings);
  for (int i = 0; i < packings; i++) TRY(halo->engine->backend->event_create(halo->engine, &state->packed[i]));
cleanup:
  return status;
}

static void mpi_destroy(asparse_halo *halo) {
  const asparse_backend *backend = halo->engine->backend;
  mpi_state *state = halo->transport_state;
  if (!state) return;
  if (state->staged) backend->unpin(state->receive_buffer);
  if (state->staged) backend->unpin(state->send_buffer);
  for (int i = 0; state->packed && i < halo->shape.chunks * state->packings; i++)
    backend->event_destroy(state->packed[i]);
  asparse_free(state->packed);
  asparse_free(state->requests);
  asparse_free(state->peers);
  asparse_free(state->receives);
  asparse_free(state->arrived);
  FREE(halo->transport_state);
}

static void name_peers(mpi_state *state, int64_t from, int peer) {
  for (int64_t i = from; i < state->n_requests; i++) state->peers[i] = peer;
}

static asparse_status post_receives(asparse_halo *halo) {
  mpi_state *state = halo->transport_state;
  for (int r = 0; r < all_receives(halo); r++) {
    const int c = r / halo->n_sources, i = r % halo->n_sources;
    state->receives[r] = state->n_requests;
    PASS(asparse_comm_irecv(halo->comm, (char *)state->receive_buffer + asparse_halo_receive_offset(halo, c, i),
                            asparse_halo_receive_bytes(halo, c, i), halo->sources[i], TAG_HALO, state->requests,
                            &state->n_requests));
    name_peers(state, state->receives[r], halo->sources[i]);
    state->arrived[r] = false;
  }
  state->receives[all_receives(halo)] = state->n_requests;
  return ASPARSE_OK;
}

static asparse_event *packing_event(const asparse_halo *halo, int chunk, int destination) {
  const mpi_state *state = halo->transport_state;
  return state->packed[chunk * state->packings + (halo->send_rows ? destination : 0)];
}

/* Sends what is packed, in order. */
static asparse_status send_packed(asparse_halo *halo) {
  mpi_state *state = halo->transport_state;
  const asparse_backend *backend = halo->engine->backend;
  for (; state->n_sent < state->n_packed; state->n_sent++) {
    const int c = state->n_sent / halo->n_destinations, i = destination(halo, state->n_sent % halo->n_destinations);
    const int64_t first = state->n_requests;
    bool ready = false;
    PASS(backend->reached(halo->engine, packing_event(halo, c, i), &ready));
    if (!ready) break;
    PASS(asparse_comm_isend(halo->comm, (const char *)state->send_from + asparse_halo_send_offset(halo, c, i),
                            asparse_halo_send_bytes(halo, c, i), halo->destinations[i], TAG_HALO, state->requests,
                            &state->n_requests));
    name_peers(state, first, halo->destinations[i]);
  }
  return ASPARSE_OK;
}

/* Copies packed bytes to the host where they are not there already, and records event when that is done. */
static asparse_status copy_out(asparse_halo *halo, const void *packed, int64_t offset, int64_t bytes,
                               asparse_event *event) {
  const asparse_backend *backend = halo->engine->backend;
  const mpi_state *state = halo->transport_state;
  if (state->staged)
    PASS(backend->copy(halo->engine, ASPARSE_QUEUE_EXCHANGE, (char *)state->send_buffer + offset, packed,
                       (size_t)bytes));
  return backend->record(halo->engine, ASPARSE_QUEUE_EXCHANGE, event);
}

/* n_rows rows (rows NULL: the first ones) of a chunk's columns of b. */
static asparse_status pack_chunk(asparse_halo *halo, int chunk, int64_t n_rows, const int32_t *rows, const void *b,
                                 int64_t ldb, void *packed) {
  return halo->engine->backend->pack(halo->engine, ASPARSE_QUEUE_EXCHANGE, halo->shape.dtype, n_rows, rows,
                                     asparse_halo_chunk_columns(&halo->shape, chunk),
                                     (const char *)b + asparse_halo_chunk_row_offset(halo, chunk), ldb, packed);
}

/* Every destination gets its own rows: packed, and sent while the next are packed. */
static asparse_status pack_rows(asparse_halo *halo, const void *b, int64_t ldb) {
  mpi_state *state = halo->transport_state;
  state->send_from = state->send_buffer;
  for (int s = 0; s < all_sends(halo); s++) {
    const int c = s / halo->n_destinations, i = destination(halo, s % halo->n_destinations);
    const int64_t begin = halo->send_starts[i], offset = asparse_halo_send_offset(halo, c, i);
    char *packed = (char *)halo->packed + offset;
    PASS(pack_chunk(halo, c, halo->send_starts[i + 1] - begin, halo->engine_send_rows + begin, b, ldb, packed));
    PASS(copy_out(halo, packed, offset, asparse_halo_send_bytes(halo, c, i), packing_event(halo, c, i)));
    state->n_packed = s + 1;
    PASS(send_packed(halo));
  }
  return ASPARSE_OK;
}

/* Every destination gets all rows: packed once, and not at all where B has no gaps. */
static asparse_status pack_all(asparse_halo *halo, const void *b, int64_t ldb) {
  mpi_state *state = halo->transport_state;
  const bool as_it_is = halo->shape.chunks == 1 && ldb == halo->shape.n;
  const char *packed = as_it_is ? b : halo->packed;
  state->send_from = state->staged ? state->send_buffer : packed;
  for (int c = 0; c < halo->shape.chunks; c++) {
    const int64_t offset = asparse_halo_send_offset(halo, c, 0);
    const int64_t bytes = halo->n_own * asparse_halo_chunk_row_bytes(halo, c);
    if (!as_it_is) PASS(pack_chunk(halo, c, halo->n_own, NULL, b, ldb, (char *)halo->packed + offset));
    PASS(copy_out(halo, packed + offset, offset, bytes, packing_event(halo, c, 0)));
    state->n_packed += halo->n_destinations;
    PASS(send_packed(halo));
  }
  return ASPARSE_OK;
}

/* Waits until the rows of the exchange before have left the receive buffer. */
static asparse_status wait_until_copied(asparse_halo *halo) {
  const mpi_state *state = halo->transport_state;
  for (int c = 0; c < halo->shape.chunks; c++) {
    bool copied = !state->staged;
    while (!copied) PASS(halo->engine->backend->reached(halo->engine, halo->arrived[c], &copied));
  }
  return ASPARSE_OK;
}

static asparse_status record_arrived(asparse_halo *halo, int chunk) {
  return halo->engine->backend->record(halo->engine, ASPARSE_QUEUE_EXCHANGE, halo->arrived[chunk]);
}

/* Receives first, so that no message arrives unexpected. */
static asparse_status mpi_begin(asparse_halo *halo, const void *b, int64_t ldb) {
  const asparse_backend *backend = halo->engine->backend;
  mpi_state *state = halo->transport_state;
  state->n_requests = 0;
  state->n_packed = state->n_sent = 0;
  for (int c = 0; c < halo->shape.chunks; c++) state->n_arrived[c] = 0;
  PASS(wait_until_copied(halo));
  PASS(post_receives(halo));
  PASS(backend->record(halo->engine, ASPARSE_QUEUE_EXCHANGE, halo->started));
  if (halo->send_rows) PASS(pack_rows(halo, b, ldb));
  else if (halo->n_destinations > 0) PASS(pack_all(halo, b, ldb));
  PASS(backend->record(halo->engine, ASPARSE_QUEUE_EXCHANGE, halo->packed_all));
  for (int c = 0; c < halo->shape.chunks && halo->n_sources == 0; c++) PASS(record_arrived(halo, c));
  return ASPARSE_OK;
}

/* Takes in the rows of a source that have come for a chunk. */
static asparse_status take_in(asparse_halo *halo, int chunk, int i) {
  mpi_state *state = halo->transport_state;
  const int64_t offset = asparse_halo_receive_offset(halo, chunk, i);
  if (state->staged)
    PASS(halo->engine->backend->copy(halo->engine, ASPARSE_QUEUE_EXCHANGE, (char *)halo->buffer + offset,
                                     (char *)state->receive_buffer + offset,
                                     (size_t)asparse_halo_receive_bytes(halo, chunk, i)));
  state->arrived[chunk * halo->n_sources + i] = true;
  return ++state->n_arrived[chunk] == halo->n_sources ? record_arrived(halo, chunk) : ASPARSE_OK;
}

/* Takes in what has arrived of a chunk. */
static asparse_status take_arrived(asparse_halo *halo, int chunk) {
  asparse_status status = ASPARSE_OK;
  mpi_state *state = halo->transport_state;
  for (int i = 0; i < halo->n_sources; i++) {
    const int r = chunk * halo->n_sources + i;
    const int64_t first = state->receives[r];
    int done = 0;
    if (state->arrived[r]) continue;
    TRY_MPI(MPI_Testall((int)(state->receives[r + 1] - first), state->requests + first, &done, MPI_STATUSES_IGNORE));
    if (done) TRY(take_in(halo, chunk, i));
  }
cleanup:
  return status;
}

/* The first chunk that is not whole; chunks: all are. */
static int first_missing(const asparse_halo *halo) {
  const mpi_state *state = halo->transport_state;
  int c = 0;
  while (c < halo->shape.chunks && state->n_arrived[c] == halo->n_sources) c++;
  return c;
}

static asparse_status mpi_progress(asparse_halo *halo) {
  const mpi_state *state = halo->transport_state;
  if (state->n_sent < all_sends(halo)) PASS(send_packed(halo));
  const int missing = first_missing(halo);
  return missing < halo->shape.chunks ? take_arrived(halo, missing) : ASPARSE_OK;
}

/* Ends the job when rows have been waited for too long: the first source that is missing is named. */
static void check_time(asparse_halo *halo, int chunk, double since) {
  const mpi_state *state = halo->transport_state;
  const bool *arrived = state->arrived + (int64_t)chunk * halo->n_sources;
  int i = 0;
  while (i < halo->n_sources && arrived[i]) i++;
  if (i < halo->n_sources) asparse_comm_check_time(halo->comm, since, halo->sources[i], "rows of B");
  else asparse_comm_check_time(halo->comm, since, halo->comm->rank, "packed rows");
}

/* With the last chunk b must not be needed any more: then everything has been sent. */
static asparse_status mpi_end(asparse_halo *halo, int chunk) {
  mpi_state *state = halo->transport_state;
  const double since = asparse_seconds();
  const bool last = chunk == halo->shape.chunks - 1;
  while (state->n_arrived[chunk] < halo->n_sources || (last && state->n_sent < all_sends(halo))) {
    PASS(mpi_progress(halo));
    check_time(halo, chunk, since);
  }
  if (!last) return ASPARSE_OK;
  const int64_t sends = state->receives[all_receives(halo)];
  return asparse_comm_wait(halo->comm, state->n_requests - sends, state->requests + sends, state->peers + sends);
}

const asparse_transport asparse_mpi_transport = {.name = "mpi",
                                                 .create = mpi_create,
                                                 .destroy = mpi_destroy,
                                                 .begin = mpi_begin,
                                                 .progress = mpi_progress,
                                                 .end = mpi_end};
