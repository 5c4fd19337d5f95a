/* Counted, aligned allocation. Local.
 *
 * Every array of the library comes from here, so that peak memory is known, leaks are counted and
 * tests can make the n-th allocation fail (environment ASPARSE_FAIL_ALLOC=n, counted from 1, on the
 * ranks named by ASPARSE_FAIL_ALLOC_RANK or on all; or asparse_memory_fail_at). Thread-safe. */
#ifndef ASPARSE_MEMORY_H
#define ASPARSE_MEMORY_H

#include "base/status.h"

/* count · size bytes, aligned to 64; large ones are backed by huge pages where the system has them.
 * NULL when count · size overflows or memory is short, with the error recorded, naming what.
 * count = 0 gives a valid pointer. Contents are undefined. */
void *asparse_malloc(int64_t count, size_t size, const char *what);
void *asparse_calloc(int64_t count, size_t size, const char *what); /* zeroed */
void asparse_free(void *pointer);                                   /* NULL is fine */

/* TRY forms: set pointer or leave through cleanup. The pointer must be NULL or unset before. */
#define ALLOC(pointer, count)                                                                                          \
  do {                                                                                                                 \
    (pointer) = asparse_malloc((count), sizeof *(pointer), #pointer);                                                  \
    if (!(pointer)) {                                                                                                  \
      status = ASPARSE_ERR_MEMORY;                                                                                     \
      goto cleanup;                                                                                                    \
    }                                                                                                                  \
  } while (0)
#define ALLOC_ZERO(pointer, count)                                                                                     \
  do {                                                                                                                 \
    (pointer) = asparse_calloc((count), sizeof *(pointer), #pointer);                                                  \
    if (!(pointer)) {                                                                                                  \
      status = ASPARSE_ERR_MEMORY;                                                                                     \
      goto cleanup;                                                                                                    \
    }                                                                                                                  \
  } while (0)
/* For values of a run-time dtype. */
#define ALLOC_BYTES(pointer, count, size)                                                                              \
  do {                                                                                                                 \
    (pointer) = asparse_malloc((count), (size), #pointer);                                                             \
    if (!(pointer)) {                                                                                                  \
      status = ASPARSE_ERR_MEMORY;                                                                                     \
      goto cleanup;                                                                                                    \
    }                                                                                                                  \
  } while (0)
#define FREE(pointer)                                                                                                  \
  do {                                                                                                                 \
    asparse_free(pointer);                                                                                             \
    (pointer) = NULL;                                                                                                  \
  } while (0)

int64_t asparse_memory_live_blocks(void); /* allocations not yet freed */
int64_t asparse_memory_live_bytes(void);
int64_t asparse_memory_peak_bytes(void);        /* since start or the last reset */
void asparse_memory_reset_peak(void);           /* peak = live */
int64_t asparse_memory_total_allocations(void); /* since start */
void asparse_memory_fail_at(int64_t n);         /* the n-th allocation from now fails; 0 = none */

#endif
