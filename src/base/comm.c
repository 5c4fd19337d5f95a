#include "base/comm.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

asparse_status asparse_mpi_fail(int code, const char *call, const char *source, int line) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return asparse_fail(ASPARSE_ERR_MPI, source, line, "MPI failed: %s (%.80s)", text, call);
}

asparse_status asparse_comm_create(asparse_comm **out, MPI_Comm mpi) {
  asparse_status status = ASPARSE_OK;
  MPI_Comm node = MPI_COMM_NULL;
  asparse_comm *comm = asparse_calloc(1, sizeof *comm, "communicator");
  int failed = comm == NULL;
  if (comm) *comm = (asparse_comm){.mpi = MPI_COMM_NULL, .message_bytes = 1 << 30};
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
  *out = comm;
  comm = NULL;
cleanup:
  if (node != MPI_COMM_NULL) MPI_Comm_free(&node);
  asparse_comm_destroy(&comm);
  return status;
}

void asparse_comm_destroy(asparse_comm **comm) {
  if (!comm || !*comm) return;
  if ((*comm)->mpi != MPI_COMM_NULL) MPI_Comm_free(&(*comm)->mpi);
  FREE(*comm);
}

asparse_status asparse_comm_agree(asparse_comm *comm, asparse_status status) {
  struct {
    int severity, rank;
  } mine = {(int)status, comm->rank}, worst = mine;
  /* MAXLOC takes the lowest rank among equals. */
  if (MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, comm->mpi) != MPI_SUCCESS) return ASPARSE_ERR_MPI;
  if (worst.severity == ASPARSE_OK) return ASPARSE_OK;

  char text[1024] = "", source[128] = "", prefixed[1024 + 32];
  if (comm->rank == worst.rank) {
    snprintf(text, sizeof text, "%s", asparse_error_message());
    snprintf(source, sizeof source, "%s", asparse_error_source());
  }
  MPI_Bcast(text, sizeof text, MPI_CHAR, worst.rank, comm->mpi);
  MPI_Bcast(source, sizeof source, MPI_CHAR, worst.rank, comm->mpi);
  if (comm->size > 1 && strncmp(text, "rank ", 5) != 0) {
    snprintf(prefixed, sizeof prefixed, "rank %d: %s", worst.rank, text);
    asparse_error_adopt(prefixed, source, 0);
  } else {
    asparse_error_adopt(text, source, 0);
  }
  return (asparse_status)worst.severity;
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

asparse_status asparse_comm_alltoallv(asparse_comm *comm, const void *send, const int64_t *send_bytes,
                                      const int64_t *send_displs, void *receive, const int64_t *receive_bytes,
                                      const int64_t *receive_displs) {
  asparse_status status = ASPARSE_OK;
  MPI_Request *requests = NULL;
  int64_t n_requests = 0, room = 0;
  enum { TAG = 11 };
  for (int r = 0; r < comm->size; r++)
    room += asparse_comm_pieces(comm, send_bytes[r]) + asparse_comm_pieces(comm, receive_bytes[r]);
  requests = asparse_malloc(room, sizeof *requests, "requests");
  TRY(asparse_comm_agree(comm, requests && room <= INT_MAX ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  for (int step = 0; step < comm->size; step++) {
    int from = (comm->rank - step + comm->size) % comm->size;
    if (from == comm->rank) continue;
    TRY(asparse_comm_irecv(comm, (char *)receive + receive_displs[from], receive_bytes[from], from, TAG, requests,
                           &n_requests));
  }
  for (int step = 0; step < comm->size; step++) {
    int to = (comm->rank + step) % comm->size;
    if (to == comm->rank) {
      if (send_bytes[to] > 0)
        memcpy((char *)receive + receive_displs[to], (const char *)send + send_displs[to], (size_t)send_bytes[to]);
      continue;
    }
    TRY(asparse_comm_isend(comm, (const char *)send + send_displs[to], send_bytes[to], to, TAG, requests, &n_requests));
  }
  TRY_MPI(MPI_Waitall((int)n_requests, requests, MPI_STATUSES_IGNORE));
cleanup:
  asparse_free(requests);
  return status;
}

asparse_status asparse_comm_alltoall_int64(asparse_comm *comm, const int64_t *send, int64_t *receive) {
  asparse_status status = ASPARSE_OK;
  TRY_MPI(MPI_Alltoall(send, 1, MPI_INT64_T, receive, 1, MPI_INT64_T, comm->mpi));
cleanup:
  return status;
}

static asparse_status reduce(asparse_comm *comm, int64_t *values, int count, MPI_Op op) {
  asparse_status status = ASPARSE_OK;
  TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_INT64_T, op, comm->mpi));
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
