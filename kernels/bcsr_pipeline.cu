/* Last step of the BCSR ladder: warp specialisation (bcsr_ring.cuh), one CTA for each tile of C. */
#include "kernels/bcsr_launch.h"
#include "kernels/bcsr_ring.cuh"
#include "kernels/bcsr_tensor_maps.h"

namespace {

using namespace bcsr;

/* N: columns of a consumer; Stages: of the ring. */
template <int N, int Stages> struct Pipeline {
  static constexpr int kTile = kConsumers * N;
  static constexpr int kSharedBytes = 1024 + Stages * kStageBytes<N> + 2 * Stages * 8; /* 1024: room to align */
  /* Two CTAs share a multiprocessor where accumulators and ring are small enough (1024 is what a CTA reserves). Then
   * one stores C while the other multiplies. */
  static constexpr int kCtas = N <= 128 && 2 * (kSharedBytes + 1024) <= kSharedLimit ? 2 : 1;
  /* One CTA: the producer is a whole warpgroup, as setmaxnreg requires, and gives its registers to the consumers:
   * 128 · 24 + 256 · 240 ≤ 65,536. Two CTAs: a lone warp, and 112 registers for every thread are enough. */
  static constexpr bool kMovesRegisters = kCtas == 1;
  static constexpr int kThreads = kConsumers * kWarpgroup + (kMovesRegisters ? kWarpgroup : 32);
  static_assert(Stages >= 2, "C passes through the consumer's slices of two stages");
  static_assert(kSharedBytes <= kSharedLimit, "the ring does not fit");
};

template <int N, int Stages>
__global__ void __launch_bounds__((Pipeline<N, Stages>::kThreads), (Pipeline<N, Stages>::kCtas))
    pipeline_kernel(const __grid_constant__ CUtensorMap blocks_map, const __grid_constant__ CUtensorMap b_map,
                    const __grid_constant__ CUtensorMap c_map, bool c_by_boxes, asparse_cuda_bcsr a,
                    asparse_cuda_dense_pair bc) {
  using P = Pipeline<N, Stages>;
  extern __shared__ uint8_t unaligned[];
  uint8_t *shared = unaligned + (1024 - sm90::shared_address(unaligned) % 1024) % 1024;
  uint64_t *barriers = reinterpret_cast<uint64_t *>(shared + Stages * kStageBytes<N>);
  const Ring ring = {shared, barriers, barriers + Stages};
  const int warpgroup = threadIdx.x / kWarpgroup;
  const int first_column = blockIdx.y * P::kTile;

  if (threadIdx.x == 0) {
    ring_init<Stages>(ring);
    sm90::tma_prefetch(&blocks_map);
    sm90::tma_prefetch(&b_map);
    if (c_by_boxes) sm90::tma_prefetch(&c_map);
  }
  const int64_t begin = a.block_row_ptr[blockIdx.x], end = a.block_row_ptr[blockIdx.x + 1];
  __syncthreads();

  Place<Stages> place;
  if (warpgroup == kConsumers) {
    if constexpr (P::kMovesRegisters) sm90::registers_give<24>();
    if (threadIdx.x < kConsumers * kWarpgroup + 32)
      produce<N>(ring, place, &blocks_map, &b_map, a.block_col_idx, begin, end, first_column);
  } else {
    if constexpr (P::kMovesRegisters) sm90::registers_take<240>();
    float d[N / 2];
    consume<N>(d, ring, place, warpgroup, end - begin);
    /* C passes through the consumer's own slices of the first stages: no one else reads them, all copies to them have
     * been consumed. */
    constexpr int kBoxesInSlice = kSliceBytes<N> / kBoxBytes;
    uint8_t *slices = ring.stages + kBoxBytes + warpgroup * kSliceBytes<N>;
    auto box_at = [&](int box) {
      return slices + box / kBoxesInSlice * kStageBytes<N> + box % kBoxesInSlice * kBoxBytes;
    };
    store_half<N>(d, box_at, warpgroup, c_by_boxes, &c_map, blockIdx.x, first_column + warpgroup * N, a.m, bc);
    if (threadIdx.x % kWarpgroup == 0) sm90::tma_store_wait();
  }
}

template <int N, int Stages>
cudaError_t launch(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
  using P = Pipeline<N, Stages>;
  dim3 grid;
  if (!bcsr_grid(a, bc->n, P::kTile, &grid)) return cudaErrorInvalidValue;
  const bool c_by_boxes = asparse_tma_can_address(bc->c, a->m, bc->n, bc->ldc * int64_t{sizeof(float)});
  CUtensorMap blocks_map, b_map, c_map = {};
  cudaError_t error;
  if ((error = asparse_bcsr_map_blocks(&blocks_map, a)) != cudaSuccess) return error;
  if ((error = asparse_bcsr_map_b(&b_map, a->k, bc)) != cudaSuccess) return error;
  if (c_by_boxes && (error = asparse_bcsr_map_c(&c_map, a->m, bc)) != cudaSuccess) return error;
  error =
      cudaFuncSetAttribute(pipeline_kernel<N, Stages>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::kSharedBytes);
  if (error != cudaSuccess) return error;

  pipeline_kernel<N, Stages>
      <<<grid, P::kThreads, P::kSharedBytes, stream>>>(blocks_map, b_map, c_map, c_by_boxes, *a, *bc);
  return cudaGetLastError();
}

struct Compiled {
  asparse_bcsr_pipeline_config config;
  cudaError_t (*launch)(const asparse_cuda_bcsr *, const asparse_cuda_dense_pair *, cudaStream_t);
};

template <int N, int Stages> constexpr Compiled compile() {
  return {{Pipeline<N, Stages>::kTile, Stages}, launch<N, Stages>};
}

const Compiled compiled[ASPARSE_BCSR_PIPELINE_CONFIGS] = {compile<64, 4>(),  compile<128, 2>(), compile<128, 3>(),
                                                          compile<128, 4>(), compile<128, 5>(), compile<192, 4>(),
                                                          compile<256, 2>(), compile<256, 3>()};

} // namespace

