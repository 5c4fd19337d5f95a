/* What the launchers of the BCSR ladder have in common. Host only. */
#ifndef ASPARSE_BCSR_LAUNCH_H
#define ASPARSE_BCSR_LAUNCH_H

#include "kernels/bcsr_tensor_maps.h"
#include "kernels/cuda_bcsr.h"

static inline int64_t bcsr_c_element(const asparse_cuda_dense_pair *bc) {
  return bc->c_dtype == ASPARSE_BF16 ? sizeof(uint16_t) : sizeof(float);
}

/* Preconditions every variant has. */
static inline cudaError_t bcsr_check(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc) {
  const int64_t block = ASPARSE_CUDA_BLOCK;
  if (a->m < 0 || a->k < 0 || a->n_block_rows != (a->m + block - 1) / block) return cudaErrorInvalidValue;
  if (a->n_blocks < 0 || a->n_blocks > INT32_MAX / block) return cudaErrorInvalidValue;
  if (bc->n < 0 || bc->n > INT32_MAX / 2 || bc->ldb < bc->n || bc->ldc < bc->n) return cudaErrorInvalidValue;
  if (bc->c_dtype != ASPARSE_FP32 && bc->c_dtype != ASPARSE_BF16) return cudaErrorInvalidValue;
  if (reinterpret_cast<uintptr_t>(a->blocks) % 16 != 0) return cudaErrorMisalignedAddress;
  if (reinterpret_cast<uintptr_t>(bc->c) % bcsr_c_element(bc) != 0) return cudaErrorMisalignedAddress;
  return cudaSuccess;
}

/* Checks, and the case where there is nothing to multiply: then C is zeroed by the copy engine, or left alone, and
 * *done is true. by_tma: B must be such that the copy engine can address it. */
static inline cudaError_t bcsr_begin(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, bool by_tma,
                                     cudaStream_t stream, bool *done) {
  const int64_t element = bcsr_c_element(bc);
  const cudaError_t error = bcsr_check(a, bc);
  *done = a->m == 0 || bc->n == 0 || a->n_blocks == 0;
  if (error != cudaSuccess) return error;
  if (a->m == 0 || bc->n == 0 || (*done && bc->accumulate)) return cudaSuccess;
  if (*done) return cudaMemset2DAsync(bc->c, bc->ldc * element, 0, bc->n * element, a->m, stream);
  if (by_tma && !asparse_tma_can_address(bc->b, a->k, bc->n, bc->ldb * int64_t{sizeof(uint16_t)}))
    return cudaErrorMisalignedAddress;
  return cudaSuccess;
}

/* One CTA per block row and tile of columns. Block rows run fastest, so that CTAs that run together read the same
 * columns of B; grid.y allows 65,535 tiles. */
static inline bool bcsr_grid(const asparse_cuda_bcsr *a, int64_t n, int32_t tile_columns, dim3 *grid) {
  int64_t tiles = (n + tile_columns - 1) / tile_columns;
  if (tiles > 65535) return false;
  *grid = dim3(a->n_block_rows, static_cast<unsigned>(tiles));
  return true;
}

#endif
