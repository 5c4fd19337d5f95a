/* The communicator: ranks, agreement on errors, and exchanges with 64-bit sizes.
 *
 * Throughout the library a collective function returns the same status on every rank: local work
 * comes first, then asparse_comm_agree, then the communication. A caller agrees on its own local
 * failures before it calls the next collective function. */
#ifndef ASPARSE_COMM_H
#define ASPARSE_COMM_H

#include <mpi.h>

#include "base/memory.h"

typedef struct asparse_comm {
  MPI_Comm mpi; /* a duplicate, errors returned */
  int rank, size;
  int node_rank, node_size; /* among the ranks of this host */
  int64_t message_bytes;    /* largest single MPI message; lowered by tests */
} asparse_comm;

/* Collective. Duplicates mpi; MPI must be initialised and stay so until destroy. */
ASPARSE_API asparse_status asparse_comm_create(asparse_comm **comm, MPI_Comm mpi);
ASPARSE_API void asparse_comm_destroy(asparse_comm **comm);

/* Collective: every rank returns the most severe status of all; ranks that were fine adopt the
 * message of the lowest rank with it, prefixed "rank r: " where there is more than one rank.
 * The end of every phase; nothing collective may follow a local failure before it. */
ASPARSE_API asparse_status asparse_comm_agree(asparse_comm *comm, asparse_status status);

/* Bytes per destination and source; displacements in bytes; all [size]. Collective; blocking.
 * Messages are cut at message_bytes, so sizes over 2^31 are fine; zero-size pairs send nothing. */
asparse_status asparse_comm_alltoallv(asparse_comm *comm, const void *send, const int64_t *send_bytes,
                                      const int64_t *send_displs, void *receive, const int64_t *receive_bytes,
                                      const int64_t *receive_displs);

/* One int64 per pair: receive[r] = what rank r had in send[own rank]. Collective. */
asparse_status asparse_comm_alltoall_int64(asparse_comm *comm, const int64_t *send, int64_t *receive);

asparse_status asparse_comm_sum(asparse_comm *comm, int64_t *values, int count); /* in place, collective */
asparse_status asparse_comm_max(asparse_comm *comm, int64_t *values, int count);
asparse_status asparse_comm_min(asparse_comm *comm, int64_t *values, int count);

/* Posts the pieces of one message of `bytes` bytes: at most message_bytes each, requests appended
 * to requests[*n_requests]. Room: asparse_comm_pieces(comm, bytes). Local. */
int64_t asparse_comm_pieces(const asparse_comm *comm, int64_t bytes);
asparse_status asparse_comm_isend(asparse_comm *comm, const void *data, int64_t bytes, int to, int tag,
                                  MPI_Request *requests, int64_t *n_requests);
asparse_status asparse_comm_irecv(asparse_comm *comm, void *data, int64_t bytes, int from, int tag,
                                  MPI_Request *requests, int64_t *n_requests);

/* Start of part `part` when `count` items are cut into `parts` near-equal contiguous parts. */
static inline int64_t asparse_even_start(int64_t count, int parts, int part) {
  int64_t base = count / parts, extra = count % parts;
  return base * part + (part < extra ? part : extra);
}

/* The part whose range starts[part] … starts[part+1]-1 holds item; starts is [parts + 1], monotone. */
int asparse_owner(const int64_t *starts, int parts, int64_t item);

/* The error of a failed MPI call, with MPI's own text. */
asparse_status asparse_mpi_fail(int code, const char *call, const char *source, int line);

#define TRY_MPI(call)                                                                                                  \
  do {                                                                                                                 \
    int mpi_code_ = (call);                                                                                            \
    if (mpi_code_ != MPI_SUCCESS) {                                                                                    \
      status = asparse_mpi_fail(mpi_code_, #call, __FILE__, __LINE__);                                                 \
      goto cleanup;                                                                                                    \
    }                                                                                                                  \
  } while (0)

#endif
