/* What the launchers of the BCSR ladder have in common. Host only. */
#ifndef ASPARSE_BCSR_LAUNCH_H
#define ASPARSE_BCSR_LAUNCH_H

#include "kernels/cuda_bcsr.h"

/* Preconditions every variant has. */
static inline cudaError_t bcsr_check(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc) {
  const int64_t block = ASPARSE_CUDA_BLOCK;
  if (a->m < 0 || a->k < 0 || a->n_block_rows != (a->m + block - 1) / block) return cudaErrorInvalidValue;
  if (a->n_blocks < 0 || a->n_blocks > INT32_MAX / block) return cudaErrorInvalidValue;
  if (bc->n < 0 || bc->n > INT32_MAX / 2 || bc->ldb < bc->n || bc->ldc < bc->n) return cudaErrorInvalidValue;
  if (reinterpret_cast<uintptr_t>(a->blocks) % 16 != 0) return cudaErrorMisalignedAddress;
  return cudaSuccess;
}

/* Nothing to multiply: no kernel is needed, C is zeroed by a copy-engine call. */
static inline bool bcsr_is_empty(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc) {
  return a->m == 0 || bc->n == 0 || a->n_blocks == 0;
}

static inline cudaError_t bcsr_zero(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc,
                                    cudaStream_t stream) {
  if (a->m == 0 || bc->n == 0) return cudaSuccess;
  return cudaMemset2DAsync(bc->c, bc->ldc * sizeof(float), 0, bc->n * sizeof(float), a->m, stream);
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
