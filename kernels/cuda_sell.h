/* The resident kernel on a GPU: C = A·B with bf16 A and B, fp32 accumulation, columns of B held in shared memory. */
#ifndef ASPARSE_CUDA_SELL_H
#define ASPARSE_CUDA_SELL_H

#include <cuda_runtime_api.h>

#include "kernels/sell.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As asparse_sell, arrays on the device, 16-byte aligned; borrowed. */
typedef struct asparse_cuda_sell {
  int32_t m, k;
  int32_t columns, height, n_slices;
  int32_t row_groups; /* CTAs that share the same columns of B, as asparse_sell_config counts them; ≥ 1 */
  const asparse_sell_slice *slices;
  const int32_t *rows;
  const uint32_t *entries;
} asparse_cuda_sell;

/* Enqueues C = A·B (C += A·B when accumulate) on stream; allocates nothing, waits for nothing.
 *   d_b: [k × n] bf16, ldb ≥ n;  d_c: [m × n] of c_dtype (fp32, or bf16: rounded once, after adding), ldc ≥ n.
 * Fast when n and ldb are multiples of 8, rows of C start at multiples of 16 bytes, and d_b and d_c do; right in any
 * case. Reads stored entries only, so Inf and NaN in B spread as CSR arithmetic spreads them. A row is summed in an
 * order that only the layout decides: bitwise the same from run to run and for any number of row groups.
 * cudaErrorInvalidValue for arguments that break these rules, else the launch's own error. */
cudaError_t asparse_cuda_sell_multiply(const asparse_cuda_sell *a, int64_t n, const uint16_t *d_b, int64_t ldb,
                                       asparse_dtype c_dtype, void *d_c, int64_t ldc, bool accumulate,
                                       cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
