/* Packing rows of B on a GPU, for the halo exchange. */
#ifndef ASPARSE_CUDA_PACK_H
#define ASPARSE_CUDA_PACK_H

#include <cuda_runtime_api.h>

#include "asparse_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues packed(i, :) = b(rows[i], :) on stream; d_rows NULL: rows 0 … n_rows-1.
 *   d_rows: [n_rows];  d_b: rows of n elements of dtype, ldb ≥ n apart;  d_packed: [n_rows × n], ld n.
 * Copies 16, 8, 4 or 2 bytes a thread, the widest that the pointers, ldb and n allow.
 * cudaErrorInvalidValue for arguments that break these rules, else the launch's own error. */
cudaError_t asparse_cuda_pack(asparse_dtype dtype, int64_t n_rows, const int32_t *d_rows, int64_t n, const void *d_b,
                              int64_t ldb, void *d_packed, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
