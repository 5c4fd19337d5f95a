/* Measured rates of links: plausible, the same on every rank, and nothing is left behind. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "plan/links.h"
#include "slabs.h"

static bool same_everywhere(double value) {
  double least = 0, most = 0;
  MPI_Allreduce(&value, &least, 1, MPI_DOUBLE, MPI_MIN, test_comm->mpi);
  MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, test_comm->mpi);
  return least == most;
}

static void measured(void **unused) {
  (void)unused;
  asparse_links links;
  asparse_engine *engine = NULL;
  assert_int_equal(asparse_engine_open(ASPARSE_BACKEND_HOST, 0, &engine), ASPARSE_OK);
  const int64_t blocks = asparse_memory_live_blocks();
  const double start = asparse_seconds();
  assert_int_equal(asparse_links_measure(test_comm, engine, &links), ASPARSE_OK);
  assert_true(asparse_seconds() - start < 20);
  assert_int_equal(asparse_memory_live_blocks(), blocks);
  if (test_comm->size == 1) {
    assert_true(links.latency_seconds == 0 && isinf(links.pair_bytes_per_second) && isinf(links.all_bytes_per_second));
  } else {
    /* From what a busy machine gives to what memory could. */
    assert_true(links.latency_seconds > 1e-8 && links.latency_seconds < 1);
    assert_true(links.pair_bytes_per_second > 1e5 && links.pair_bytes_per_second < 1e13);
    assert_true(links.all_bytes_per_second > 1e5 && links.all_bytes_per_second < 1e13);
    if (test_comm->rank == 0)
      printf("latency %.3g µs, pair %.3g GB/s, all %.3g GB/s\n", 1e6 * links.latency_seconds,
             1e-9 * links.pair_bytes_per_second, 1e-9 * links.all_bytes_per_second);
  }
  assert_true(same_everywhere(links.latency_seconds) && same_everywhere(links.pair_bytes_per_second) &&
              same_everywhere(links.all_bytes_per_second));
  asparse_engine_close(&engine);
}

/* The n-th allocation fails on one rank: all report it, nothing is left. */
static void allocation_failures(void **unused) {
  (void)unused;
  asparse_engine *engine = NULL;
  assert_int_equal(asparse_engine_open(ASPARSE_BACKEND_HOST, 0, &engine), ASPARSE_OK);
  const int64_t blocks = asparse_memory_live_blocks();
  for (int64_t n = 1; n < 20 && test_comm->size > 1; n++) {
    asparse_links links;
    asparse_memory_fail_at(test_comm->rank == n % test_comm->size ? n : 0);
    assert_int_equal(asparse_links_measure(test_comm, engine, &links), ASPARSE_ERR_MEMORY);
    asparse_memory_fail_at(0);
    asparse_error_clear();
    assert_int_equal(asparse_memory_live_blocks(), blocks);
  }
  asparse_engine_close(&engine);
}

static int group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(measured), cmocka_unit_test(allocation_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
