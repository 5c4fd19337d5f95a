/* The transports under a halo, on an engine whose queues run late and at random: every rule of who waits for what is
 * needed for the right rows to arrive. NCCL's calls are made to a fake. */
#include "asparse_config.h"
#include "halo_rows.h"
#include "late_engine.h"
#include "plan/transport.h"

#if ASPARSE_HAVE_NCCL
#include "base/nccl_comm.h"
#include "fake_nccl.h"
#endif

enum { K = 60, N = 21, EXCHANGES = 6 };

static asparse_engine engine = {.backend = &late_backend};
static int64_t col_starts[9];

/* One halo, used again and again without waiting in between. */
typedef struct stream_test {
  asparse_halo *halo;
  asparse_dense *b;
  int64_t wanted[K], begin;
  int round;     /* of the kernels below */
  int checked;   /* chunks of this round */
  int64_t right; /* elements that were as expected */
} stream_test;

/* "Kernels": B of a new round is written; the halo is checked; both are spoilt. */
static void write_b(void *data) {
  stream_test *t = data;
  asparse_dense_fill_random(t->b, (uint64_t)t->round, t->begin, NULL);
}

static void check_chunk(void *data) {
  stream_test *t = data;
  const asparse_halo_shape *shape = &t->halo->shape;
  const double *rows = asparse_halo_chunk(t->halo, t->checked);
  const int64_t begin = asparse_halo_chunk_start(shape, t->checked),
                columns = asparse_halo_chunk_columns(shape, t->checked);
  for (int64_t i = 0; i < t->halo->n_rows; i++)
    for (int64_t j = 0; j < columns; j++)
      t->right += rows[i * columns + j] == asparse_random_element((uint64_t)t->round, t->wanted[i], begin + j);
  t->checked = (t->checked + 1) % shape->chunks;
}

static void spoil(void *data) {
  stream_test *t = data;
  memset(t->b->values, 0xff, (size_t)(t->b->m * t->b->ld) * sizeof(double));
  memset(t->halo->buffer, 0xff, (size_t)(t->halo->n_rows * N) * sizeof(double));
  t->round++;
}

static void create(stream_test *t, asparse_comm *comm, bool all, int chunks, int64_t ld, uint64_t *state) {
  int64_t n = 0, end = col_starts[comm->rank + 1];
  t->begin = col_starts[comm->rank];
  for (int64_t g = 0; g < K; g++)
    if ((g < t->begin || g >= end) && (all || test_random(state, 3) == 0)) t->wanted[n++] = g;
  assert_int_equal(asparse_dense_create(&t->b, end - t->begin, ld, ASPARSE_FP64), ASPARSE_OK);
  assert_int_equal(asparse_halo_create(comm, &engine, col_starts, all ? NULL : t->wanted, n,
                                       (asparse_halo_shape){N, chunks, ASPARSE_FP64}, &t->halo),
                   ASPARSE_OK);
}

static void exchange(asparse_comm *comm, const char *transport, bool all, int chunks, int64_t ld, uint64_t *state) {
  stream_test t = {0};
  const void *rows = NULL;
  double pack = -1, communication = -1;
  create(&t, comm, all, chunks, ld, state);
  assert_string_equal(asparse_halo_transport(t.halo), transport);
  for (int i = 0; i < EXCHANGES; i++) {
    late_call(ASPARSE_QUEUE_COMPUTE, write_b, &t);
    assert_int_equal(asparse_halo_exchange_begin(t.halo, t.b->values, t.b->ld), ASPARSE_OK);
    for (int j = 0; j < i; j++) assert_int_equal(asparse_halo_exchange_progress(t.halo), ASPARSE_OK);
    for (int c = 0; c < chunks; c++) {
      assert_int_equal(asparse_halo_exchange_end_chunk(t.halo, c), ASPARSE_OK);
      late_call(ASPARSE_QUEUE_COMPUTE, check_chunk, &t);
    }
    if (i + 1 < EXCHANGES) late_call(ASPARSE_QUEUE_COMPUTE, spoil, &t);
  }
  assert_int_equal(asparse_halo_wait(t.halo), ASPARSE_OK);
  assert_int_equal(asparse_halo_times(t.halo, &pack, &communication), ASPARSE_OK);
  assert_true(pack >= 0 && communication >= pack);
  assert_int_equal(late_wait(&engine), ASPARSE_OK);
  assert_int_equal(t.right, EXCHANGES * t.halo->n_rows * N);
  assert_int_equal(asparse_halo_host_rows(t.halo, &rows), ASPARSE_OK);
  assert_memory_equal(rows, t.halo->buffer, (size_t)t.halo->bytes_received);
  asparse_halo_destroy(&t.halo);
  asparse_dense_destroy(&t.b);
}

