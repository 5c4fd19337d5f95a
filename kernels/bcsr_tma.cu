/* Third step of the BCSR ladder: the tile of bcsr_wgmma.cu with the copy engine filling shared memory. One stage, so
 * that copy and multiplication still alternate within a CTA. */
#include "kernels/bcsr_launch.h"
#include "kernels/bcsr_tensor_maps.h"
#include "kernels/bcsr_tile.cuh"

namespace {

using namespace bcsr;

constexpr int kHalf = 128; /* columns of a warpgroup */
constexpr int kTile = 2 * kHalf;
constexpr int kThreads = 2 * kWarpgroup;
constexpr int kSliceBytes = kHalf / kBoxColumnsB * kBoxBytes;
constexpr int kStageBytes = kBoxBytes + 2 * kSliceBytes;
constexpr int kSharedBytes = 1024 + kStageBytes; /* 1024: room to align to the swizzle's period */

__global__ void __launch_bounds__(kThreads)
    tma_kernel(const __grid_constant__ CUtensorMap blocks_map, const __grid_constant__ CUtensorMap b_map,
               asparse_cuda_bcsr a, asparse_cuda_dense_pair bc) {
  extern __shared__ uint8_t unaligned[];
  __shared__ uint64_t full;
  uint8_t *shared = unaligned + (1024 - sm90::shared_address(unaligned) % 1024) % 1024;
  const int half = threadIdx.x / kWarpgroup;
  const int64_t block_row = blockIdx.x;
  const int first_column = blockIdx.y * kTile;
  float d[kHalf / 2];
  clear(d);

  if (threadIdx.x == 0) {
    sm90::barrier_init(&full, 1);
    sm90::fence_barrier_init();
  }
  __syncthreads();
  uint32_t parity = 0;
  for (int64_t block = a.block_row_ptr[block_row]; block < a.block_row_ptr[block_row + 1]; block++) {
    if (threadIdx.x == 0) {
      sm90::barrier_arrive_expect(&full, kStageBytes);
      sm90::tma_load(shared, &blocks_map, 0, static_cast<int>(block) * kBlock, &full);
      for (int box = 0; box < kTile / kBoxColumnsB; box++)
        sm90::tma_load(shared + kBoxBytes * (1 + box), &b_map, first_column + box * kBoxColumnsB,
                       a.block_col_idx[block] * kBlock, &full);
    }
    sm90::barrier_wait(&full, parity);
    parity ^= 1;
    multiply_block<kHalf>(d, shared, shared + kBoxBytes + half * kSliceBytes);
    sm90::wgmma_wait<0>();
    __syncthreads();
  }

  store_direct<kHalf>(d, threadIdx.x % kWarpgroup, block_row * kBlock, first_column + half * kHalf, a.m,
                      static_cast<int>(bc.n), bc.c, bc.ldc);
}

} // namespace

cudaError_t asparse_bcsr_tma(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
  cudaError_t error = bcsr_check(a, bc);
  if (error != cudaSuccess) return error;
  if (bcsr_is_empty(a, bc)) return bcsr_zero(a, bc, stream);
  if (!asparse_tma_can_address(bc->b, a->k, bc->n, bc->ldb * int64_t{sizeof(uint16_t)}))
    return cudaErrorMisalignedAddress;
  dim3 grid;
  if (!bcsr_grid(a, bc->n, kTile, &grid)) return cudaErrorInvalidValue;
  CUtensorMap blocks_map, b_map;
  if ((error = asparse_bcsr_map_blocks(&blocks_map, a)) != cudaSuccess) return error;
  if ((error = asparse_bcsr_map_b(&b_map, a->k, bc)) != cudaSuccess) return error;

  tma_kernel<<<grid, kThreads, kSharedBytes, stream>>>(blocks_map, b_map, *a, *bc);
  return cudaGetLastError();
}
