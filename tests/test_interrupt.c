/* SIGUSR1 to one rank ends the work of all at the same step. */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/interrupt.h"
#include "slabs.h"

static bool last_rank(void) { return test_comm->rank == test_comm->size - 1; }

static void unasked(void **unused) {
  (void)unused;
  asparse_interrupt_listen();
  assert_false(asparse_interrupt_came());
  assert_int_equal(asparse_interrupt_check(test_comm, ASPARSE_OK), ASPARSE_OK);
  assert_int_equal(asparse_interrupt_agree(test_comm), ASPARSE_OK);
  assert_string_equal(asparse_error_message(), "");
}

/* One rank is asked; all agree, with its message. */
static void one_is_enough(void **unused) {
  (void)unused;
  asparse_comm_phase(test_comm, "sleeping");
  for (int asked = 0; asked < test_comm->size; asked++) {
    char expected[64] = "";
    asparse_interrupt_listen();
    if (test_comm->rank == asked) raise(SIGUSR1);
    assert_true(asparse_interrupt_came() == (test_comm->rank == asked));
    assert_int_equal(asparse_interrupt_agree(test_comm), ASPARSE_INTERRUPTED);
    if (test_comm->size > 1) snprintf(expected, sizeof expected, "rank %d: ", asked);
    strcat(expected, "ended early on SIGUSR1, after sleeping");
    assert_string_equal(asparse_error_message(), expected);
    asparse_error_clear();
  }
}

/* Steps of unequal length, a signal at any time within them: the number of steps done is the same everywhere. */
static void same_step_everywhere(void **unused) {
  (void)unused;
  for (int asked = 0; asked < test_comm->size; asked++) {
    int64_t steps[2] = {0, 0};
    asparse_interrupt_listen();
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    const struct itimerspec when = {.it_value = {.tv_nsec = 7000000}};
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    if (test_comm->rank == asked) assert_int_equal(timer_settime(timer, 0, &when, NULL), 0);
    while (asparse_interrupt_agree(test_comm) == ASPARSE_OK) {
      nanosleep(&(struct timespec){.tv_nsec = 100000 * (1 + (steps[0] + test_comm->rank) % 3)}, NULL);
      steps[0]++;
    }
    asparse_error_clear();
    timer_delete(timer);
    steps[1] = -steps[0];
    const int64_t own = steps[0];
    assert_int_equal(asparse_comm_max(test_comm, steps, 2), ASPARSE_OK);
    assert_true(steps[0] == own && -steps[1] == own && own > 0);
  }
}

/* A rank that failed counts more than one that was asked. */
static void failures_count_more(void **unused) {
  (void)unused;
  asparse_interrupt_listen();
  raise(SIGUSR1);
  const asparse_status own = last_rank() ? ASPARSE_FAIL(ASPARSE_ERR_VERIFY, "wrong") : ASPARSE_OK;
  assert_int_equal(asparse_comm_agree(test_comm, asparse_interrupt_check(test_comm, own)), ASPARSE_ERR_VERIFY);
  assert_non_null(strstr(asparse_error_message(), "wrong"));
  asparse_error_clear();
}

static int group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(unasked), cmocka_unit_test(one_is_enough),
                                     cmocka_unit_test(same_step_everywhere), cmocka_unit_test(failures_count_more)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
