#include "base/comm.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "asparse_config.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/nccl_comm.h"

asparse_status asparse_mpi_fail(int code, const char *call, const char *source, int line) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return asparse_fail(ASPARSE_ERR_MPI, source, line, "MPI failed: %s (%.80s)", text, call);
}

/* Cores that the ranks of a node may use together. Collective on node. */
static asparse_status count_cores(MPI_Comm node, int *cores) {
  asparse_status status = ASPARSE_OK;
  cpu_set_t own, all;
  CPU_ZERO(&own);
  sched_getaffinity(0, sizeof own, &own);
  TRY_MPI(MPI_Allreduce(&own, &all, sizeof own, MPI_BYTE, MPI_BOR, node));
  *cores = CPU_COUNT(&all) > 0 ? CPU_COUNT(&all) : 1;
cleanup:
  return status;
}

asparse_status asparse_comm_create(asparse_comm **out, MPI_Comm mpi) {
  asparse_status status = ASPARSE_OK;
  MPI_Comm node = MPI_COMM_NULL;
  int cores = 1;
  asparse_comm *comm = asparse_calloc(1, sizeof *comm, "communicator");
  int failed = comm == NULL;
  if (comm) *comm = (asparse_comm){.mpi = MPI_COMM_NULL, .message_bytes = 1 << 30, .phase = "starting"};
  /* There is no communicator of our own to agree on yet. */
  TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, mpi));
  TRY_THAT(!failed, ASPARSE_ERR_MEMORY, "a rank cannot allocate its communicator");
  TRY_MPI(MPI_Comm_dup(mpi, &comm->mpi));
  TRY_MPI(MPI_Comm_set_errhandler(comm->mpi, MPI_ERRORS_RETURN));
  TRY_MPI(MPI_Comm_rank(comm->mpi, &comm->rank));
  TRY_MPI(MPI_Comm_size(comm->mpi, &comm->size));
  TRY_MPI(MPI_Comm_split_type(comm->mpi, MPI_COMM_TYPE_SHARED, comm->rank, MPI_INFO_NULL, &node));
  TRY_MPI(MPI_Comm_rank(node, &comm->node_rank));
  TRY_MPI(MPI_Comm_size(node, &comm->node_size));
  TRY(count_cores(node, &cores));
  comm->cores = (double)cores / comm->node_size;
  *out = comm;
  comm = NULL;
cleanup:
  if (node != MPI_COMM_NULL) MPI_Comm_free(&node);
  asparse_comm_destroy(&comm);
  return status;
}

asparse_status asparse_comm_split(asparse_comm *comm, int color, int key, asparse_comm **sub) {
  asparse_status status = ASPARSE_OK;
  MPI_Comm mpi = MPI_COMM_NULL;
  asparse_comm *made = NULL;
  *sub = NULL;
  TRY_MPI(MPI_Comm_split(comm->mpi, color < 0 ? MPI_UNDEFINED : color, key, &mpi));
  if (mpi != MPI_COMM_NULL) status = asparse_comm_create(&made, mpi);
  TRY(asparse_comm_agree(comm, status));
  if (!made) goto cleanup;
  made->message_bytes = comm->message_bytes;
  made->timeout_seconds = comm->timeout_seconds;
  made->phase = comm->phase;
  made->kind = comm->kind;
  made->cores = comm->cores;
  *sub = made;
  made = NULL;
cleanup:
  asparse_comm_destroy(&made);
  if (mpi != MPI_COMM_NULL) MPI_Comm_free(&mpi);
  return status;
}

void asparse_comm_destroy(asparse_comm **comm) {
  if (!comm || !*comm) return;
#if ASPARSE_HAVE_NCCL
  asparse_nccl_destroy(&(*comm)->nccl);
#endif
  if ((*comm)->mpi != MPI_COMM_NULL) MPI_Comm_free(&(*comm)->mpi);
  FREE(*comm);
}

double asparse_comm_core_share(const asparse_comm *comm, int threads) {
  const double share = comm->cores / threads;
  return share < 1 ? share : 1;
}

void asparse_comm_phase(asparse_comm *comm, const char *phase) {
  comm->phase = phase;
  asparse_fault_point(comm->rank, phase);
}

void asparse_comm_timeout(asparse_comm *comm, double seconds) { comm->timeout_seconds = seconds; }

void asparse_comm_abort(asparse_comm *comm, asparse_status status) {
  char host[64] = "?";
  gethostname(host, sizeof host - 1);
  fprintf(stderr, "asparse: error: rank %d of %d on %s, %s: %s; ending the job\n", comm->rank, comm->size, host,
          comm->phase, asparse_error_message());
  fflush(NULL);
#if ASPARSE_HAVE_NCCL
  asparse_nccl_abort(comm->nccl);
#endif
  MPI_Abort(MPI_COMM_WORLD, asparse_exit_code(status));
  _exit(asparse_exit_code(status));
}

