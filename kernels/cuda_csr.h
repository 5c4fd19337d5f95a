/* CSR on a GPU, at the file's own precision: C = A·B on CUDA cores. */
#ifndef ASPARSE_CUDA_CSR_H
#define ASPARSE_CUDA_CSR_H

#include <cuda_runtime_api.h>

#include "asparse_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Device pointers, laid out as in asparse_local_csr. */
typedef struct asparse_cuda_csr {
  int32_t m, k;
  asparse_dtype dtype;
  const int64_t *row_ptr;   /* [m + 1] */
  const int32_t *col_idx;   /* [row_ptr[m]] */
  const void *values;       /* [row_ptr[m]] of dtype */
  int32_t long_row;         /* rows of more entries are long: CTAs share them */
  int32_t n_long_rows;      /* as asparse_cuda_csr_long_rows counts them, or 0: no row is treated as long */
  const int32_t *long_rows; /* [n_long_rows] */
  int32_t n_used_rows;      /* rows with entries, where they are listed: enough for C += A·B */
  const int32_t *used_rows; /* [n_used_rows], NULL: all rows are gone through */
} asparse_cuda_csr;

/* Host: of how many entries on a row would hold up the others: more than 4 times the mean, and than 128 (with 256, an
 * RMAT matrix of 2^15 rows takes 1.5 times as long at n = 64, 1.1 times at 256 and 0.93 times at 1024, H200).
 *   row_ptr: [m + 1] */
int32_t asparse_cuda_csr_long_row(int32_t m, const int64_t *row_ptr);

/* Host: lists the rows of more than long_row entries and returns how many there are.
 *   row_ptr: [m + 1];  long_rows: [that many], NULL to count only. */
int32_t asparse_cuda_csr_long_rows(int32_t m, const int64_t *row_ptr, int32_t long_row, int32_t *long_rows);

/* Enqueues C = A·B (C += A·B when accumulate) on stream; allocates nothing, waits for nothing.
 *   d_b: [k × n] of a's dtype, ldb ≥ n;  d_c: [m × n] of c_dtype, ldc ≥ n: a's dtype, or fp32 for bf16. Sums of bf16
 *   run in fp32 and are rounded to bf16 once, after adding to C.
 * Rows are summed in column order (long rows: in a fixed order of segments), so a result is bitwise the same
 * from run to run. Loads are 16 bytes a lane when the base, ldb and n allow it.
 * cudaErrorInvalidValue for arguments that break these rules, else the launch's own error. */
cudaError_t asparse_cuda_csr_multiply(const asparse_cuda_csr *a, int64_t n, const void *d_b, int64_t ldb,
                                      asparse_dtype c_dtype, void *d_c, int64_t ldc, bool accumulate,
                                      cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
