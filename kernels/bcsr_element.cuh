/* Single elements of the BCSR kernels: storing one, and computing one from stored entries alone. */
#ifndef ASPARSE_BCSR_ELEMENT_CUH
#define ASPARSE_BCSR_ELEMENT_CUH

#include <cuda_bf16.h>

#include "kernels/cuda_bcsr.h"

namespace bcsr {

constexpr int kBlock = ASPARSE_CUDA_BLOCK;

__device__ __forceinline__ float from_bf16(uint16_t x) { return __uint_as_float(static_cast<uint32_t>(x) << 16); }

__device__ __forceinline__ float load(const float *c) { return *c; }
__device__ __forceinline__ float load(const __nv_bfloat16 *c) { return __bfloat162float(*c); }
__device__ __forceinline__ void store(float *c, float x) { *c = x; }
__device__ __forceinline__ void store(__nv_bfloat16 *c, float x) { *c = __float2bfloat16_rn(x); }

/* Two neighbours, c aligned to both. */
__device__ __forceinline__ void store_pair(float *c, float x, float y) {
  *reinterpret_cast<float2 *>(c) = make_float2(x, y);
}
__device__ __forceinline__ void store_pair(__nv_bfloat16 *c, float x, float y) {
  *reinterpret_cast<__nv_bfloat162 *>(c) = __floats2bfloat162_rn(x, y);
}

/* (A·B)(row, column) as CSR arithmetic has it. A column of the block past k has no entry, so B is read inside only. */
static __device__ __noinline__ float stored_sum(const asparse_cuda_bcsr &a, const asparse_cuda_dense_pair &bc,
                                                int64_t row, int64_t column) {
  float sum = 0.0f;
  for (int64_t block = a.block_row_ptr[row / kBlock]; block < a.block_row_ptr[row / kBlock + 1]; block++) {
    const int64_t line = block * kBlock + row % kBlock, first_k = int64_t{a.block_col_idx[block]} * kBlock;
    for (uint64_t left = a.entry_mask[line]; left != 0; left &= left - 1) {
      const int c = __ffsll(left) - 1;
      sum = fmaf(from_bf16(a.blocks[line * kBlock + c]), from_bf16(bc.b[(first_k + c) * bc.ldb + column]), sum);
    }
  }
  return sum;
}

} // namespace bcsr

#endif
