/* WCSR on a GPU: C = A·B with bf16 A and B, fp32 accumulation, C in fp32 or bf16. */
#ifndef ASPARSE_CUDA_WCSR_H
#define ASPARSE_CUDA_WCSR_H

#include <cuda_runtime_api.h>

#include "kernels/wcsr_work.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tasks longer than this many tiles are worth splitting. With 24, matrices of longer windows take up to 1.9 times as
 * long (FEM at height 64), RMAT ones 0-13 % longer; a small random one (2048 rows) gains up to 18 % at n = 256 (H200).
 */
enum { ASPARSE_CUDA_WCSR_TILES_PER_TASK = 64 };

/* Device pointers, laid out as in asparse_wcsr and asparse_wcsr_work, 16-byte aligned. */
typedef struct asparse_cuda_wcsr {
  int32_t m, k;
  int32_t window_height;         /* h: 8, 16, 32 or 64 */
  const int32_t *window_col_idx; /* [n_columns], -1 = padding, never read from B */
  const uint64_t *row_mask;      /* [n_columns] */
  const uint16_t *values;        /* [n_columns · h] bf16, tiles h × 16 */
  int64_t n_tiles;               /* n_columns / 16 */
  asparse_wcsr_work work;        /* counts, and device copies of its arrays */
  /* Neighbouring tasks a CTA of four warps takes: 1, 2 or 4; its warps share them by columns of 64. 4 where
   * neighbouring windows have columns in common (gathered rows shared through L1: 2-5 % on FEM), 1 on graphs (3-13 % on
   * RMAT, H200); 0: 4 for heights up to 16, else 1. n ≤ 64 takes 4, n ≤ 128 at least 2. */
  int32_t tasks_per_cta;
} asparse_cuda_wcsr;

/* Bytes of workspace a multiplication with n columns needs: 0 when no window is split. */
size_t asparse_cuda_wcsr_workspace(const asparse_cuda_wcsr *a, int64_t n);

/* Enqueues C = A·B (C += A·B when accumulate) on stream; allocates nothing, waits for nothing.
 *   d_b: [k × n] bf16, ldb ≥ n;  d_c: [m × n] of c_dtype (fp32, or bf16: rounded once, after adding), ldc ≥ n;
 *   strides in elements, ≤ INT32_MAX.
 *   d_workspace: asparse_cuda_wcsr_workspace bytes, 16-byte aligned; NULL when that is 0.
 * Fast when ldb and n are multiples of 8, ldc of 4 (8 for bf16), d_b and d_c 16-byte aligned; right in any case.
 * Equals CSR arithmetic for Inf and NaN in B, and is bitwise the same from run to run.
 * cudaErrorInvalidValue for arguments that break these rules, else the launch's own error. */
cudaError_t asparse_cuda_wcsr_multiply(const asparse_cuda_wcsr *a, int64_t n, const uint16_t *d_b, int64_t ldb,
                                       asparse_dtype c_dtype, void *d_c, int64_t ldc, bool accumulate,
                                       void *d_workspace, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
