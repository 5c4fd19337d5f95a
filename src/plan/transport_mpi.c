/* Rows of B by MPI, from host memory to host memory. */
#include <limits.h>

#include "base/clock.h"
#include "plan/transport.h"

enum { TAG_HALO = 21 };

typedef struct mpi_state {
  bool staged;           /* the rows are on a GPU */
  void *receive_buffer;  /* host: [n_rows × n]; the halo's buffer itself where that is there */
  void *send_buffer;     /* host: as the packed rows; those themselves where they are there */
  const void *send_from; /* host: what is sent; send_buffer, or B itself */
  /* Receives, source by source, then sends in the order of posting. */
  MPI_Request *requests;
  int *peers;               /* [n_requests] */
  int64_t *receives;        /* [n_sources + 1] first request of each source */
  int64_t n_requests, room; /* posted; at most */
  bool *arrived;            /* [n_sources] */
  int n_arrived;
  asparse_event *
      *packed; /* [n_packings] reached when the rows of a destination can be sent; one for all with replicate */
  int n_packings;
  int n_packed, n_sent; /* destinations, in order of sending */
} mpi_state;

/* Destination j in order of sending: the next rank first, so that not all send to one. */
static int destination(const asparse_halo *halo, int j) { return (halo->first_destination + j) % halo->n_destinations; }

static asparse_status allocate_requests(asparse_halo *halo, mpi_state *state) {
  asparse_status status = ASPARSE_OK;
  for (int i = 0; i < halo->n_sources; i++)
    state->room += asparse_comm_pieces(halo->comm, asparse_halo_receive_bytes(halo, i));
  for (int i = 0; i < halo->n_destinations; i++)
    state->room += asparse_comm_pieces(halo->comm, asparse_halo_send_bytes(halo, i));
  TRY_THAT(state->room <= INT_MAX, ASPARSE_ERR_RUNTIME, "an exchange needs %lld messages; use more ranks",
           (long long)state->room);
  ALLOC(state->requests, state->room);
  ALLOC(state->peers, state->room);
  ALLOC_ZERO(state->receives, halo->n_sources + (int64_t)1);
  ALLOC_ZERO(state->arrived, halo->n_sources);
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
  state->n_packings = halo->send_rows ? halo->n_destinations : 1;
  TRY(allocate_requests(halo, state));
  TRY(allocate_buffers(halo, state));
  ALLOC_ZERO(state->packed, state->n_packings);
  for (int i = 0; i < state->n_packings; i++) TRY(halo->engine->backend->event_create(halo->engine, &state->packed[i]));
cleanup:
  return status;
}

static void mpi_destroy(asparse_halo *halo) {
  const asparse_backend *backend = halo->engine->backend;
  mpi_state *state = halo->transport_state;
  if (!state) return;
  if (state->staged) backend->unpin(state->receive_buffer);
  if (state->staged) backend->unpin(state->send_buffer);
  for (int i = 0; state->packed && i < state->n_packings; i++) backend->event_destroy(state->packed[i]);
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
  for (int i = 0; i < halo->n_sources; i++) {
    state->receives[i] = state->n_requests;
    PASS(asparse_comm_irecv(halo->comm, (char *)state->receive_buffer + asparse_halo_receive_offset(halo, i),
                            asparse_halo_receive_bytes(halo, i), halo->sources[i], TAG_HALO, state->requests,
                            &state->n_requests));
    name_peers(state, state->receives[i], halo->sources[i]);
    state->arrived[i] = false;
  }
  state->receives[halo->n_sources] = state->n_requests;
  return ASPARSE_OK;
}

