#include "base/nccl_comm.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* How long a communicator that ends may take before it is torn down. */
static const double FINALIZE_SECONDS = 10;

asparse_status asparse_nccl_fail(ncclResult_t result, const asparse_nccl *nccl, const char *call, const char *source,
                                 int line) {
  return asparse_fail(ASPARSE_ERR_DEVICE, source, line, "NCCL: %s (%.300s) in %.80s; --comm mpi does without NCCL",
                      ncclGetErrorString(result), ncclGetLastError(nccl ? nccl->comm : NULL), call);
}

typedef struct gpu_name {
  char host[64], gpu[32];
} gpu_name;

/* Which two ranks share a GPU, lowest first; -1: none. Collective. */
static asparse_status find_shared_gpu(asparse_comm *comm, const char *gpu, gpu_name *all, int64_t *pair) {
  asparse_status status = ASPARSE_OK;
  gpu_name own = {0};
  gethostname(own.host, sizeof own.host - 1);
  snprintf(own.gpu, sizeof own.gpu, "%s", gpu);
  TRY_MPI(MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, comm->mpi));
  *pair = INT64_MAX;
  for (int r = 0; r < comm->rank && *pair == INT64_MAX; r++)
    if (memcmp(&all[r], &own, sizeof own) == 0) *pair = (int64_t)r * comm->size + comm->rank;
  TRY(asparse_comm_min(comm, pair, 1));
  if (*pair == INT64_MAX) *pair = -1;
cleanup:
  return status;
}

asparse_status asparse_nccl_shared_gpu(asparse_comm *comm, const char *gpu, char *reason) {
  asparse_status status = ASPARSE_OK;
  int64_t pair = -1;
  gpu_name *all = asparse_malloc(comm->size, sizeof *all, "names of GPUs");
  reason[0] = '\0';
  TRY(asparse_comm_agree(comm, all ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(find_shared_gpu(comm, gpu, all, &pair));
  if (pair < 0) goto cleanup;
  const int first = (int)(pair / comm->size), second = (int)(pair % comm->size);
  snprintf(reason, ASPARSE_NCCL_REASON, "ranks %d and %d share GPU %s of host %s", first, second, all[first].gpu,
           all[first].host);
cleanup:
  asparse_free(all);
  return status;
}

static asparse_status connect(asparse_comm *comm, asparse_nccl *nccl, ncclUniqueId id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  PASS_NCCL(nccl, ncclCommInitRankConfig(&nccl->comm, comm->size, id, comm->rank, &config));
  comm->nccl = nccl;
  return asparse_nccl_settle(comm);
}

asparse_status asparse_nccl_create(asparse_comm *comm) {
  ncclUniqueId id = {0};
  asparse_nccl *nccl = asparse_calloc(1, sizeof *nccl, "NCCL communicator");
  asparse_status status = nccl ? ASPARSE_OK : ASPARSE_ERR_MEMORY;
  if (nccl && comm->rank == 0) {
    ncclResult_t result = ncclGetUniqueId(&id);
    if (result != ncclSuccess) status = asparse_nccl_fail(result, NULL, "ncclGetUniqueId", __FILE__, __LINE__);
  }
  TRY(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, comm->mpi));
  /* Peers wait for this rank inside NCCL: there is nothing to agree on. */
  status = connect(comm, nccl, id);
  if (status != ASPARSE_OK) asparse_comm_abort(comm, status);
  nccl = NULL;
cleanup:
  asparse_free(nccl);
  return status;
}

asparse_status asparse_nccl_check(asparse_comm *comm) {
  ncclResult_t state = ncclSuccess;
  PASS_NCCL(comm->nccl, ncclCommGetAsyncError(comm->nccl->comm, &state));
  PASS_NCCL(comm->nccl, state);
  return ASPARSE_OK;
}

asparse_status asparse_nccl_settle(asparse_comm *comm) {
  const double since = asparse_seconds();
  for (;;) {
    ncclResult_t state = ncclSuccess;
    PASS_NCCL(comm->nccl, ncclCommGetAsyncError(comm->nccl->comm, &state));
    if (state == ncclSuccess) return ASPARSE_OK;
    PASS_NCCL(comm->nccl, state);
    asparse_comm_check_time(comm, since, -1, "NCCL connections");
  }
}

void asparse_nccl_destroy(asparse_nccl **nccl) {
  if (!nccl || !*nccl) return;
  const double since = asparse_seconds();
  ncclResult_t state = ncclCommFinalize((*nccl)->comm);
  while (state == ncclInProgress && asparse_seconds() - since < FINALIZE_SECONDS)
    if (ncclCommGetAsyncError((*nccl)->comm, &state) != ncclSuccess) break;
  if (state == ncclSuccess) ncclCommDestroy((*nccl)->comm);
  else ncclCommAbort((*nccl)->comm);
  FREE(*nccl);
}

void asparse_nccl_abort(asparse_nccl *nccl) {
  if (nccl) ncclCommAbort(nccl->comm);
}
