/* The host kernels, compiled once per instruction set, and the table that picks among them. */
#ifndef ASPARSE_HOST_KERNELS_H
#define ASPARSE_HOST_KERNELS_H

#include "base/shard.h"

/* One product C = A·B; every pointer is borrowed. */
typedef struct asparse_product {
  const asparse_shard *a;
  int64_t n;
  const char *b; /* [k × n] of A's dtype */
  int64_t ldb;   /* bytes from row to row */
  char *c;       /* [m × n] of the result dtype */
  int64_t ldc;   /* bytes from row to row */
  bool accumulate;
  bool stream; /* write C past the caches; rows of c are aligned to 64 bytes then */
} asparse_product;

/* Rows of units [unit_begin, unit_end), columns [col_begin, col_end) of C, on the calling thread.
 * An element's sum does not depend on the ranges it is computed with. */
typedef void asparse_host_kernel(const asparse_product *p, int64_t unit_begin, int64_t unit_end, int64_t col_begin,
                                 int64_t col_end);

typedef struct asparse_host_isa_kernels {
  const char *name;
  asparse_host_kernel *csr, *wcsr, *bcsr;
} asparse_host_isa_kernels;

/* The kernels of the instruction set in use: the best one this processor has, or the lower one that
 * the environment ASPARSE_ISA names. ERR_USAGE when it names an unknown or a missing one. */
asparse_status asparse_host_kernels_get(const asparse_host_isa_kernels **kernels);

/* Runs kernel over the units on all threads of this process. Units are cut into chunks of near-equal
 * cost; a unit larger than a chunk is shared by columns. unit_ptr [units + 1]: stored pieces before
 * each unit (row_ptr, window_row_ptr, block_row_ptr); piece_cost: work of a piece per column of B. */
void asparse_host_schedule(const asparse_product *p, asparse_host_kernel *kernel, const int64_t *unit_ptr,
                           int64_t piece_cost, int64_t unit_begin, int64_t unit_end);

#endif
