/* Agreement on errors and exchanges in pieces. */
#include <stdio.h>

#include "base/clock.h"
#include "slabs.h"

static void agreement(void **unused) {
  (void)unused;
  assert_int_equal(asparse_comm_agree(test_comm, ASPARSE_OK), ASPARSE_OK);
  for (int failing = 0; failing < test_comm->size; failing++) {
    asparse_status mine = ASPARSE_OK;
    if (test_comm->rank == failing) mine = ASPARSE_FAIL(ASPARSE_ERR_DATA, "file %d is damaged", failing);
    assert_int_equal(asparse_comm_agree(test_comm, mine), ASPARSE_ERR_DATA);
    char text[32], expected[64] = "";
    snprintf(text, sizeof text, "file %d is damaged", failing);
    if (test_comm->size > 1) snprintf(expected, sizeof expected, "rank %d: ", failing);
    strcat(expected, text);
    assert_string_equal(asparse_error_message(), expected);
    assert_non_null(strstr(asparse_error_source(), "tests/test_comm.c"));
    asparse_error_clear();
  }
}

/* The most severe status wins; among equals the lowest rank. */
static void severity(void **unused) {
  (void)unused;
  bool last = test_comm->rank == test_comm->size - 1;
  asparse_status mine = ASPARSE_FAIL(last ? ASPARSE_ERR_MEMORY : ASPARSE_ERR_USAGE, "from %d", test_comm->rank);
  assert_int_equal(asparse_comm_agree(test_comm, mine), ASPARSE_ERR_MEMORY);
  char expected[32];
  snprintf(expected, sizeof expected, "from %d", test_comm->size - 1);
  assert_non_null(strstr(asparse_error_message(), expected));
  asparse_error_clear();
}

static void exchange_of(int64_t unit) {
  int size = test_comm->size, rank = test_comm->rank;
  int64_t send_bytes[8] = {0}, send_displs[8] = {0}, receive_bytes[8] = {0}, receive_displs[8] = {0};
  int64_t n_send = 0, n_receive = 0;
  for (int r = 0; r < size; r++) {
    send_bytes[r] = unit * ((rank + 2 * r) % 3);
    receive_bytes[r] = unit * ((r + 2 * rank) % 3);
    send_displs[r] = n_send;
    receive_displs[r] = n_receive;
    n_send += send_bytes[r];
    n_receive += receive_bytes[r];
  }
  unsigned char *send = calloc((size_t)n_send + 1, 1), *receive = calloc((size_t)n_receive + 1, 1);
  for (int r = 0; r < size; r++) {
    for (int64_t i = 0; i < send_bytes[r]; i++) send[send_displs[r] + i] = (unsigned char)(16 * rank + 5 * r + i);
  }
  assert_int_equal(
      asparse_comm_alltoallv(test_comm, send, send_bytes, send_displs, receive, receive_bytes, receive_displs),
      ASPARSE_OK);
  for (int r = 0; r < size; r++) {
    for (int64_t i = 0; i < receive_bytes[r]; i++)
      assert_int_equal(receive[receive_displs[r] + i], (unsigned char)(16 * r + 5 * rank + i));
  }
  free(send);
  free(receive);
}

static void exchanges(void **unused) {
  (void)unused;
  int64_t limit = test_comm->message_bytes;
  for (int64_t bytes = 1; bytes < 200; bytes *= 3) {
    test_comm->message_bytes = bytes;
    exchange_of(0);
    exchange_of(1);
    exchange_of(50);
  }
  test_comm->message_bytes = limit;
  assert_int_equal(asparse_comm_pieces(test_comm, 0), 0);
  assert_int_equal(asparse_comm_pieces(test_comm, limit + 1), 2);
}

static void owners(void **unused) {
  (void)unused;
  const int64_t starts[] = {0, 0, 3, 3, 3, 7, 7};
  const int expected[] = {1, 1, 1, 4, 4, 4, 4};
  for (int64_t item = 0; item < 7; item++) assert_int_equal(asparse_owner(starts, 6, item), expected[item]);
  for (int parts = 1; parts < 9; parts++) {
    for (int64_t count = 0; count < 20; count++) {
      assert_int_equal(asparse_even_start(count, parts, 0), 0);
      assert_int_equal(asparse_even_start(count, parts, parts), count);
      for (int p = 0; p < parts; p++) {
        int64_t length = asparse_even_start(count, parts, p + 1) - asparse_even_start(count, parts, p);
        assert_in_range(length, count / parts, count / parts + 1);
      }
    }
  }
}

