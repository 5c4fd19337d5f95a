/* NCCL beside MPI: the GPUs of a communicator's ranks, one each. Compiled where ASPARSE_HAVE_NCCL. */
#ifndef ASPARSE_NCCL_COMM_H
#define ASPARSE_NCCL_COMM_H

#include "asparse_config.h"
#include "base/comm.h"

#if ASPARSE_HAVE_NCCL
#include <nccl.h>

typedef struct asparse_nccl {
  ncclComm_t comm; /* non-blocking; same ranks as the MPI communicator */
} asparse_nccl;

/* Collective. Do two ranks share a GPU, which NCCL does not allow? gpu tells this rank's from the others of its host (a
 * PCI bus id). reason [ASPARSE_NCCL_REASON] says which ranks and GPU; "" when there are none. The same on every rank.
 */
enum { ASPARSE_NCCL_REASON = 256 };
asparse_status asparse_nccl_shared_gpu(asparse_comm *comm, const char *gpu, char *reason);

/* Collective. Connects the ranks' GPUs, each current in its process, as comm->nccl. A rank that fails once the others
 * may wait for it inside NCCL ends the job. */
asparse_status asparse_nccl_create(asparse_comm *comm);
void asparse_nccl_destroy(asparse_nccl **nccl); /* collective */

/* Local. Frees what NCCL holds, whatever is under way; NULL is fine. */
void asparse_nccl_abort(asparse_nccl *nccl);

/* Local. Waits until NCCL has enqueued what was asked for: calls on a non-blocking communicator return before. Ends the
 * job after comm->timeout_seconds. */
asparse_status asparse_nccl_settle(asparse_comm *comm);

/* Local. ERR_DEVICE when NCCL has found that something went wrong, here or on a peer. */
asparse_status asparse_nccl_check(asparse_comm *comm);

/* ERR_DEVICE with NCCL's own text. */
asparse_status asparse_nccl_fail(ncclResult_t result, const asparse_nccl *nccl, const char *call, const char *source,
                                 int line);

#define PASS_NCCL(nccl, call)                                                                                          \
  do {                                                                                                                 \
    ncclResult_t result_ = (call);                                                                                     \
    if (result_ != ncclSuccess && result_ != ncclInProgress)                                                           \
      return asparse_nccl_fail(result_, (nccl), #call, __FILE__, __LINE__);                                            \
  } while (0)

#endif
#endif
