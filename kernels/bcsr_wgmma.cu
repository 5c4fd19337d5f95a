/* Second step of the BCSR ladder: tensor cores, fed by the threads. */
#include "kernels/bcsr_launch.h"
#include "kernels/bcsr_unpipelined.cuh"

namespace {

using namespace bcsr;

/* Eight bf16 of a row of B from column on, zeros from column n on. */
__device__ __forceinline__ uint4 load_piece(const uint16_t *row, int column, int n, bool aligned) {
  if (aligned && column + 8 <= n) return __ldg(reinterpret_cast<const uint4 *>(row + column));
  uint32_t pair[4] = {};
#pragma unroll
  for (int i = 0; i < 8; i++)
    if (column + i < n) pair[i / 2] |= static_cast<uint32_t>(row[column + i]) << i % 2 * 16;
  return make_uint4(pair[0], pair[1], pair[2], pair[3]);
}

/* The 64 × 64 block into one box and rows first_k … of B into kTile / 64 boxes, by all threads. */
__device__ void copy_operands(uint8_t *shared, const uint16_t *block, const asparse_cuda_dense_pair &bc, int64_t k,
                              int64_t first_k, int first_column) {
  const bool aligned = bc.ldb % 8 == 0 && reinterpret_cast<uintptr_t>(bc.b) % 16 == 0;
  for (int i = threadIdx.x; i < kBlock * 8; i += kThreads)
    *reinterpret_cast<uint4 *>(shared + swizzled(i / 8, i % 8 * 16)) =
        __ldg(reinterpret_cast<const uint4 *>(block) + i);
  for (int i = threadIdx.x; i < kBlock * kTile / 8; i += kThreads) {
    const int row = i / (kTile / 8), piece = i % (kTile / 8);
    const bool inside = first_k + row < k;
    const uint16_t *b_row = bc.b + (inside ? first_k + row : 0) * bc.ldb;
    uint8_t *box = shared + kBoxBytes + piece / 8 * kBoxBytes;
    *reinterpret_cast<uint4 *>(box + swizzled(row, piece % 8 * 16)) =
        inside ? load_piece(b_row, first_column + piece * 8, static_cast<int>(bc.n), aligned) : uint4{};
  }
}

__global__ void __launch_bounds__(kThreads)
    wgmma_kernel(const __grid_constant__ asparse_cuda_bcsr a, const __grid_constant__ asparse_cuda_dense_pair bc) {
  multiply_tile(a, bc, [&](uint8_t *shared, int64_t block, int block_column, int first_column) {
    copy_operands(shared, a.blocks + block * kBlock * kBlock, bc, a.k, int64_t{block_column} * kBlock, first_column);
    sm90::fence_async_proxy();
    __syncthreads();
  });
}

} // namespace

cudaError_t asparse_bcsr_wgmma(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
  bool done;
  cudaError_t error = bcsr_begin(a, bc, false, stream, &done);
  if (error != cudaSuccess || done) return error;
  dim3 grid;
  if (!bcsr_grid(a, bc->n, kTile, &grid)) return cudaErrorInvalidValue;

  wgmma_kernel<<<grid, kThreads, kSharedBytes, stream>>>(*a, *bc);
  return cudaGetLastError();
}
