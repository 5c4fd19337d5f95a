/* The calls of NCCL that asparse uses, over MPI and the queues of late_engine.h: what a non-blocking communicator
 * allows is checked. Compiled into a test, they take the place of the library. */
#ifndef ASPARSE_TEST_FAKE_NCCL_H
#define ASPARSE_TEST_FAKE_NCCL_H

#include <limits.h>
#include <nccl.h>

#include "late_engine.h"

enum { FAKE_NCCL_CALLS = 1024, FAKE_NCCL_POLLS = 3, FAKE_NCCL_TAG = 77 };

typedef struct fake_call {
  bool sends;
  void *data;
  int count, peer;
} fake_call;

typedef struct fake_group {
  fake_call calls[FAKE_NCCL_CALLS];
  MPI_Request requests[FAKE_NCCL_CALLS];
  int n;
  bool posted;
} fake_group;

/* ncclComm is opaque; this is the fake's only one. */
static struct {
  MPI_Comm mpi; /* set by the test: the ranks of the communicator made next */
  fake_group *group;
  int open;            /* groups begun and not ended */
  int polls;           /* left until the last call has been taken */
  int groups, largest; /* so far; most bytes of a message */
  ncclResult_t error;  /* what ncclCommGetAsyncError finds, set by the test */
} fake_nccl;

static bool fake_run_group(late_work *work) {
  fake_group *group = work->data;
  int done = 0;
  for (int i = 0; !group->posted && i < group->n; i++) {
    const fake_call *c = &group->calls[i];
    if (c->sends) MPI_Isend(c->data, c->count, MPI_BYTE, c->peer, FAKE_NCCL_TAG, fake_nccl.mpi, &group->requests[i]);
    else MPI_Irecv(c->data, c->count, MPI_BYTE, c->peer, FAKE_NCCL_TAG, fake_nccl.mpi, &group->requests[i]);
  }
  group->posted = true;
  MPI_Testall(group->n, group->requests, &done, MPI_STATUSES_IGNORE);
  if (done) free(group);
  return done;
}

static ncclResult_t fake_add(bool sends, void *data, size_t count, int peer) {
  fake_group *group = fake_nccl.group;
  assert_int_equal(fake_nccl.open, 1);
  assert_true(group->n < FAKE_NCCL_CALLS && count > 0 && count <= INT_MAX);
  group->calls[group->n++] = (fake_call){.sends = sends, .data = data, .count = (int)count, .peer = peer};
  if ((int)count > fake_nccl.largest) fake_nccl.largest = (int)count;
  return ncclSuccess;
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  assert_true(type == ncclInt8 && comm && !stream);
  return fake_add(true, (void *)(uintptr_t)data, count, peer);
}

ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  assert_true(type == ncclInt8 && comm && !stream);
  return fake_add(false, data, count, peer);
}

ncclResult_t ncclGroupStart(void) {
  assert_int_equal(fake_nccl.polls, 0); /* the last call has been waited for */
  fake_nccl.group = calloc(1, sizeof *fake_nccl.group);
  fake_nccl.open++;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  fake_nccl.open--;
  fake_nccl.groups++;
  fake_nccl.polls = FAKE_NCCL_POLLS;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  assert_non_null(comm);
  if (fake_nccl.polls > 0 && --fake_nccl.polls == 0 && fake_nccl.group) {
    late_enqueue(ASPARSE_QUEUE_EXCHANGE, (late_work){.run = fake_run_group, .data = fake_nccl.group});
    fake_nccl.group = NULL;
  }
  *error = fake_nccl.error != ncclSuccess ? fake_nccl.error : fake_nccl.polls > 0 ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  memset(id, 7, sizeof *id);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank, ncclConfig_t *config) {
  int size = 0, own = 0;
  MPI_Comm_size(fake_nccl.mpi, &size);
  MPI_Comm_rank(fake_nccl.mpi, &own);
  assert_true(n == size && rank == own && id.internal[0] == 7 && config->blocking == 0);
  fake_nccl.polls = FAKE_NCCL_POLLS;
  *comm = (ncclComm_t)&fake_nccl;
  return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  assert_non_null(comm);
  fake_nccl.polls = FAKE_NCCL_POLLS;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return comm ? ncclSuccess : ncclInvalidArgument; }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return comm ? ncclSuccess : ncclInvalidArgument; }
const char *ncclGetErrorString(ncclResult_t result) { return result == ncclSuccess ? "fine" : "remote process exited"; }
const char *ncclGetLastError(ncclComm_t comm) { return comm ? "peer is gone" : ""; }

#endif
