/* What asparse's exchange of B's rows reaches of plain sends and receives of the same bytes, side by side in one run.
 *
 *   mpirun -np p exchange_probe [--backend auto|host|cuda] [--comm auto|nccl|mpi] [--cols N] [--repeat R] [--mib M,…]
 *
 * Every rank takes rows of B (fp32) from the next one and gives as many to the one before. Plain: one contiguous
 * ncclSend and ncclRecv in a group between GPUs, or MPI_Isend and MPI_Irecv between hosts. Exchange: every second row
 * of the other's slice, by asparse_halo, packing included. They take turns; medians of the slowest rank's times. Prints
 * one line a size, rank 0. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asparse_config.h"
#include "base/clock.h"
#include "base/nccl_comm.h"
#include "plan/engines.h"
#include "plan/halo.h"

enum { MOST_SIZES = 16, WARMUPS = 3, MOST_REPEATS = 1001, TAG = 7 };
static const double MIB = 1048576;

typedef struct probe_options {
  asparse_options plan; /* backend and comm */
  int64_t cols, repeat;
  double mib[MOST_SIZES];
  int n_sizes;
} probe_options;

typedef struct probe {
  asparse_comm *comm;
  asparse_engine *engine;
  asparse_halo *halo;
  void *b, *to;  /* [2 · rows × cols] and [rows × cols] fp32 in the engine's space */
  int64_t bytes; /* that a rank receives */
  int64_t cols;
} probe;

static const char usage[] =
    "usage: exchange_probe [--backend auto|host|cuda] [--comm auto|nccl|mpi] [--cols N] [--repeat R] [--mib M,...]";

/* Index of text among names; -1: none of them. */
static int find(const char *text, const char *const *names, int count) {
  for (int i = 0; i < count; i++)
    if (strcmp(text, names[i]) == 0) return i;
  return -1;
}

static asparse_status parse(int argc, char **argv, probe_options *o) {
  static const char *const backends[] = {"auto", "host", "cuda"}, *const comms[] = {"auto", "nccl", "mpi"};
  static const asparse_backend_kind backend_kinds[] = {ASPARSE_BACKEND_AUTO, ASPARSE_BACKEND_HOST,
                                                       ASPARSE_BACKEND_CUDA};
  static const asparse_comm_kind comm_kinds[] = {ASPARSE_COMM_AUTO, ASPARSE_COMM_NCCL, ASPARSE_COMM_MPI};
  static const struct option longs[] = {
      {"backend", required_argument, NULL, 'b'}, {"comm", required_argument, NULL, 'c'},
      {"cols", required_argument, NULL, 'n'},    {"repeat", required_argument, NULL, 'r'},
      {"mib", required_argument, NULL, 'm'},     {0}};
  *o = (probe_options){.plan = asparse_options_default(), .cols = 256, .repeat = 51, .mib = {1, 8, 64}, .n_sizes = 3};
  for (int c, kind = 0; (c = getopt_long(argc, argv, "b:c:n:r:m:", longs, NULL)) != -1;) {
    if (c == 'b' && (kind = find(optarg, backends, 3)) >= 0) o->plan.backend = backend_kinds[kind];
    if (c == 'c' && (kind = find(optarg, comms, 3)) >= 0) o->plan.comm = comm_kinds[kind];
    if (c == 'n') o->cols = strtoll(optarg, NULL, 10);
    if (c == 'r') o->repeat = strtoll(optarg, NULL, 10);
    if (c == 'm') o->n_sizes = 0;
    for (char *next = optarg; c == 'm' && *next && o->n_sizes < MOST_SIZES; next += *next == ',')
      o->mib[o->n_sizes++] = strtod(next, &next);
    if (c == '?' || kind < 0) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s", usage);
  }
  if (optind != argc || o->cols < 1 || o->repeat < 1 || o->repeat > MOST_REPEATS || !(o->mib[0] > 0))
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s", usage);
  return ASPARSE_OK;
}

/* Buffers and the halo of every second row of the next rank. Collective. */
static asparse_status create(probe *p, double mib) {
  asparse_status status = ASPARSE_OK;
  const int size = p->comm->size, next = (p->comm->rank + 1) % size;
  const int64_t rows = (int64_t)(mib * MIB / (double)(4 * p->cols)) + 1;
  int64_t *col_starts = NULL, *wanted = NULL;
  const asparse_backend *backend = p->engine->backend;
  const size_t row = (size_t)p->cols * sizeof(float);
  p->bytes = rows * (int64_t)row;
  col_starts = asparse_malloc(size + (int64_t)1, sizeof *col_starts, "slices");
  wanted = asparse_malloc(rows, sizeof *wanted, "rows");
  status = col_starts && wanted ? ASPARSE_OK : ASPARSE_ERR_MEMORY;
  if (status == ASPARSE_OK) status = backend->allocate(p->engine, 2 * rows, row, "B", &p->b);
  if (status == ASPARSE_OK) status = backend->allocate(p->engine, rows, row, "rows of B", &p->to);
  TRY(asparse_comm_agree(p->comm, status));
  for (int r = 0; r <= size; r++) col_starts[r] = 2 * rows * r;
  for (int64_t i = 0; i < rows; i++) wanted[i] = col_starts[next] + 2 * i;
  TRY(asparse_halo_create(p->comm, p->engine, col_starts, wanted, rows, (asparse_halo_shape){p->cols, 1, ASPARSE_FP32},
                          &p->halo));
cleanup:
  asparse_free(col_starts);
  asparse_free(wanted);
  return status;
}

