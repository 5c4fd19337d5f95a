/* The tile of the two steps without a pipeline, wgmma and tma: a CTA of two warpgroups computes 64 × 256 of C, each
 * warpgroup half of the columns, from one stage of shared memory. Load, multiply and wait alternate. */
#ifndef ASPARSE_BCSR_UNPIPELINED_CUH
#define ASPARSE_BCSR_UNPIPELINED_CUH

#include "kernels/bcsr_tile.cuh"

namespace bcsr {

constexpr int kHalf = 128; /* columns of a warpgroup */
constexpr int kTile = 2 * kHalf;
constexpr int kThreads = 2 * kWarpgroup;
constexpr int kStageBytes = kBoxBytes + kTile / kBoxColumnsB * kBoxBytes; /* [block of A | slice of B] */
constexpr int kSharedBytes = kSwizzlePeriod + kStageBytes;

/* load(shared, block, block_column, first_column) returns to every thread once the stage is full. */
template <typename Load>
__device__ __forceinline__ void multiply_tile(const asparse_cuda_bcsr &a, const asparse_cuda_dense_pair &bc,
                                              Load load) {
  uint8_t *shared = aligned_shared();
  const int half = threadIdx.x / kWarpgroup;
  const int64_t block_row = blockIdx.x;
  const int first_column = blockIdx.y * kTile;
  float d[kHalf / 2];
  clear(d);
  for (int64_t block = a.block_row_ptr[block_row]; block < a.block_row_ptr[block_row + 1]; block++) {
    load(shared, block, a.block_col_idx[block], first_column);
    multiply_block<kHalf>(d, block_descriptor(shared),
                          slice_descriptor(shared + kBoxBytes + half * (kHalf / kBoxColumnsB * kBoxBytes)));
    sm90::wgmma_wait<0>();
    __syncthreads();
  }
  const int64_t row = block_row * kBlock;
  const int column = first_column + half * kHalf;
  repair(d, a, bc, row, column);
  store_direct<kHalf>(d, a.m, bc, row, column);
}

} // namespace bcsr

#endif
