/* Warp specialisation: the ring of stages between a producer warp and two consumer warpgroups, shared by the
 * pipelined steps of the BCSR ladder. A CTA computes 64 × 2·N tiles of C; each consumer multiplies by N columns. Two
 * barriers a stage: full (bytes have arrived), empty (both consumers are done with it). Their phase is the parity of
 * the number of rounds through the ring. */
#ifndef ASPARSE_BCSR_RING_CUH
#define ASPARSE_BCSR_RING_CUH

#include "kernels/bcsr_tile.cuh"

namespace bcsr {

constexpr int kConsumers = 2;
constexpr int kSharedLimit = 227 * 1024; /* of a multiprocessor, for all its CTAs */

/* Bytes of a stage: [block of A | B of consumer 0 | B of consumer 1]. */
template <int N> constexpr int kSliceBytes = N / kBoxColumnsB *kBoxBytes;
template <int N> constexpr int kStageBytes = kBoxBytes + kConsumers *kSliceBytes<N>;

struct Ring {
  uint8_t *stages;        /* [Stages] of kStageBytes, aligned to 1024 */
  uint64_t *full, *empty; /* [Stages] */
};

/* Where a warp stands in the ring. */
template <int Stages> struct Place {
  int stage = 0, round = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == Stages) stage = 0, round ^= 1;
  }
};

/* By one thread, before the CTA's first __syncthreads. */
template <int Stages> __device__ __forceinline__ void ring_init(const Ring &ring) {
  for (int stage = 0; stage < Stages; stage++) {
    sm90::barrier_init(ring.full + stage, 1);
    sm90::barrier_init(ring.empty + stage, kConsumers * kWarpgroup / 32);
  }
  sm90::fence_barrier_init();
}

/* Loads the operands of one tile. Runs as one whole warp; lane 0 issues the copies, the lanes fetch column indices 32
 * at a time. */
template <int N, int Stages>
__device__ __forceinline__ void produce(const Ring &ring, Place<Stages> &place, const CUtensorMap *blocks_map,
                                        const CUtensorMap *b_map, const int32_t *block_col_idx, int64_t begin,
                                        int64_t end, int first_column) {
  const int lane = threadIdx.x % 32;
  int indices = 0;
  for (int64_t block = begin; block < end; block++, place.advance()) {
    const int position = static_cast<int>(block - begin) % 32;
    if (position == 0 && block + lane < end) indices = __ldg(block_col_idx + block + lane);
    const int block_column = __shfl_sync(0xffffffff, indices, position);
    if (lane == 0) {
      uint8_t *to = ring.stages + place.stage * kStageBytes<N>;
      uint64_t *full = ring.full + place.stage;
      sm90::barrier_wait(ring.empty + place.stage, place.round ^ 1);
      sm90::barrier_arrive_expect(full, kStageBytes<N>);
      sm90::tma_load(to, blocks_map, 0, static_cast<int>(block) * kBlock, full);
#pragma unroll
      for (int box = 0; box < kConsumers * N / kBoxColumnsB; box++)
        sm90::tma_load(to + (1 + box) * kBoxBytes, b_map, first_column + box * kBoxColumnsB, block_column * kBlock,
                       full);
    }
    __syncwarp();
  }
}

/* d = sum over the blocks of one tile. A stage is handed back once the multiplication after it has been issued and its
 * own has finished, so that the tensor cores always have the next one waiting. */
template <int N, int Stages>
__device__ __forceinline__ void consume(float (&d)[N / 2], const Ring &ring, Place<Stages> &place, int consumer,
                                        int64_t n_blocks) {
  const bool speaks = threadIdx.x % 32 == 0; /* one arrival a warp */
  int previous = 0;
  clear(d);
  for (int64_t i = 0; i < n_blocks; i++, place.advance()) {
    const uint8_t *from = ring.stages + place.stage * kStageBytes<N>;
    sm90::barrier_wait(ring.full + place.stage, place.round);
    multiply_block<N>(d, from, from + kBoxBytes + consumer * kSliceBytes<N>);
    sm90::wgmma_wait<1>();
    if (i > 0 && speaks) sm90::barrier_arrive(ring.empty + previous);
    previous = place.stage;
  }
  sm90::wgmma_wait<0>();
  if (n_blocks > 0 && speaks) sm90::barrier_arrive(ring.empty + previous);
}

/* C through shared memory and the copy engine: whole 128-byte lines, clipped to [m × n] by the tensor map. box_at(i):
 * room for box i of N / 32, which nothing else writes or reads. Its caller's thread 0 ends with tma_store_wait. */
template <int N, typename BoxAt>
__device__ __forceinline__ void store_boxes(const float (&d)[N / 2], BoxAt box_at, int consumer,
                                            const CUtensorMap *c_map, int row, int column) {
  const int thread = threadIdx.x % kWarpgroup;
  const int box_row = thread / 32 * 16 + thread % 32 / 4;
  if (thread == 0) sm90::tma_store_wait();
  sm90::named_barrier(1 + consumer, kWarpgroup); /* earlier stores and multiplications have read the boxes */
#pragma unroll
  for (int j = 0; j < N / 8; j++) {
    uint8_t *box = box_at(j / 4);
    const int byte = (j % 4 * 8 + thread % 4 * 2) * 4;
    *reinterpret_cast<float2 *>(box + swizzled(box_row, byte)) = make_float2(d[4 * j], d[4 * j + 1]);
    *reinterpret_cast<float2 *>(box + swizzled(box_row + 8, byte)) = make_float2(d[4 * j + 2], d[4 * j + 3]);
  }
  sm90::fence_async_proxy();
  sm90::named_barrier(1 + consumer, kWarpgroup);
  if (thread == 0) {
#pragma unroll
    for (int box = 0; box < N / kBoxColumnsC; box++)
      sm90::tma_store(c_map, column + box * kBoxColumnsC, row, box_at(box));
    sm90::tma_store_commit();
  }
}

/* One consumer's half of a tile: by boxes where C allows it, else by the threads. The copy engine clips stores to
 * whole 16-byte pieces, so a ragged edge is left to the threads too. */
template <int N, typename BoxAt>
__device__ __forceinline__ void store_half(const float (&d)[N / 2], BoxAt box_at, int consumer, bool c_by_boxes,
                                           const CUtensorMap *c_map, int64_t block_row, int column, int m,
                                           const asparse_cuda_dense_pair &bc) {
  if (column >= bc.n) return;
  if (c_by_boxes && (column + N <= bc.n || bc.n % 4 == 0))
    store_boxes<N>(d, box_at, consumer, c_map, static_cast<int>(block_row) * kBlock, column);
  else
    store_direct<N>(d, threadIdx.x % kWarpgroup, block_row * kBlock, column, m, static_cast<int>(bc.n), bc.c, bc.ldc);
}

} // namespace bcsr

#endif