/* Colors and keys as MPI has them; what was set for the whole holds for the parts. */
static void splits(void **unused) {
  (void)unused;
  const int rank = test_comm->rank, size = test_comm->size;
  asparse_comm *sub = NULL;
  test_comm->message_bytes = 123;
  asparse_comm_timeout(test_comm, 60);
  asparse_comm_phase(test_comm, "splitting");
  for (int parts = 1; parts <= size; parts++) {
    assert_int_equal(asparse_comm_split(test_comm, rank % parts, -rank, &sub), ASPARSE_OK);
    assert_int_equal(sub->size, (size - rank % parts + parts - 1) / parts);
    assert_int_equal(sub->rank, sub->size - 1 - rank / parts);
    assert_true(sub->message_bytes == 123 && sub->timeout_seconds == 60);
    assert_string_equal(sub->phase, "splitting");
    assert_true(sub->cores == test_comm->cores);
    int64_t sum = 1;
    assert_int_equal(asparse_comm_sum(sub, &sum, 1), ASPARSE_OK);
    assert_int_equal(sum, sub->size);
    asparse_comm_destroy(&sub);
  }
  assert_int_equal(asparse_comm_split(test_comm, rank == 0 ? -1 : 0, 0, &sub), ASPARSE_OK);
  assert_true((sub == NULL) == (rank == 0));
  asparse_comm_destroy(&sub);
  for (int failing = 0; failing < size; failing++) {
    asparse_memory_fail_at(rank == failing ? 1 : 0);
    assert_int_equal(asparse_comm_split(test_comm, rank % 2, 0, &sub), ASPARSE_ERR_MEMORY);
    asparse_memory_fail_at(0);
    assert_null(sub);
    asparse_error_clear();
  }
  asparse_comm_timeout(test_comm, 0);
  test_comm->message_bytes = 1 << 30;
}

static void core_share(void **unused) {
  (void)unused;
  assert_true(test_comm->cores * test_comm->node_size >= 1);
  const asparse_comm crowded = {.cores = 0.25}, roomy = {.cores = 4};
  assert_true(asparse_comm_core_share(&crowded, 1) == 0.25);
  assert_true(asparse_comm_core_share(&roomy, 2) == 1);
  assert_true(asparse_comm_core_share(&roomy, 8) == 0.5);
}

/* A wait below the limit ends by itself, however late the answer. */
static void waits(void **unused) {
  (void)unused;
  const int rank = test_comm->rank, size = test_comm->size, to = (rank + 1) % size, from = (rank + size - 1) % size;
  int64_t given = rank, taken = -1, n = 0;
  MPI_Request requests[2];
  const int peers[2] = {from, to};
  asparse_comm_timeout(test_comm, 60);
  assert_int_equal(asparse_comm_irecv(test_comm, &taken, 8, from, 5, requests, &n), ASPARSE_OK);
  if (rank == 0) nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  assert_int_equal(asparse_comm_isend(test_comm, &given, 8, to, 5, requests, &n), ASPARSE_OK);
  assert_int_equal(asparse_comm_wait(test_comm, n, requests, peers), ASPARSE_OK);
  assert_int_equal(taken, from);
  assert_int_equal(asparse_comm_wait(test_comm, 0, NULL, NULL), ASPARSE_OK);
  assert_int_equal(asparse_comm_barrier(test_comm), ASPARSE_OK);
  asparse_comm_check_time(test_comm, asparse_seconds() - 59, 0, "nothing");
  asparse_comm_timeout(test_comm, 0);
  asparse_comm_check_time(test_comm, asparse_seconds() - 1e9, 0, "nothing");
}

static void allocation_failures(void **unused) {
  (void)unused;
  asparse_comm *comm = NULL;
  asparse_memory_fail_at(1);
  assert_int_equal(asparse_comm_create(&comm, MPI_COMM_SELF), ASPARSE_ERR_MEMORY);
  asparse_memory_fail_at(0);
  assert_null(comm);
  asparse_error_clear();
  int64_t none[8] = {0};
  asparse_memory_fail_at(test_comm->rank == 0 ? 1 : 0); /* on one rank; all return */
  assert_int_equal(asparse_comm_alltoallv(test_comm, none, none, none, none, none, none), ASPARSE_ERR_MEMORY);
  asparse_memory_fail_at(0);
  asparse_error_clear();
}

static int group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(agreement), cmocka_unit_test(severity),
                                     cmocka_unit_test(exchanges), cmocka_unit_test(owners),
                                     cmocka_unit_test(splits),    cmocka_unit_test(core_share),
                                     cmocka_unit_test(waits),     cmocka_unit_test(allocation_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
