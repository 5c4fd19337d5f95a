/* Verification against planted faults, and against roundings that are none. */
#include "problem.h"

/* A flipped bit in one element of C is found, whatever the row: exponent, high and middle mantissa. */
static void faults_are_found(void **unused) {
  (void)unused;
  uint64_t state = 5;
  asparse_options options = asparse_options_default();
  options.own_precision = false;
  options.precision = ASPARSE_FP32;
  problem p = {.whole = test_whole(&state, 300, 300, 6, -1)};
  asparse_verification v;
  assert_int_equal(problem_solve(&p, test_slab(p.whole, test_comm, &state), &options, 12), ASPARSE_OK);
  for (int trial = 0; trial < (many_ranks() ? 10 : 40); trial++) {
    int owner = (int)test_random(&state, test_comm->size), bit = 18 + (int)test_random(&state, 13);
    int64_t at = test_random(&state, 1 << 20);
    uint32_t *bits = p.c->values;
    bool mine = owner == test_comm->rank && p.c->m > 0;
    int64_t rows = mine ? 1 : 0;
    if (mine) bits[at % (p.c->m * 12)] ^= 1u << bit;
    assert_int_equal(asparse_comm_sum(test_comm, &rows, 1), ASPARSE_OK);
    asparse_status status = asparse_verify(p.plan, p.b, p.c, (uint64_t)trial, &v);
    assert_int_equal(status, rows ? ASPARSE_ERR_VERIFY : ASPARSE_OK);
    assert_int_equal(v.passed, rows == 0);
    assert_true(rows == 0 || v.failed_row >= 0);
    if (mine) bits[at % (p.c->m * 12)] ^= 1u << bit;
    asparse_error_clear();
  }
  assert_int_equal(asparse_verify(p.plan, p.b, p.c, 1, &v), ASPARSE_OK);
  problem_free(&p);
}

/* Sums that round with a bias (equal terms, long rows) are no faults. */
static void biased_sums_are_no_faults(void **unused) {
  (void)unused;
  uint64_t state = 6;
  asparse_options options = asparse_options_default();
  options.own_precision = false;
  options.precision = ASPARSE_FP32;
  asparse_verification v;
  problem p = {.whole = test_whole(&state, 8, 30000, 1, -1)};
  for (int64_t e = 0; e < p.whole->nnz; e++) ((double *)p.whole->values)[e] = 1;
  assert_int_equal(problem_solve(&p, test_slab(p.whole, test_comm, &state), &options, 3), ASPARSE_OK);
  for (int64_t i = 0; i < p.b->m * 3; i++) ((float *)p.b->values)[i] = 0.1f;
  assert_int_equal(asparse_plan_execute(p.plan, p.b, p.c), ASPARSE_OK);
  assert_int_equal(asparse_verify(p.plan, p.b, p.c, 1, &v), ASPARSE_OK);
  problem_free(&p);
}

static int group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(faults_are_found), cmocka_unit_test(biased_sums_are_no_faults)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
