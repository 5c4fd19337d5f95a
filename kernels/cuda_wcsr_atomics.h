/* WCSR on a GPU as published (64-row windows, WGMMA, atomics): the baseline that cuda_wcsr.h is measured against. */
#ifndef ASPARSE_CUDA_WCSR_ATOMICS_H
#define ASPARSE_CUDA_WCSR_ATOMICS_H

#include "kernels/cuda_wcsr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tiles of a task of a->work at most: windows longer than that are split. */
enum { ASPARSE_CUDA_WCSR_TILES_PER_TASK = 64 };

/* Enqueues C = A·B (C += A·B when accumulate) on stream; allocates nothing, waits for nothing.
 *   a: window_height 64, fewer than 2^25 tiles, values aligned to 16 bytes; windows that a->work splits are summed by
 *     fp32 atomics, so their rows may differ in the last bits from run to run.
 *   d_b: [k × n] bf16, ldb ≥ n;  d_c: [m × n] fp32, ldc ≥ n;  strides in elements, ≤ INT32_MAX.
 *   slice_columns: of C a CTA computes: 64, 128 or 256; 0 chooses.
 * Fast when d_b is aligned to 16 bytes, ldb a multiple of 8; d_c to 8 bytes, ldc even; right in any case.
 * Equals CSR arithmetic for Inf and NaN in B.
 * cudaErrorInvalidValue for arguments that break these rules, else the launch's own error. */
cudaError_t asparse_cuda_wcsr_atomics_multiply(const asparse_cuda_wcsr *a, int64_t n, const uint16_t *d_b, int64_t ldb,
                                               float *d_c, int64_t ldc, bool accumulate, int32_t slice_columns,
                                               cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