void asparse_comm_check_time(asparse_comm *comm, double since, int peer, const char *what) {
  char text[160], who[32] = "other ranks";
  if (comm->timeout_seconds <= 0 || asparse_seconds() - since < comm->timeout_seconds) return;
  if (peer >= 0) snprintf(who, sizeof who, "rank %d", peer);
  snprintf(text, sizeof text, "waited %g s for %s%s%s; --timeout allows no more", comm->timeout_seconds, what,
           *what ? " from " : "", who);
  asparse_error_adopt(text, __FILE__, __LINE__);
  asparse_comm_abort(comm, ASPARSE_ERR_MPI);
}

/* The rank of a request that is not done; -1: not known. */
static int waited_for(int64_t n, MPI_Request *requests, const int *peers) {
  for (int64_t i = 0; peers && i < n; i++) {
    int done = 0;
    MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
    if (!done) return peers[i];
  }
  return -1;
}

asparse_status asparse_comm_wait(asparse_comm *comm, int64_t n, MPI_Request *requests, const int *peers) {
  asparse_status status = ASPARSE_OK;
  const double since = asparse_seconds();
  for (int done = n == 0; !done;) {
    TRY_MPI(MPI_Testall((int)n, requests, &done, MPI_STATUSES_IGNORE));
    if (done || comm->timeout_seconds <= 0 || asparse_seconds() - since < comm->timeout_seconds) continue;
    asparse_comm_check_time(comm, since, waited_for(n, requests, peers), "");
  }
cleanup:
  return status;
}

/* The collective call that made request. */
static asparse_status finish(asparse_comm *comm, MPI_Request *request) {
  return asparse_comm_wait(comm, 1, request, NULL);
}

/* Tells every rank the message of rank `from`. */
static asparse_status adopt_message(asparse_comm *comm, int from) {
  asparse_status status = ASPARSE_OK;
  MPI_Request request = MPI_REQUEST_NULL;
  struct {
    char text[1024], source[128];
  } error = {0};
  char prefixed[sizeof error.text + 32];
  if (comm->rank == from) {
    snprintf(error.text, sizeof error.text, "%s", asparse_error_message());
    snprintf(error.source, sizeof error.source, "%s", asparse_error_source());
  }
  TRY_MPI(MPI_Ibcast(&error, sizeof error, MPI_CHAR, from, comm->mpi, &request));
  TRY(finish(comm, &request));
  const bool named = comm->size == 1 || strncmp(error.text, "rank ", 5) == 0;
  if (named) snprintf(prefixed, sizeof prefixed, "%s", error.text);
  else snprintf(prefixed, sizeof prefixed, "rank %d: %s", from, error.text);
  asparse_error_adopt(prefixed, error.source, 0);
cleanup:
  return status;
}

asparse_status asparse_comm_agree(asparse_comm *comm, asparse_status own) {
  asparse_status status = ASPARSE_OK;
  MPI_Request request = MPI_REQUEST_NULL;
  struct {
    int severity, rank;
  } mine = {(int)own, comm->rank}, worst = mine;
  /* MAXLOC takes the lowest rank among equals. */
  TRY_MPI(MPI_Iallreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, comm->mpi, &request));
  TRY(finish(comm, &request));
  if (worst.severity != ASPARSE_OK) TRY(adopt_message(comm, worst.rank));
  status = (asparse_status)worst.severity;
cleanup:
  return status;
}

int64_t asparse_comm_pieces(const asparse_comm *comm, int64_t bytes) {
  return bytes / comm->message_bytes + (bytes % comm->message_bytes != 0);
}

asparse_status asparse_comm_isend(asparse_comm *comm, const void *data, int64_t bytes, int to, int tag,
                                  MPI_Request *requests, int64_t *n_requests) {
  asparse_status status = ASPARSE_OK;
  for (int64_t done = 0; done < bytes; done += comm->message_bytes) {
    int64_t piece = bytes - done < comm->message_bytes ? bytes - done : comm->message_bytes;
    requests[*n_requests] = MPI_REQUEST_NULL;
    TRY_MPI(MPI_Isend((const char *)data + done, (int)piece, MPI_BYTE, to, tag, comm->mpi, &requests[*n_requests]));
    ++*n_requests;
  }
cleanup:
  return status;
}

