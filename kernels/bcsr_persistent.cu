/* Option of the BCSR ladder: the pipeline with persistent CTAs, one a multiprocessor, each taking every so many tiles.
 * The producer runs ahead into the next tile while the consumers store, so C has shared memory of its own.
 * Measured on one H200 against the pipeline as chosen: 18944 × 3584 at 90 % empty blocks 8 % faster at n = 1024 and
 * 4096, at 95 % 9 and 1 %; up to 27 % slower where tiles are few, 5 to 18 % slower on the chosen wide tiles at 50 %.
 */
#include "kernels/bcsr_launch.h"
#include "kernels/bcsr_ring.cuh"
#include "kernels/bcsr_tensor_maps.h"

namespace {

using namespace bcsr;

constexpr int kHalf = 128; /* columns of a consumer */
constexpr int kTile = kConsumers * kHalf;
constexpr int kStages = 4;
constexpr int kThreads = (kConsumers + 1) * kWarpgroup;
constexpr int kHalfBoxes = kHalf / kBoxColumnsC; /* of C */
constexpr int kRingBytes = kStages * kStageBytes<kHalf>;
constexpr int kSharedBytes = 1024 + kRingBytes + kConsumers * kHalfBoxes * kBoxBytes + 2 * kStages * 8;
static_assert(kSharedBytes <= kSharedLimit, "ring and C do not fit");

/* Tile t is block row t % n_block_rows of column tile t / n_block_rows: CTAs that run together read the same columns
 * of B. */
__global__ void __launch_bounds__(kThreads, 1)
    persistent_kernel(const __grid_constant__ CUtensorMap blocks_map, const __grid_constant__ CUtensorMap b_map,
                      const __grid_constant__ CUtensorMap c_map, bool c_by_boxes, int64_t n_tiles, asparse_cuda_bcsr a,
                      asparse_cuda_dense_pair bc) {
  extern __shared__ uint8_t unaligned[];
  uint8_t *shared = unaligned + (1024 - sm90::shared_address(unaligned) % 1024) % 1024;
  uint8_t *c_boxes = shared + kRingBytes;
  uint64_t *barriers = reinterpret_cast<uint64_t *>(c_boxes + kConsumers * kHalfBoxes * kBoxBytes);
  const Ring ring = {shared, barriers, barriers + kStages};
  const int warpgroup = threadIdx.x / kWarpgroup;
  if (threadIdx.x == 0) ring_init<kStages>(ring);
  __syncthreads();

  Place<kStages> place;
  if (warpgroup == kConsumers) {
    sm90::registers_give<24>();
    if (threadIdx.x >= kConsumers * kWarpgroup + 32) return;
    for (int64_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
      const int64_t block_row = tile % a.n_block_rows;
      produce<kHalf>(ring, place, &blocks_map, &b_map, a.block_col_idx, a.block_row_ptr[block_row],
                     a.block_row_ptr[block_row + 1], static_cast<int>(tile / a.n_block_rows) * kTile);
    }
  } else {
    sm90::registers_take<240>();
    auto box_at = [&](int box) { return c_boxes + (warpgroup * kHalfBoxes + box) * kBoxBytes; };
    for (int64_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
      const int64_t block_row = tile % a.n_block_rows;
      const int column = static_cast<int>(tile / a.n_block_rows) * kTile + warpgroup * kHalf;
      float d[kHalf / 2];
      consume<kHalf>(d, ring, place, warpgroup, a.block_row_ptr[block_row + 1] - a.block_row_ptr[block_row]);
      store_half<kHalf>(d, box_at, warpgroup, c_by_boxes, &c_map, block_row, column, a.m, bc);
    }
    if (threadIdx.x % kWarpgroup == 0) sm90::tma_store_wait();
  }
}

} // namespace

cudaError_t asparse_bcsr_persistent(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc,
                                    cudaStream_t stream) {
  cudaError_t error = bcsr_check(a, bc);
  if (error != cudaSuccess) return error;
  if (bcsr_is_empty(a, bc)) return bcsr_zero(a, bc, stream);
  if (!asparse_tma_can_address(bc->b, a->k, bc->n, bc->ldb * int64_t{sizeof(uint16_t)}))
    return cudaErrorMisalignedAddress;
  const bool c_by_boxes = asparse_tma_can_address(bc->c, a->m, bc->n, bc->ldc * int64_t{sizeof(float)});
  CUtensorMap blocks_map, b_map, c_map = {};
  if ((error = asparse_bcsr_map_blocks(&blocks_map, a)) != cudaSuccess) return error;
  if ((error = asparse_bcsr_map_b(&b_map, a->k, bc)) != cudaSuccess) return error;
  if (c_by_boxes && (error = asparse_bcsr_map_c(&c_map, a->m, bc)) != cudaSuccess) return error;
  int device, multiprocessors;
  if ((error = cudaGetDevice(&device)) != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error = cudaFuncSetAttribute(persistent_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error != cudaSuccess) return error;

  const int64_t n_tiles = (bc->n + kTile - 1) / kTile * a->n_block_rows;
  const int ctas = static_cast<int>(n_tiles < multiprocessors ? n_tiles : multiprocessors);
  persistent_kernel<<<ctas, kThreads, kSharedBytes, stream>>>(blocks_map, b_map, c_map, c_by_boxes, n_tiles, *a, *bc);
  return cudaGetLastError();
}