/* Sends what is packed, in order. */
static asparse_status send_packed(asparse_halo *halo) {
  mpi_state *state = halo->transport_state;
  const asparse_backend *backend = halo->engine->backend;
  for (; state->n_sent < state->n_packed; state->n_sent++) {
    const int i = destination(halo, state->n_sent);
    const int64_t first = state->n_requests;
    bool ready = false;
    PASS(backend->reached(halo->engine, state->packed[halo->send_rows ? i : 0], &ready));
    if (!ready) break;
    PASS(asparse_comm_isend(halo->comm, (const char *)state->send_from + asparse_halo_send_offset(halo, i),
                            asparse_halo_send_bytes(halo, i), halo->destinations[i], TAG_HALO, state->requests,
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

/* Every destination gets its own rows: packed, and sent while the next are packed. */
static asparse_status pack_rows(asparse_halo *halo, const void *b, int64_t ldb) {
  mpi_state *state = halo->transport_state;
  state->send_from = state->send_buffer;
  for (int j = 0; j < halo->n_destinations; j++) {
    const int i = destination(halo, j);
    const int64_t begin = halo->send_starts[i], offset = asparse_halo_send_offset(halo, i);
    char *packed = (char *)halo->packed + offset;
    PASS(halo->engine->backend->pack(halo->engine, ASPARSE_QUEUE_EXCHANGE, halo->dtype,
                                     halo->send_starts[i + 1] - begin, halo->engine_send_rows + begin, halo->n, b, ldb,
                                     packed));
    PASS(copy_out(halo, packed, offset, asparse_halo_send_bytes(halo, i), state->packed[i]));
    state->n_packed = j + 1;
    PASS(send_packed(halo));
  }
  return ASPARSE_OK;
}

/* Every destination gets all rows: packed once, and not at all where B has no gaps. */
static asparse_status pack_all(asparse_halo *halo, const void *b, int64_t ldb) {
  mpi_state *state = halo->transport_state;
  const void *packed = b;
  if (ldb != halo->n) {
    packed = halo->packed;
    PASS(halo->engine->backend->pack(halo->engine, ASPARSE_QUEUE_EXCHANGE, halo->dtype, halo->n_own, NULL, halo->n, b,
                                     ldb, halo->packed));
  }
  state->send_from = state->staged ? state->send_buffer : packed;
  PASS(copy_out(halo, packed, 0, halo->n_own * asparse_halo_row_bytes(halo), state->packed[0]));
  state->n_packed = halo->n_destinations;
  return send_packed(halo);
}

/* Waits until the rows of the exchange before have left the receive buffer. */
static asparse_status wait_until_copied(asparse_halo *halo) {
  const mpi_state *state = halo->transport_state;
  bool copied = !state->staged;
  while (!copied) PASS(halo->engine->backend->reached(halo->engine, halo->arrived, &copied));
  return ASPARSE_OK;
}

/* Receives first, so that no message arrives unexpected. */
static asparse_status mpi_begin(asparse_halo *halo, const void *b, int64_t ldb) {
  const asparse_backend *backend = halo->engine->backend;
  mpi_state *state = halo->transport_state;
  state->n_requests = 0;
  state->n_arrived = state->n_packed = state->n_sent = 0;
  PASS(wait_until_copied(halo));
  PASS(post_receives(halo));
  PASS(backend->record(halo->engine, ASPARSE_QUEUE_EXCHANGE, halo->started));
  if (halo->send_rows) PASS(pack_rows(halo, b, ldb));
  else if (halo->n_destinations > 0) PASS(pack_all(halo, b, ldb));
  PASS(backend->record(halo->engine, ASPARSE_QUEUE_EXCHANGE, halo->packed_all));
  return halo->n_sources > 0 ? ASPARSE_OK : backend->record(halo->engine, ASPARSE_QUEUE_EXCHANGE, halo->arrived);
}

/* Takes in the rows of sources that have arrived. */
static asparse_status take_arrived(asparse_halo *halo) {
  asparse_status status = ASPARSE_OK;
  mpi_state *state = halo->transport_state;
  for (int i = 0; i < halo->n_sources; i++) {
    const int64_t first = state->receives[i], offset = asparse_halo_receive_offset(halo, i);
    int done = 0;
    if (state->arrived[i]) continue;
    TRY_MPI(MPI_Testall((int)(state->receives[i + 1] - first), state->requests + first, &done, MPI_STATUSES_IGNORE));
    if (!done) continue;
    if (state->staged)
      TRY(halo->engine->backend->copy(halo->engine, ASPARSE_QUEUE_EXCHANGE, (char *)halo->buffer + offset,
                                      (char *)state->receive_buffer + offset,
                                      (size_t)asparse_halo_receive_bytes(halo, i)));
    state->arrived[i] = true;
    if (++state->n_arrived == halo->n_sources)
      TRY(halo->engine->backend->record(halo->engine, ASPARSE_QUEUE_EXCHANGE, halo->arrived));
  }
cleanup:
  return status;
}

static asparse_status mpi_progress(asparse_halo *halo) {
  const mpi_state *state = halo->transport_state;
  if (state->n_sent < halo->n_destinations) PASS(send_packed(halo));
  return state->n_arrived < halo->n_sources ? take_arrived(halo) : ASPARSE_OK;
}

/* Ends the job when rows have been waited for too long: the first source that is missing is named. */
static void check_time(asparse_halo *halo, double since) {
  const mpi_state *state = halo->transport_state;
  int i = 0;
  while (i < halo->n_sources && state->arrived[i]) i++;
  if (i < halo->n_sources) asparse_comm_check_time(halo->comm, since, halo->sources[i], "rows of B");
  else asparse_comm_check_time(halo->comm, since, halo->comm->rank, "packed rows");
}

static asparse_status mpi_end(asparse_halo *halo) {
  mpi_state *state = halo->transport_state;
  const double since = asparse_seconds();
  while (state->n_arrived < halo->n_sources || state->n_sent < halo->n_destinations) {
    PASS(mpi_progress(halo));
    check_time(halo, since);
  }
  const int64_t sends = state->receives[halo->n_sources];
  return asparse_comm_wait(halo->comm, state->n_requests - sends, state->requests + sends, state->peers + sends);
}

const asparse_transport asparse_mpi_transport = {.name = "mpi",
                                                 .create = mpi_create,
                                                 .destroy = mpi_destroy,
                                                 .begin = mpi_begin,
                                                 .progress = mpi_progress,
                                                 .end = mpi_end};
