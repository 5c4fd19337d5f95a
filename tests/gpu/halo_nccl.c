/* Rows of B between GPUs: NCCL and MPI bring the same bits, with long and short messages, on the whole communicator and
 * on parts of it; and the plan gives the same C with either. Each rank needs a GPU of its own for NCCL; where GPUs are
 * shared, asking for NCCL must be refused and auto must take MPI. */
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "base/nccl_comm.h"
#include "plan/plan.h"
#include "plan/transport.h"
#include "tests/halo_rows.h"
#include "tests/slabs.h"

enum { SKIPPED = 77, K = 3000, N = 72, EXCHANGES = 5 };

static asparse_engine *engine;

static bool own_gpus(void) {
  char reason[ASPARSE_NCCL_REASON];
  assert_int_equal(asparse_nccl_shared_gpu(test_comm, engine->backend->device_id(engine), reason), ASPARSE_OK);
  return reason[0] == '\0' && test_comm->size > 1;
}

/* Every third row of the others, or all of them. */
static int64_t want(const int64_t *col_starts, int rank, bool all, int64_t *wanted) {
  int64_t n = 0;
  for (int64_t g = 0; g < K; g++)
    if ((g < col_starts[rank] || g >= col_starts[rank + 1]) && (all || g % 3 == rank % 3)) wanted[n++] = g;
  return n;
}

/* Copies B there, exchanges it a few times, and checks every element that came. */
static void exchange(asparse_comm *comm, const char *transport, bool all, int chunks, int64_t ld) {
  static int64_t col_starts[65], wanted[K];
  asparse_halo *halo = NULL;
  asparse_dense *b = NULL;
  void *there = NULL;
  const void *rows = NULL;
  const asparse_backend *backend = engine->backend;
  for (int r = 0; r <= comm->size; r++) col_starts[r] = asparse_even_start(K, comm->size, r);
  const int64_t begin = col_starts[comm->rank], own = col_starts[comm->rank + 1] - begin;
  const int64_t n = want(col_starts, comm->rank, all, wanted);
  const size_t bytes = (size_t)(own * ld) * sizeof(float);
  assert_int_equal(asparse_halo_create(comm, engine, col_starts, all ? NULL : wanted, n,
                                       (asparse_halo_shape){N, chunks, ASPARSE_FP32}, &halo),
                   ASPARSE_OK);
  assert_string_equal(asparse_halo_transport(halo), transport);
  assert_int_equal(asparse_dense_create(&b, own, ld, ASPARSE_FP32), ASPARSE_OK);
  assert_int_equal(backend->allocate(engine, own * ld, sizeof(float), "B", &there), ASPARSE_OK);
  for (int i = 0; i < EXCHANGES; i++) {
    asparse_dense_fill_random(b, (uint64_t)i, begin, NULL);
    assert_int_equal(backend->copy_in(engine, there, bytes, b->values, bytes, bytes, 1), ASPARSE_OK);
    assert_int_equal(asparse_halo_exchange_begin(halo, there, ld), ASPARSE_OK);
    assert_int_equal(asparse_halo_exchange_end(halo), ASPARSE_OK);
    assert_int_equal(asparse_halo_host_rows(halo, &rows), ASPARSE_OK);
    for (int64_t e = 0; e < n * N; e++)
      assert_true(((const float *)rows)[halo_at(halo, e / N, e % N)] ==
                  (float)asparse_random_element((uint64_t)i, wanted[e / N], e % N));
  }
  double pack = -1, communication = -1;
  assert_int_equal(asparse_halo_times(halo, &pack, &communication), ASPARSE_OK);
  assert_true(comm->size == 1 || (pack > 0 && communication > pack));
  backend->release(there);
  asparse_dense_destroy(&b);
  asparse_halo_destroy(&halo);
}

static void exchanges(asparse_comm *comm, const char *transport) {
  const int64_t limit = comm->message_bytes;
  for (int pieces = 0; pieces < 2; pieces++) {
    comm->message_bytes = pieces ? 10000 : limit;
    for (int all = 0; all < 2; all++) {
      for (int chunks = 1; chunks <= ASPARSE_MOST_CHUNKS; chunks++) {
        exchange(comm, transport, all, chunks, N);
        exchange(comm, transport, all, chunks, N + 8);
      }
    }
  }
  comm->message_bytes = limit;
}

