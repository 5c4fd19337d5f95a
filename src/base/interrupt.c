#include "base/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t came;

static void note(int signal) {
  (void)signal;
  came = 1;
}

void asparse_interrupt_listen(void) {
  struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  came = 0;
  sigaction(SIGUSR1, &action, NULL);
}

bool asparse_interrupt_came(void) { return came != 0; }

asparse_status asparse_interrupt_check(const asparse_comm *comm, asparse_status status) {
  if (status != ASPARSE_OK || !came) return status;
  return ASPARSE_FAIL(ASPARSE_INTERRUPTED, "ended early on SIGUSR1, after %s", comm->phase);
}

asparse_status asparse_interrupt_agree(asparse_comm *comm) {
  return asparse_comm_agree(comm, asparse_interrupt_check(comm, ASPARSE_OK));
}
