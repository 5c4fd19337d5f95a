#include "plan/transport.h"

#include <stdio.h>

#include "base/nccl_comm.h"

#if ASPARSE_HAVE_NCCL
/* Connects the GPUs, or says why NCCL cannot. Collective. */
static asparse_status try_nccl(asparse_comm *comm, asparse_engine *engine, char *reason) {
  PASS(asparse_nccl_shared_gpu(comm, engine->backend->device_id(engine), reason));
  if (reason[0] == '\0' && !comm->nccl) PASS(asparse_nccl_create(comm));
  return ASPARSE_OK;
}
#else
enum { ASPARSE_NCCL_REASON = 256 };
static asparse_status try_nccl(asparse_comm *comm, asparse_engine *engine, char *reason) {
  (void)comm, (void)engine;
  snprintf(reason, ASPARSE_NCCL_REASON, "this build has no NCCL");
  return ASPARSE_OK;
}
#endif

asparse_status asparse_transport_open(asparse_comm *comm, asparse_engine *engine, asparse_comm_kind wanted) {
  char reason[ASPARSE_NCCL_REASON] = "";
  const bool on_host = engine->backend->space == ASPARSE_SPACE_HOST;
  comm->kind = ASPARSE_COMM_MPI;
  if (on_host && wanted == ASPARSE_COMM_NCCL)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "NCCL goes between GPUs, and this computes on the host; use --comm mpi");
  if (on_host || wanted == ASPARSE_COMM_MPI || comm->size == 1) return ASPARSE_OK;
  PASS(try_nccl(comm, engine, reason));
  if (reason[0] == '\0') {
    comm->kind = ASPARSE_COMM_NCCL;
    return ASPARSE_OK;
  }
  if (wanted == ASPARSE_COMM_NCCL)
    return ASPARSE_FAIL(ASPARSE_ERR_DEVICE, "NCCL cannot be used: %s; use --comm mpi", reason);
  if (comm->rank == 0)
    fprintf(stderr, "asparse: note: %s: rows of B travel by MPI through pinned memory of the host\n", reason);
  return ASPARSE_OK;
}

asparse_status asparse_transport_find(asparse_comm *comm, const asparse_engine *engine,
                                      const asparse_transport **transport) {
  *transport = &asparse_mpi_transport;
#if ASPARSE_HAVE_NCCL
  if (engine->backend->space == ASPARSE_SPACE_HOST || comm->kind != ASPARSE_COMM_NCCL || comm->size == 1)
    return ASPARSE_OK;
  if (!comm->nccl) PASS(asparse_nccl_create(comm));
  *transport = &asparse_nccl_transport;
#else
  (void)comm, (void)engine;
#endif
  return ASPARSE_OK;
}
