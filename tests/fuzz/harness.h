/* What the fuzz targets share. A target is one function, fuzz_one; harness.c wraps it for libFuzzer and for the replay
 * of files, as one rank with a small memory budget. */
#ifndef ASPARSE_FUZZ_HARNESS_H
#define ASPARSE_FUZZ_HARNESS_H

#include "base/comm.h"

extern asparse_comm *fuzz_comm;
extern int64_t fuzz_n_accepted; /* of the reads so far */

/* The target's own: reads the input as the programs would, and checks what comes out. The harness checks afterwards
 * that nothing was leaked. */
void fuzz_one(const uint8_t *data, size_t size);

/* The path of a file that holds just these bytes, in $TMPDIR, else /dev/shm; the next call overwrites it. */
const char *fuzz_file(const void *data, size_t size);

/* A refusal says why, and is none of those that only the machine can be blamed for. With FUZZ_SAY in the environment,
 * what became of each read is printed. */
void fuzz_check_status(asparse_status status);

/* The invariants of a matrix with all its rows in one slab (whole), or of any slab: pointers monotone, columns in
 * range and ascending. */
void fuzz_check_csr(const asparse_csr *a, bool whole);

/* Ends the process, for libFuzzer or CTest to see, when the condition does not hold. */
#define FUZZ_THAT(condition)                                                                                           \
  do {                                                                                                                 \
    if (!(condition)) fuzz_fail(#condition, __FILE__, __LINE__);                                                       \
  } while (0)
void fuzz_fail(const char *condition, const char *source, int line) __attribute__((noreturn));

#endif
