/* Kernels: C = A·B on one rank. No MPI here.
 *
 * A backend is a small table of functions; the plan knows no other way to compute. */
#ifndef ASPARSE_KERNELS_H
#define ASPARSE_KERNELS_H

#include "base/shard.h"

typedef struct asparse_backend {
  const char *name;

  /* C(rows, :) = A(rows, :)·B, or C += A·B when accumulate; overwrites whatever C held otherwise
   * (beta = 0, also over NaN). Rows are those of units [unit_begin, unit_end): a unit is a row of
   * CSR, a window of WCSR, a block row of BCSR; asparse_shard_units(a) of them.
   *   b: [k × n], ldb ≥ n, of the shard's dtype;  c: [m × n], ldc ≥ n, of the result dtype.
   * What it computes equals CSR arithmetic: padding never turns Inf or NaN of B into NaN of C.
   * The sum of a row runs in column order, so a result does not depend on threads or units. */
  asparse_status (*multiply)(const asparse_shard *a, int64_t unit_begin, int64_t unit_end, int64_t n, const void *b,
                             int64_t ldb, void *c, int64_t ldc, bool accumulate);

  /* packed(i, :) = b(rows[i], :), packed [n_rows × n] with ld n; rows NULL: rows 0 … n_rows-1. */
  asparse_status (*pack)(asparse_dtype dtype, int64_t n_rows, const int32_t *rows, int64_t n, const void *b,
                         int64_t ldb, void *packed);
} asparse_backend;

/* The backend of that kind, or ASPARSE_ERR_USAGE/DEVICE with a message that says what is missing
 * (this build has no CUDA; no GPU is visible). AUTO takes the best one there is. */
asparse_status asparse_backend_get(asparse_backend_kind kind, const asparse_backend **backend);

/* Units of a shard: rows (CSR), windows (WCSR), block rows (BCSR). */
int64_t asparse_shard_units(const asparse_shard *a);

/* Name of the instruction set the host kernels run with: "avx512", "avx2", "baseline". */
const char *asparse_host_isa(void);

/* ---- choice ------------------------------------------------------------------------------- */

/* What the cost model knows of a rank-local matrix, counted from the matrix. */
typedef struct asparse_profile {
  int64_t m, k, n;
  int64_t nnz;
  asparse_dtype dtype;
  int64_t window_columns[4]; /* Σ over windows of distinct columns, heights 8, 16, 32, 64 */
  int64_t window_padded[4];  /* the same with each window padded to whole tiles of 16 */
  int64_t window_widest[4];  /* most distinct columns of a window */
  int64_t blocks[3];         /* non-empty blocks, sizes 16, 32, 64 */
  int64_t longest_row;       /* most entries of a row */
} asparse_profile;

typedef struct asparse_kernel_config {
  asparse_format format; /* never AUTO */
  int32_t unit;          /* window height or block size; 1 for CSR */
  double predicted_seconds;
  const char *kernel; /* on a GPU: its name in the table of device kernels; NULL on the host */
} asparse_kernel_config;

/* Rates of one rank of this machine: one thread's, measured once per process in its own processor
 * time (so that a busy machine does not distort them), times the threads of the rank. */
typedef struct asparse_host_rates {
  int threads;
  double bytes_per_second;    /* streaming */
  double flops_per_second[3]; /* by dtype: CSR with B rows in the first-level cache, multiply-add = 2 */
} asparse_host_rates;

enum { ASPARSE_RATE_COLUMNS = 64 }; /* columns of B that flops_per_second was measured with */

/* Pure: the cheapest of CSR, WCSR × heights, BCSR × sizes by predicted time, or the cheapest of the
 * wanted format (AUTO = any) with the wanted unit (0 = any). All candidates' predictions go to
 * candidates[*n_candidates] when given (room for 8). */
asparse_kernel_config asparse_choose(const asparse_profile *profile, const asparse_host_rates *rates,
                                     asparse_format wanted, int32_t wanted_unit, asparse_kernel_config *candidates,
                                     int *n_candidates);

/* The same for a GPU (see choose_device.c), with the wanted kernel by name (NULL = any). Room for
 * ASPARSE_DEVICE_CANDIDATES; predicted_seconds is infinite when nothing wanted fits. */
enum { ASPARSE_DEVICE_CANDIDATES = 16 };
asparse_kernel_config asparse_choose_device(const asparse_profile *profile, asparse_format wanted, int32_t wanted_unit,
                                            const char *wanted_kernel, asparse_kernel_config *candidates,
                                            int *n_candidates);

/* Pure. The least time a GPU can take, by what must be gathered, moved and multiplied whatever the kernel. */
double asparse_device_least_seconds(const asparse_profile *profile);

/* Measures on the first call (some 10 ms); ERR_MEMORY when the small test problem cannot be allocated. */
asparse_status asparse_host_rates_get(asparse_host_rates *rates);

/* ---- reference ---------------------------------------------------------------------------- */

/* The oracle: C = A·B by a plain triple loop in fp64, c [m × n] with ld n, whatever the dtypes. */
asparse_status asparse_reference_multiply(const asparse_local_csr *a, const asparse_dense *b, double *c);

#endif