/* Slices of all sizes, rows with and without gaps, messages in pieces. */
static void exchanges(asparse_comm *comm, const char *transport) {
  uint64_t shared = 4, own = (uint64_t)comm->rank + 100;
  const int64_t limit = comm->message_bytes;
  late_state = own;
  for (int trial = 0; trial < 12; trial++) {
    col_starts[0] = 0;
    for (int r = 1; r < comm->size; r++)
      col_starts[r] = col_starts[r - 1] + test_random(&shared, K + 1 - col_starts[r - 1]);
    col_starts[comm->size] = K;
    comm->message_bytes = trial % 3 == 0 ? 96 : limit;
    for (int all = 0; all < 2; all++) {
      exchange(comm, transport, all, 1 + trial % ASPARSE_MOST_CHUNKS, N, &own);
      exchange(comm, transport, all, 1 + trial % ASPARSE_MOST_CHUNKS, N + 2, &own);
    }
  }
  comm->message_bytes = limit;
}

static void mpi_staged(void **unused) {
  (void)unused;
  assert_int_equal(asparse_transport_open(test_comm, &engine, ASPARSE_COMM_MPI), ASPARSE_OK);
  assert_int_equal(test_comm->kind, ASPARSE_COMM_MPI);
  exchanges(test_comm, "mpi");
}

/* Halos on the host go by MPI whatever GPUs do; NCCL without GPUs is refused. */
static void on_the_host(void **unused) {
  (void)unused;
  const asparse_transport *transport = NULL;
  asparse_engine *host = NULL;
  assert_int_equal(asparse_engine_open(ASPARSE_BACKEND_HOST, 0, &host), ASPARSE_OK);
  assert_int_equal(asparse_transport_open(test_comm, host, ASPARSE_COMM_NCCL), ASPARSE_ERR_USAGE);
  assert_non_null(strstr(asparse_error_message(), "--comm mpi"));
  asparse_error_clear();
  assert_int_equal(asparse_transport_open(test_comm, host, ASPARSE_COMM_AUTO), ASPARSE_OK);
  test_comm->kind = ASPARSE_COMM_NCCL;
  assert_int_equal(asparse_transport_find(test_comm, host, &transport), ASPARSE_OK);
  assert_string_equal(transport->name, "mpi");
  test_comm->kind = ASPARSE_COMM_AUTO;
  asparse_engine_close(&host);
}

/* The n-th allocation of a staged halo fails on one rank: all report it, nothing is left. */
static void allocation_failures(void **unused) {
  (void)unused;
  const int64_t blocks = asparse_memory_live_blocks();
  bool reached_end = false;
  for (int r = 0; r <= test_comm->size; r++) col_starts[r] = asparse_even_start(K, test_comm->size, r);
  test_comm->kind = ASPARSE_COMM_MPI;
  for (int64_t n = 1; n < 100 && !reached_end; n++) {
    asparse_halo *halo = NULL;
    asparse_memory_fail_at(test_comm->rank == n % test_comm->size ? n : 0);
    const asparse_status status =
        asparse_halo_create(test_comm, &engine, col_starts, NULL, 0, (asparse_halo_shape){N, 1, ASPARSE_FP64}, &halo);
    asparse_memory_fail_at(0);
    assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
    asparse_error_clear();
    asparse_halo_destroy(&halo);
    assert_int_equal(asparse_memory_live_blocks(), blocks);
    reached_end = status == ASPARSE_OK;
  }
  assert_true(reached_end);
}

