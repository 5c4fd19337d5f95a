/* Monotonic time. Local. */
#ifndef ASPARSE_CLOCK_H
#define ASPARSE_CLOCK_H

#include <time.h>

static inline double asparse_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
