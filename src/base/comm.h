/* The communicator: ranks, agreement on errors, waits with a time limit, and exchanges with 64-bit sizes.
 *
 * Throughout the library a collective function returns the same status on every rank: local work
 * comes first, then asparse_comm_agree, then the communication. A caller agrees on its own local
 * failures before it calls the next collective function.
 *
 * Inside an exchange no agreement is possible, since a peer may never answer: what fails there, and every wait that
 * takes longer than timeout_seconds, ends the whole job through asparse_comm_abort. */
#ifndef ASPARSE_COMM_H
#define ASPARSE_COMM_H

#include <mpi.h>

#include "base/memory.h"

typedef struct asparse_comm {
  MPI_Comm mpi; /* a duplicate, errors returned */
  int rank, size;
  int node_rank, node_size;  /* among the ranks of this host */
  double cores;              /* for each rank of this host, when all work: below 1 where ranks share cores */
  int64_t message_bytes;     /* largest single message; lowered by tests */
  double timeout_seconds;    /* of a wait for other ranks; 0: waits for ever */
  const char *phase;         /* what this rank is doing, for messages */
  asparse_comm_kind kind;    /* what rows of B travel by between GPUs; AUTO: not decided, MPI */
  struct asparse_nccl *nccl; /* NULL until there is one; see base/nccl_comm.h */
} asparse_comm;

/* Collective. Duplicates mpi; MPI must be initialised and stay so until destroy. */
ASPARSE_API asparse_status asparse_comm_create(asparse_comm **comm, MPI_Comm mpi);
ASPARSE_API void asparse_comm_destroy(asparse_comm **comm);

/* Collective. A communicator of the ranks with the same color ≥ 0, ordered by key and then by rank; *sub is NULL where
 * color is negative. It takes over limits, phase and kind; the caller destroys it. */
asparse_status asparse_comm_split(asparse_comm *comm, int color, int key, asparse_comm **sub);

/* Local, pure. The part of a core that each of this rank's threads has: 1, or less with more threads than cores. */
double asparse_comm_core_share(const asparse_comm *comm, int threads);

/* Local. Names what this rank does from now on, in messages of failures; phase must outlive comm. */
ASPARSE_API void asparse_comm_phase(asparse_comm *comm, const char *phase);

/* Local. Wait for other ranks at most so long; 0: for ever, as after create. */
ASPARSE_API void asparse_comm_timeout(asparse_comm *comm, double seconds);

/* Local. Ends the whole job with the exit code of status, after one line on standard error: rank, host, phase, and the
 * error message of this rank. For what no agreement can reach: failures between the beginning and the end of an
 * exchange, and a program's last resort. Does not return. */
ASPARSE_API void asparse_comm_abort(asparse_comm *comm, asparse_status status) __attribute__((noreturn));

/* Collective: every rank returns the most severe status of all; ranks that were fine adopt the
 * message of the lowest rank with it, prefixed "rank r: " where there is more than one rank.
 * The end of every phase; nothing collective may follow a local failure before it. */
ASPARSE_API asparse_status asparse_comm_agree(asparse_comm *comm, asparse_status status);

/* Local. Waits for requests[n], which then are MPI_REQUEST_NULL. peers[i]: the rank that requests[i] waits for, to be
 * named when it does not answer; NULL: all ranks. Ends the job after timeout_seconds. */
asparse_status asparse_comm_wait(asparse_comm *comm, int64_t n, MPI_Request *requests, const int *peers);

/* Local. A wait that polls by itself: since = asparse_seconds() at its start. Ends the job when it has taken
 * timeout_seconds. peer: the rank waited for, -1: others; what: "rows of B". */
void asparse_comm_check_time(asparse_comm *comm, double since, int peer, const char *what);

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
asparse_status asparse_comm_barrier(asparse_comm *comm); /* collective */

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
