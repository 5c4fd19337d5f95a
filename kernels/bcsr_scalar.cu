/* First step of the BCSR ladder: CUDA cores. A CTA computes a 64 × 64 tile of C; each of its 256 threads 4 × 4. */
#include "kernels/bcsr_element.cuh"
#include "kernels/bcsr_launch.h"

namespace {

using namespace bcsr;

constexpr int kTile = 64;
constexpr int kThreads = 256;
constexpr int kPitch = kTile + 4; /* one 16-byte access of padding, against bank conflicts */

/* c(row, column) = or += x. */
__device__ __forceinline__ void store_element(const asparse_cuda_dense_pair &bc, int64_t row, int64_t column, float x) {
  const int64_t at = row * bc.ldc + column;
  if (bc.c_dtype == ASPARSE_BF16) {
    __nv_bfloat16 *c = static_cast<__nv_bfloat16 *>(bc.c) + at;
    store(c, bc.accumulate ? load(c) + x : x);
  } else {
    float *c = static_cast<float *>(bc.c) + at;
    store(c, bc.accumulate ? load(c) + x : x);
  }
}

__global__ void __launch_bounds__(kThreads)
    scalar_kernel(const __grid_constant__ asparse_cuda_bcsr a, const __grid_constant__ asparse_cuda_dense_pair bc) {
  __shared__ __align__(16) float a_tile[kBlock][kPitch]; /* transposed: [k][row] */
  __shared__ __align__(16) float b_tile[kBlock][kPitch]; /* [k][column] */
  const int64_t block_row = blockIdx.x;
  const int first_column = blockIdx.y * kTile;
  const int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
  float sum[4][4] = {};

  for (int64_t block = a.block_row_ptr[block_row]; block < a.block_row_ptr[block_row + 1]; block++) {
    const uint16_t *values = a.blocks + block * kBlock * kBlock;
    const int64_t first_k = int64_t{a.block_col_idx[block]} * kBlock;
    for (int i = threadIdx.x; i < kBlock * kBlock; i += kThreads) {
      a_tile[i % kBlock][i / kBlock] = from_bf16(values[i]);
      const int64_t b_row = first_k + i / kTile;
      const int b_column = first_column + i % kTile;
      const bool inside = b_row < a.k && b_column < bc.n;
      b_tile[i / kTile][i % kTile] = inside ? from_bf16(bc.b[b_row * bc.ldb + b_column]) : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < kBlock; k++) {
      const float4 x = *reinterpret_cast<const float4 *>(&a_tile[k][row]);
      const float4 y = *reinterpret_cast<const float4 *>(&b_tile[k][column]);
      const float left[4] = {x.x, x.y, x.z, x.w}, right[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int64_t c_row = block_row * kBlock + row + i;
      const int c_column = first_column + column + j;
      if (c_row >= a.m || c_column >= bc.n) continue;
      const bool nan = sum[i][j] != sum[i][j]; /* of padding zeros, or of A·B itself */
      store_element(bc, c_row, c_column, nan ? stored_sum(a, bc, c_row, c_column) : sum[i][j]);
    }
}

} // namespace

cudaError_t asparse_bcsr_scalar(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
  bool done;
  cudaError_t error = bcsr_begin(a, bc, false, stream, &done);
  if (error != cudaSuccess || done) return error;
  dim3 grid;
  if (!bcsr_grid(a, bc->n, kTile, &grid)) return cudaErrorInvalidValue;

  scalar_kernel<<<grid, kThreads, 0, stream>>>(*a, *bc);
  return cudaGetLastError();
}