asparse_bcsr_pipeline_config asparse_bcsr_pipeline_compiled(int i) { return compiled[i].config; }

/* Measured on one H200 over 18944 × 3584 and 3584 × 18944 with 50, 90, 95 and 99 % of the blocks empty, n = 256, 1024,
 * 4096. Below 8 blocks a row the ends of tiles dominate and two CTAs a multiprocessor win (256 × 2 is 9 to 23 % faster
 * than 256 × 5 at n ≥ 1024), narrow ones where tiles are few (128 × 4 is 4 to 13 % faster than 256 × 2 at 200 to 300
 * tiles). Above 16 the wide tile wins (512 × 3 is 3 to 9 % faster than 256 × 5 at n = 1024), since it reads A less
 * often. Fewer than 100 tiles leave multiprocessors idle (128 × 4 is 14 to 16 % faster than 256 × 5 at 56 block rows
 * and n = 256). */
asparse_bcsr_pipeline_config asparse_bcsr_pipeline_choose(const asparse_cuda_bcsr *a, int64_t n) {
  static const asparse_bcsr_pipeline_config preferred[3][4] = {
      {{256, 2}, {128, 4}, {384, 4}, {512, 3}},  /* short block rows */
      {{256, 5}, {128, 4}, {384, 4}, {512, 3}},  /* between */
      {{512, 3}, {256, 5}, {384, 4}, {128, 4}}}; /* long */
  const int64_t rows = a->n_block_rows;
  const int length = a->n_blocks < 8 * rows ? 0 : a->n_blocks < 16 * rows ? 1 : 2;
  const int64_t enough_tiles = length == 0 ? 600 : 100;
  asparse_bcsr_pipeline_config best = {128, 4};
  int64_t least = INT64_MAX;
  for (asparse_bcsr_pipeline_config candidate : preferred[length]) {
    /* padded columns = ⌈n / tile⌉ · tile; 128 divides every tile, so it is never padded more than another */
    const int64_t tiles = (n + candidate.tile_columns - 1) / candidate.tile_columns;
    const bool fills = tiles * rows >= enough_tiles || candidate.tile_columns == 128;
    if (fills && tiles * candidate.tile_columns < least) best = candidate, least = tiles * candidate.tile_columns;
  }
  return best;
}

cudaError_t asparse_bcsr_pipeline(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc,
                                  asparse_bcsr_pipeline_config config, cudaStream_t stream) {
  cudaError_t error = bcsr_check(a, bc);
  if (error != cudaSuccess) return error;
  if (bcsr_is_empty(a, bc)) return bcsr_zero(a, bc, stream);
  if (!asparse_tma_can_address(bc->b, a->k, bc->n, bc->ldb * int64_t{sizeof(uint16_t)}))
    return cudaErrorMisalignedAddress;

  for (const Compiled &candidate : compiled)
    if (candidate.config.tile_columns == config.tile_columns && candidate.config.stages == config.stages)
      return candidate.launch(a, bc, stream);
  return cudaErrorInvalidValue;
}