asparse_status asparse_comm_irecv(asparse_comm *comm, void *data, int64_t bytes, int from, int tag,
                                  MPI_Request *requests, int64_t *n_requests) {
  asparse_status status = ASPARSE_OK;
  for (int64_t done = 0; done < bytes; done += comm->message_bytes) {
    int64_t piece = bytes - done < comm->message_bytes ? bytes - done : comm->message_bytes;
    requests[*n_requests] = MPI_REQUEST_NULL;
    TRY_MPI(MPI_Irecv((char *)data + done, (int)piece, MPI_BYTE, from, tag, comm->mpi, &requests[*n_requests]));
    ++*n_requests;
  }
cleanup:
  return status;
}

/* Everything of an alltoallv on its way; peers[i]: the rank of requests[i]. */
static asparse_status post_alltoallv(asparse_comm *comm, const void *send, const int64_t *send_bytes,
                                     const int64_t *send_displs, void *receive, const int64_t *receive_bytes,
                                     const int64_t *receive_displs, MPI_Request *requests, int *peers, int64_t *n) {
  enum { TAG = 11 };
  int64_t named = 0;
  for (int step = 1; step < comm->size; step++) {
    const int from = (comm->rank - step + comm->size) % comm->size;
    PASS(asparse_comm_irecv(comm, (char *)receive + receive_displs[from], receive_bytes[from], from, TAG, requests, n));
    while (named < *n) peers[named++] = from;
  }
  for (int step = 1; step < comm->size; step++) {
    const int to = (comm->rank + step) % comm->size;
    PASS(asparse_comm_isend(comm, (const char *)send + send_displs[to], send_bytes[to], to, TAG, requests, n));
    while (named < *n) peers[named++] = to;
  }
  const int own = comm->rank;
  if (send_bytes[own] > 0)
    memcpy((char *)receive + receive_displs[own], (const char *)send + send_displs[own], (size_t)send_bytes[own]);
  return ASPARSE_OK;
}

asparse_status asparse_comm_alltoallv(asparse_comm *comm, const void *send, const int64_t *send_bytes,
                                      const int64_t *send_displs, void *receive, const int64_t *receive_bytes,
                                      const int64_t *receive_displs) {
  asparse_status status = ASPARSE_OK;
  MPI_Request *requests = NULL;
  int *peers = NULL;
  int64_t n_requests = 0, room = 0;
  for (int r = 0; r < comm->size; r++)
    room += asparse_comm_pieces(comm, send_bytes[r]) + asparse_comm_pieces(comm, receive_bytes[r]);
  requests = asparse_malloc(room, sizeof *requests, "requests");
  if (requests) peers = asparse_malloc(room, sizeof *peers, "peers of requests");
  TRY(asparse_comm_agree(comm, peers && room <= INT_MAX ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(post_alltoallv(comm, send, send_bytes, send_displs, receive, receive_bytes, receive_displs, requests, peers,
                     &n_requests));
  TRY(asparse_comm_wait(comm, n_requests, requests, peers));
cleanup:
  asparse_free(requests);
  asparse_free(peers);
  return status;
}

asparse_status asparse_comm_alltoall_int64(asparse_comm *comm, const int64_t *send, int64_t *receive) {
  asparse_status status = ASPARSE_OK;
  MPI_Request request = MPI_REQUEST_NULL;
  TRY_MPI(MPI_Ialltoall(send, 1, MPI_INT64_T, receive, 1, MPI_INT64_T, comm->mpi, &request));
  TRY(finish(comm, &request));
cleanup:
  return status;
}

asparse_status asparse_comm_barrier(asparse_comm *comm) {
  asparse_status status = ASPARSE_OK;
  MPI_Request request = MPI_REQUEST_NULL;
  TRY_MPI(MPI_Ibarrier(comm->mpi, &request));
  TRY(finish(comm, &request));
cleanup:
  return status;
}

static asparse_status reduce(asparse_comm *comm, int64_t *values, int count, MPI_Op op) {
  asparse_status status = ASPARSE_OK;
  MPI_Request request = MPI_REQUEST_NULL;
  TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_INT64_T, op, comm->mpi, &request));
  TRY(finish(comm, &request));
cleanup:
  return status;
}

asparse_status asparse_comm_sum(asparse_comm *comm, int64_t *values, int count) {
  return reduce(comm, values, count, MPI_SUM);
}
asparse_status asparse_comm_max(asparse_comm *comm, int64_t *values, int count) {
  return reduce(comm, values, count, MPI_MAX);
}
asparse_status asparse_comm_min(asparse_comm *comm, int64_t *values, int count) {
  return reduce(comm, values, count, MPI_MIN);
}

int asparse_owner(const int64_t *starts, int parts, int64_t item) {
  int low = 0, high = parts; /* starts[low] ≤ item < starts[high] */
  while (high - low > 1) {
    int middle = low + (high - low) / 2;
    if (starts[middle] <= item) low = middle;
    else high = middle;
  }
  return low;
}
