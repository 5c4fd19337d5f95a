/* The halo exchange by itself: every wanted row arrives, and the lists count what moves. */
#include "halo_rows.h"
#include "slabs.h"

enum { K = 50, N = 37 };

static int64_t col_starts[9];
static asparse_engine *engine;

/* Uneven slices, some empty. */
static void cut(uint64_t *state) {
  col_starts[0] = 0;
  for (int r = 1; r < test_comm->size; r++)
    col_starts[r] = col_starts[r - 1] + test_random(state, K + 1 - col_starts[r - 1]);
  col_starts[test_comm->size] = K;
}

static void check_rows(const asparse_halo *halo, const int64_t *wanted) {
  for (int64_t i = 0; i < halo->n_rows; i++) {
    for (int64_t j = 0; j < N; j++)
      assert_true(((double *)halo->buffer)[halo_at(halo, i, j)] == asparse_random_element(3, wanted[i], j));
  }
}

static void exchange(uint64_t *state, bool all, int chunks, int64_t ld) {
  int64_t begin = col_starts[test_comm->rank], end = col_starts[test_comm->rank + 1], wanted[K], n = 0;
  for (int64_t g = 0; g < K; g++) {
    if ((g < begin || g >= end) && (all || test_random(state, 3) == 0)) wanted[n++] = g;
  }
  asparse_dense *b = NULL;
  asparse_halo *halo = NULL;
  assert_int_equal(asparse_dense_create(&b, end - begin, ld, ASPARSE_FP64), ASPARSE_OK);
  asparse_dense_fill_random(b, 3, begin, NULL);
  assert_int_equal(asparse_halo_create(test_comm, engine, col_starts, all ? NULL : wanted, n,
                                       (asparse_halo_shape){N, chunks, ASPARSE_FP64}, &halo),
                   ASPARSE_OK);
  assert_int_equal(halo->n_rows, n);
  int64_t balance = halo->bytes_sent - halo->bytes_received;
  assert_int_equal(asparse_comm_sum(test_comm, &balance, 1), ASPARSE_OK);
  assert_int_equal(balance, 0);
  for (int repeat = 0; repeat < 3; repeat++) {
    memset(halo->buffer, 0xff, (size_t)(n * N) * 8);
    assert_int_equal(asparse_halo_exchange_begin(halo, b->values, b->ld), ASPARSE_OK);
    assert_int_equal(asparse_halo_exchange_progress(halo), ASPARSE_OK);
    assert_int_equal(asparse_halo_exchange_end(halo), ASPARSE_OK);
    check_rows(halo, wanted);
  }
  asparse_halo_destroy(&halo);
  assert_null(halo);
  asparse_dense_destroy(&b);
}

static void rows_arrive(void **unused) {
  (void)unused;
  uint64_t shared = 4, own = (uint64_t)test_comm->rank + 100;
  int64_t limit = test_comm->message_bytes;
  assert_int_equal(asparse_engine_open(ASPARSE_BACKEND_HOST, 0, &engine), ASPARSE_OK);
  for (int trial = 0; trial < 30; trial++) {
    cut(&shared);
    test_comm->message_bytes = trial % 3 == 0 ? 40 : limit;
    for (int all = 0; all < 2; all++) {
      exchange(&own, all, 1 + trial % ASPARSE_MOST_CHUNKS, N);
      exchange(&own, all, 1 + trial % ASPARSE_MOST_CHUNKS, N + 3);
    }
  }
  test_comm->message_bytes = limit;
  asparse_engine_close(&engine);
}

static void chunks_cover_all_columns(void **unused) {
  (void)unused;
  assert_int_equal(asparse_halo_chunks(1000, 100), ASPARSE_MOST_CHUNKS);
  assert_int_equal(asparse_halo_chunks(1000, -3), 1);
  for (int64_t n = 1; n < 100; n++) {
    for (int chunks = 1; chunks <= ASPARSE_MOST_CHUNKS; chunks++) {
      const asparse_halo_shape shape = {n, chunks, ASPARSE_FP32};
      assert_int_equal(asparse_halo_chunks(n, chunks), n >= 8 * chunks ? chunks : n < 16 ? 1 : n / 8);
      assert_int_equal(asparse_halo_chunk_start(&shape, 0), 0);
      assert_int_equal(asparse_halo_chunk_start(&shape, chunks), n);
      for (int c = 0; c < chunks; c++) {
        assert_true(asparse_halo_chunk_columns(&shape, c) >= (n >= 8 * chunks ? 8 : 0));
        assert_int_equal(asparse_halo_chunk_start(&shape, c) % 8, 0);
      }
    }
  }
}

static int group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_arrive), cmocka_unit_test(chunks_cover_all_columns)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