#if ASPARSE_HAVE_NCCL
static const char *gpu_of_rank; /* its bus id */
static const char *device_id(const asparse_engine *unused) {
  (void)unused;
  return gpu_of_rank;
}

static void nccl(void **unused) {
  (void)unused;
  static const char *const gpus[] = {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0", "0000:04:00.0"};
  asparse_backend with_id = late_backend;
  with_id.device_id = device_id;
  engine.backend = &with_id;
  gpu_of_rank = gpus[test_comm->rank];
  fake_nccl.mpi = test_comm->mpi;
  assert_int_equal(asparse_transport_open(test_comm, &engine, ASPARSE_COMM_AUTO), ASPARSE_OK);
  if (test_comm->size > 1) {
    assert_int_equal(test_comm->kind, ASPARSE_COMM_NCCL);
    exchanges(test_comm, "nccl");
    assert_true(fake_nccl.groups > 0 && fake_nccl.largest > 96);
    fake_nccl.error = ncclRemoteError;
    assert_int_equal(asparse_nccl_check(test_comm), ASPARSE_ERR_DEVICE);
    assert_non_null(strstr(asparse_error_message(), "remote process exited (peer is gone)"));
    asparse_error_clear();
    fake_nccl.error = ncclSuccess;
    asparse_nccl_destroy(&test_comm->nccl);
  }
  test_comm->kind = ASPARSE_COMM_AUTO;
  engine.backend = &late_backend;
}

/* A communicator of its own for every second rank. */
static void nccl_of_some(void **unused) {
  (void)unused;
  asparse_comm *sub = NULL;
  test_comm->kind = ASPARSE_COMM_NCCL;
  assert_int_equal(asparse_comm_split(test_comm, test_comm->rank % 2, -test_comm->rank, &sub), ASPARSE_OK);
  fake_nccl.mpi = sub->mpi;
  exchanges(sub, sub->size > 1 ? "nccl" : "mpi");
  assert_true((sub->nccl != NULL) == (sub->size > 1));
  asparse_comm_destroy(&sub);
  test_comm->kind = ASPARSE_COMM_AUTO;
}

/* Two ranks on one GPU: MPI, or a refusal that names them. */
static void nccl_refused(void **unused) {
  (void)unused;
  asparse_backend with_id = late_backend;
  with_id.device_id = device_id;
  engine.backend = &with_id;
  gpu_of_rank = test_comm->rank == 1 ? "0000:09:00.0" : "0000:0a:00.0";
  const bool shared = test_comm->size > 2;
  if (test_comm->size > 1) {
    fake_nccl.mpi = test_comm->mpi;
    assert_int_equal(asparse_transport_open(test_comm, &engine, ASPARSE_COMM_AUTO), ASPARSE_OK);
    assert_int_equal(test_comm->kind, shared ? ASPARSE_COMM_MPI : ASPARSE_COMM_NCCL);
    assert_int_equal(asparse_transport_open(test_comm, &engine, ASPARSE_COMM_NCCL),
                     shared ? ASPARSE_ERR_DEVICE : ASPARSE_OK);
    assert_true(!shared || strstr(asparse_error_message(), "ranks 0 and 2 share GPU 0000:0a:00.0 of host"));
    asparse_error_clear();
    asparse_nccl_destroy(&test_comm->nccl);
  }
  test_comm->kind = ASPARSE_COMM_AUTO;
  engine.backend = &late_backend;
}
#endif

static int group(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(mpi_staged),
    cmocka_unit_test(on_the_host),
    cmocka_unit_test(allocation_failures),
#if ASPARSE_HAVE_NCCL
    cmocka_unit_test(nccl),
    cmocka_unit_test(nccl_of_some),
    cmocka_unit_test(nccl_refused),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