static void by_mpi(void **unused) {
  (void)unused;
  assert_int_equal(asparse_transport_open(test_comm, engine, ASPARSE_COMM_MPI), ASPARSE_OK);
  exchanges(test_comm, "mpi");
}

static void by_nccl(void **unused) {
  (void)unused;
  if (test_comm->size == 1) return;
  if (!own_gpus()) {
    assert_int_equal(asparse_transport_open(test_comm, engine, ASPARSE_COMM_NCCL), ASPARSE_ERR_DEVICE);
    assert_non_null(strstr(asparse_error_message(), "share GPU"));
    asparse_error_clear();
    assert_int_equal(asparse_transport_open(test_comm, engine, ASPARSE_COMM_AUTO), ASPARSE_OK);
    assert_int_equal(test_comm->kind, ASPARSE_COMM_MPI);
    return;
  }
  assert_int_equal(asparse_transport_open(test_comm, engine, ASPARSE_COMM_NCCL), ASPARSE_OK);
  exchanges(test_comm, "nccl");
  asparse_comm *sub = NULL;
  assert_int_equal(asparse_comm_split(test_comm, test_comm->rank / 2, 0, &sub), ASPARSE_OK);
  exchanges(sub, sub->size > 1 ? "nccl" : "mpi");
  asparse_comm_destroy(&sub);
}

/* C of one plan, on the host. */
static asparse_dense *product(const asparse_csr *whole, asparse_comm_kind kind, asparse_exchange_mode mode,
                              int chunks) {
  uint64_t state = 9;
  asparse_options options = asparse_options_default();
  asparse_csr *slab = test_slab(whole, test_comm, &state);
  asparse_matrix *a = NULL;
  asparse_plan *plan = NULL;
  asparse_dense *b = NULL, *c = NULL;
  asparse_stats stats;
  options.backend = ASPARSE_BACKEND_CUDA;
  options.comm = kind;
  options.exchange = mode;
  options.chunks = chunks;
  assert_int_equal(asparse_matrix_create(test_comm, &slab, &options, N, &a), ASPARSE_OK);
  assert_int_equal(asparse_plan_create(a, &options, N, &plan), ASPARSE_OK);
  assert_int_equal(asparse_plan_operands(plan, &b, &c), ASPARSE_OK);
  asparse_plan_fill_random(plan, b, 7);
  for (int i = 0; i < EXCHANGES; i++) assert_int_equal(asparse_plan_execute(plan, b, c), ASPARSE_OK);
  asparse_plan_stats(plan, &stats);
  assert_string_equal(stats.transport, kind == ASPARSE_COMM_NCCL ? "nccl" : "mpi");
  assert_true(stats.total_seconds >= stats.exposed_seconds && stats.communication_seconds >= stats.pack_seconds);
  asparse_dense_destroy(&b);
  asparse_plan_destroy(&plan);
  asparse_matrix_destroy(&a);
  return c;
}

static void same_product(void **unused) {
  (void)unused;
  uint64_t state = 3;
  if (!own_gpus()) return;
  asparse_csr *whole = test_whole(&state, 500, 500, 20, 7);
  for (int mode = ASPARSE_EXCHANGE_REPLICATE; mode <= ASPARSE_EXCHANGE_ROWS; mode++) {
    asparse_dense *by_mpi = product(whole, ASPARSE_COMM_MPI, (asparse_exchange_mode)mode, 1);
    asparse_dense *by_nccl = product(whole, ASPARSE_COMM_NCCL, (asparse_exchange_mode)mode, 1 + mode);
    assert_memory_equal(by_mpi->values, by_nccl->values,
                        (size_t)(by_mpi->m * by_mpi->ld) * asparse_dtype_size(by_mpi->dtype));
    asparse_dense_destroy(&by_mpi);
    asparse_dense_destroy(&by_nccl);
  }
  asparse_csr_destroy(&whole);
}

static int group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(by_mpi), cmocka_unit_test(by_nccl),
                                     cmocka_unit_test(same_product)};
  if (asparse_engine_open(ASPARSE_BACKEND_CUDA, test_comm->node_rank, &engine) != ASPARSE_OK) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  asparse_engine_close(&engine);
  return failed;
}

int main(int argc, char **argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("skipped: no GPU\n");
    return SKIPPED;
  }
  return test_run(&argc, &argv, group);
}
