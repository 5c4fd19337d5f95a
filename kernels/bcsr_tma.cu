/* Third step of the BCSR ladder: the copy engine fills shared memory. One stage, so that copy and multiplication still
 * alternate within a CTA. */
#include "kernels/bcsr_launch.h"
#include "kernels/bcsr_unpipelined.cuh"

namespace {

using namespace bcsr;

__global__ void __launch_bounds__(kThreads)
    tma_kernel(const __grid_constant__ CUtensorMap blocks_map, const __grid_constant__ CUtensorMap b_map,
               const __grid_constant__ asparse_cuda_bcsr a, const __grid_constant__ asparse_cuda_dense_pair bc) {
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    sm90::barrier_init(&full, 1);
    sm90::fence_barrier_init();
  }
  __syncthreads();
  uint32_t parity = 0;
  multiply_tile(a, bc, [&](uint8_t *shared, int64_t block, int block_column, int first_column) {
    if (threadIdx.x == 0) {
      sm90::barrier_arrive_expect(&full, kStageBytes);
      sm90::tma_load(shared, &blocks_map, 0, static_cast<int>(block) * kBlock, &full);
      for (int box = 0; box < kTile / kBoxColumnsB; box++)
        sm90::tma_load(shared + kBoxBytes * (1 + box), &b_map, first_column + box * kBoxColumnsB, block_column * kBlock,
                       &full);
    }
    sm90::barrier_wait(&full, parity);
    parity ^= 1;
  });
}

} // namespace

cudaError_t asparse_bcsr_tma(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
  bool done;
  cudaError_t error = bcsr_begin(a, bc, true, stream, &done);
  if (error != cudaSuccess || done) return error;
  dim3 grid;
  if (!bcsr_grid(a, bc->n, kTile, &grid)) return cudaErrorInvalidValue;
  CUtensorMap blocks_map, b_map;
  if ((error = asparse_bcsr_map_blocks(&blocks_map, a, kBlock)) != cudaSuccess) return error;
  if ((error = asparse_bcsr_map_b(&b_map, a->k, bc)) != cudaSuccess) return error;

  tma_kernel<<<grid, kThreads, kSharedBytes, stream>>>(blocks_map, b_map, *a, *bc);
  return cudaGetLastError();
}
