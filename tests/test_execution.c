/* One multiplication: chunks of the halo, leading dimensions, operands that do not fit. */
#include "problem.h"

/* B and C may be parts of larger arrays. */
static void leading_dimensions(void **unused) {
  (void)unused;
  uint64_t state = 4;
  asparse_options options = asparse_options_default();
  for (int exchange = ASPARSE_EXCHANGE_REPLICATE; exchange <= ASPARSE_EXCHANGE_ROWS; exchange++) {
    problem p = {.whole = test_whole(&state, 60, 60, 5, -1)};
    asparse_dense *wide_b = NULL, *wide_c = NULL;
    options.exchange = (asparse_exchange_mode)exchange;
    assert_int_equal(problem_solve(&p, test_slab(p.whole, test_comm, &state), &options, 10), ASPARSE_OK);
    assert_int_equal(asparse_dense_create(&wide_b, p.b->m, 13, ASPARSE_FP64), ASPARSE_OK);
    assert_int_equal(asparse_dense_create(&wide_c, p.c->m, 15, ASPARSE_FP64), ASPARSE_OK);
    for (int64_t i = 0; i < wide_b->m * 13; i++) ((double *)wide_b->values)[i] = NAN;
    for (int64_t i = 0; i < wide_c->m * 15; i++) ((double *)wide_c->values)[i] = -77;
    for (int64_t i = 0; i < wide_b->m; i++)
      memcpy((double *)wide_b->values + 13 * i, (double *)p.b->values + 10 * i, 80);
    wide_b->n = wide_c->n = 10;
    assert_int_equal(asparse_plan_execute(p.plan, wide_b, wide_c), ASPARSE_OK);
    for (int64_t i = 0; i < wide_c->m; i++) {
      assert_memory_equal((double *)wide_c->values + 15 * i, (double *)p.c->values + 10 * i, 80);
      for (int j = 10; j < 15; j++) assert_true(((double *)wide_c->values)[15 * i + j] == -77);
    }
    asparse_dense_destroy(&wide_b);
    asparse_dense_destroy(&wide_c);
    problem_free(&p);
  }
}

/* C of `chunks` chunks, after several multiplications. */
static void solve_in_chunks(problem *p, const asparse_options *options, int chunks, int64_t n, asparse_stats *stats) {
  uint64_t state = 11;
  asparse_options with_chunks = *options;
  with_chunks.chunks = chunks;
  *p = (problem){.whole = test_whole(&state, 90, 90, 6, 4)};
  assert_int_equal(problem_solve(p, test_slab(p->whole, test_comm, &state), &with_chunks, n), ASPARSE_OK);
  for (int i = 0; i < 3; i++) assert_int_equal(asparse_plan_execute(p->plan, p->b, p->c), ASPARSE_OK);
  asparse_plan_stats(p->plan, stats);
}

/* The same bits whatever the chunks, as many bytes, and times that add up. */
static void chunks_change_nothing(void **unused) {
  (void)unused;
  static const int64_t columns[] = {7, 16, 33, 64, 131};
  asparse_stats one, several;
  for (int exchange = ASPARSE_EXCHANGE_REPLICATE; exchange <= ASPARSE_EXCHANGE_COVER; exchange++) {
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
      problem p, q;
      const int64_t n = columns[i];
      const int chunks = 2 + (int)i % (ASPARSE_MOST_CHUNKS - 1);
      asparse_options options = asparse_options_default();
      options.exchange = (asparse_exchange_mode)exchange;
      options.format = ASPARSE_FORMAT_CSR;
      solve_in_chunks(&p, &options, 1, n, &one);
      solve_in_chunks(&q, &options, chunks, n, &several);
      assert_int_equal(one.chunks, 1);
      assert_int_equal(several.chunks, exchange == ASPARSE_EXCHANGE_COVER ? 1 : asparse_halo_chunks(n, chunks));
      assert_memory_equal(p.c->values, q.c->values, (size_t)(p.c->m * p.c->ld) * sizeof(double));
      assert_int_equal(one.bytes_received, several.bytes_received);
      assert_int_equal(one.bytes_sent, several.bytes_sent);
      const double parts = several.diag_seconds + several.exposed_seconds + several.offd_seconds;
      assert_true(several.exposed_seconds >= 0 && several.offd_seconds >= 0);
      assert_true(parts <= several.total_seconds * (1 + 1e-9));
      problem_free(&p);
      problem_free(&q);
    }
  }
}

static void wrong_operands(void **unused) {
  (void)unused;
  uint64_t state = 7;
  asparse_options options = asparse_options_default();
  problem p = {.whole = test_whole(&state, 30, 30, 5, -1)};
  assert_int_equal(problem_solve(&p, test_slab(p.whole, test_comm, &state), &options, 4), ASPARSE_OK);
  p.b->n = 3;
  assert_int_equal(asparse_plan_execute(p.plan, p.b, p.c), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  p.b->n = 4;
  p.c->dtype = ASPARSE_FP32;
  assert_int_equal(asparse_plan_execute(p.plan, p.b, p.c), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  p.c->dtype = ASPARSE_FP64;
  asparse_plan *none = NULL;
  assert_int_equal(asparse_plan_create(p.a, &options, 0, &none), ASPARSE_ERR_USAGE);
  assert_null(none);
  asparse_error_clear();
  problem_free(&p);
}

static int group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(leading_dimensions), cmocka_unit_test(chunks_change_nothing),
                                     cmocka_unit_test(wrong_operands)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
