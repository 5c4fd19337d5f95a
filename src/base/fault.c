#include "base/fault.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void raise_after(int signal, long milliseconds) {
  if (milliseconds <= 0) {
    raise(signal);
    return;
  }
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal};
  struct itimerspec when = {.it_value = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000}};
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) timer_settime(timer, 0, &when, NULL);
}

void asparse_fault_point(int rank, const char *place) {
  const char *fault = getenv("ASPARSE_FAULT");
  char action[8], wanted[32];
  int failing = -1;
  long milliseconds = 0;
  if (!fault || sscanf(fault, "%7[^:]:%d:%31[^:]:%ld", action, &failing, wanted, &milliseconds) < 3) return;
  if (rank != failing || strncmp(place, wanted, strlen(wanted)) != 0) return;
  if (strcmp(action, "kill") == 0) raise_after(SIGKILL, milliseconds);
  if (strcmp(action, "crash") == 0) raise_after(SIGSEGV, milliseconds);
  if (strcmp(action, "ask") == 0) raise_after(SIGUSR1, milliseconds);
  while (strcmp(action, "hang") == 0) pause();
}