static void destroy(probe *p) {
  asparse_halo_destroy(&p->halo);
  p->engine->backend->release(p->b);
  p->engine->backend->release(p->to);
  p->b = p->to = NULL;
}

static asparse_status exchange(probe *p) {
  PASS(asparse_halo_exchange_begin(p->halo, p->b, p->cols));
  PASS(asparse_halo_exchange_end(p->halo));
  PASS(asparse_halo_wait(p->halo));
  return p->engine->backend->wait(p->engine);
}

static asparse_status plain_mpi(probe *p) {
  asparse_status status = ASPARSE_OK;
  const int size = p->comm->size, next = (p->comm->rank + 1) % size, before = (p->comm->rank + size - 1) % size;
  MPI_Request requests[2];
  int count;
  TRY(asparse_int32_from(p->bytes, "the bytes of a message", &count));
  TRY_MPI(MPI_Irecv(p->to, count, MPI_BYTE, next, TAG, p->comm->mpi, &requests[0]));
  TRY_MPI(MPI_Isend(p->b, count, MPI_BYTE, before, TAG, p->comm->mpi, &requests[1]));
  TRY_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
cleanup:
  return status;
}

static asparse_status plain(probe *p) {
#if ASPARSE_HAVE_NCCL
  if (p->comm->kind == ASPARSE_COMM_NCCL) {
    const asparse_nccl *nccl = p->comm->nccl;
    const int size = p->comm->size, next = (p->comm->rank + 1) % size, before = (p->comm->rank + size - 1) % size;
    void *stream = p->engine->backend->stream(p->engine, ASPARSE_QUEUE_COMPUTE);
    PASS_NCCL(nccl, ncclGroupStart());
    PASS_NCCL(nccl, ncclSend(p->b, (size_t)p->bytes, ncclInt8, before, nccl->comm, stream));
    PASS_NCCL(nccl, ncclRecv(p->to, (size_t)p->bytes, ncclInt8, next, nccl->comm, stream));
    PASS_NCCL(nccl, ncclGroupEnd());
    PASS(asparse_nccl_settle(p->comm));
    return p->engine->backend->wait(p->engine);
  }
#endif
  if (p->engine->backend->space == ASPARSE_SPACE_DEVICE)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "GPUs without NCCL: there is nothing plain to compare with");
  return plain_mpi(p);
}

/* The slowest rank's nanoseconds of one call. Collective. */
static asparse_status time_call(probe *p, asparse_status (*call)(probe *), int64_t *nanoseconds) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_comm_barrier(p->comm));
  const double start = asparse_seconds();
  status = call(p);
  *nanoseconds = (int64_t)(1e9 * (asparse_seconds() - start));
  TRY(asparse_comm_agree(p->comm, status));
  TRY(asparse_comm_max(p->comm, nanoseconds, 1));
cleanup:
  return status;
}

static int compare(const void *left, const void *right) {
  const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return a < b ? -1 : a > b;
}

static asparse_status run_size(probe *p, const probe_options *o, double mib) {
  asparse_status status = ASPARSE_OK;
  static int64_t plain_times[MOST_REPEATS], exchange_times[MOST_REPEATS];
  int64_t unused;
  TRY(create(p, mib));
  for (int64_t i = -WARMUPS; i < o->repeat; i++) {
    TRY(time_call(p, plain, i < 0 ? &unused : &plain_times[i]));
    TRY(time_call(p, exchange, i < 0 ? &unused : &exchange_times[i]));
  }
  qsort(plain_times, (size_t)o->repeat, sizeof *plain_times, compare);
  qsort(exchange_times, (size_t)o->repeat, sizeof *exchange_times, compare);
  const double of_plain = (double)plain_times[o->repeat / 2], of_exchange = (double)exchange_times[o->repeat / 2];
  if (p->comm->rank == 0)
    printf("%8.3f MiB  plain %8.2f GB/s  exchange %8.2f GB/s  %5.1f %%\n", (double)p->bytes / MIB,
           (double)p->bytes / of_plain, (double)p->bytes / of_exchange, 100 * of_plain / of_exchange);
cleanup:
  destroy(p);
  return status;
}

static asparse_status run(asparse_comm *comm, const probe_options *o) {
  asparse_status status = ASPARSE_OK;
  probe p = {.comm = comm, .cols = o->cols};
  TRY_THAT(comm->size > 1, ASPARSE_ERR_USAGE, "an exchange needs two ranks or more: mpirun -np 2 exchange_probe");
  TRY(asparse_engines_open(comm, &o->plan, &p.engine));
  if (comm->rank == 0)
    printf("%d ranks, %s, %s, rows of %lld fp32; into a rank, one way\n", comm->size, p.engine->backend->name,
           comm->kind == ASPARSE_COMM_NCCL ? "nccl" : "mpi", (long long)o->cols);
  for (int i = 0; i < o->n_sizes; i++) TRY(run_size(&p, o, o->mib[i]));
cleanup:
  asparse_engine_close(&p.engine);
  return status;
}

int main(int argc, char **argv) {
  asparse_comm *comm = NULL;
  probe_options options;
  MPI_Init(&argc, &argv);
  asparse_status status = asparse_comm_create(&comm, MPI_COMM_WORLD);
  if (status == ASPARSE_OK) status = parse(argc, argv, &options);
  if (status == ASPARSE_OK) status = run(comm, &options);
  if (status != ASPARSE_OK && (!comm || comm->rank == 0))
    fprintf(stderr, "exchange_probe: %s\n", asparse_error_message());
  asparse_comm_destroy(&comm);
  MPI_Finalize();
  return asparse_exit_code(status);
}
