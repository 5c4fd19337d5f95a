/* Warp specialisation: the ring of stages between a producer warp and the consumer warpgroups. Two barriers a stage:
 * full (bytes have arrived), empty (all consumers of the cluster are done with it). Their phase is the parity of the
 * number of rounds through the ring.
 *
 * A stage serves one step: a block column of the tile's block rows, as a slice of B and the blocks of those that have
 * one there. A cluster's CTAs compute the same block rows in neighbouring columns, so they take the same steps; each
 * loads its share of every block of A for all of them. CTAs that share a tile take some of its steps each instead, and
 * the first of them adds what the others summed. */
#ifndef ASPARSE_BCSR_RING_CUH
#define ASPARSE_BCSR_RING_CUH

#include "kernels/bcsr_tile.cuh"

namespace bcsr {

constexpr int kSharedLimit = 227 * 1024; /* of a multiprocessor, for all its CTAs */

/* Rows: block rows of a tile; Consumers: warpgroups; N: columns of each; Stages: of the ring; Boxes: for C, of each
 * consumer, 0 where the CTA is not persistent; Cluster: CTAs in neighbouring columns; Shares: CTAs of a tile. */
template <int Rows_, int Consumers_, int N_, int Stages_, int Boxes_, int Cluster_, int Shares_> struct Pipeline {
  static constexpr int Rows = Rows_, Consumers = Consumers_, N = N_, Cluster = Cluster_, Shares = Shares_;
  static constexpr int Stages = Stages_, Boxes = Boxes_;
  static constexpr bool Persistent = Boxes > 0;
  static_assert(Consumers <= 2 && Consumers % Rows == 0 && Stages >= 2 && kBlock / Cluster % 8 == 0, "");

  /* Consumer c multiplies block row c / Slices of the tile by slice c % Slices of B. */
  static constexpr int Slices = Consumers / Rows;
  static constexpr int Columns = Slices * N; /* of a CTA */
  static constexpr int SliceBytes = N / kBoxColumnsB * kBoxBytes;
  static constexpr int StageBytes = Rows * kBoxBytes + Slices * SliceBytes; /* [blocks of A | slices of B] */

  /* C passes through boxes in shared memory. A persistent CTA loads the next tile meanwhile, so it has boxes for that;
   * otherwise C takes the consumer's own slices in the stages, which are no longer needed. */
  static_assert(Persistent || Rows == 1, "without boxes for C a consumer needs slices of its own");
  static_assert(Shares == 1 || (Cluster == 1 && !Persistent), "shares of a tile are a cluster of their own");
  static_assert(Shares == 1 || N * 4 * kBlock <= Stages * SliceBytes, "sums of a share take the consumer's slices");

  static constexpr int RingBytes = Stages * StageBytes;
  static constexpr int SharedBytes = kSwizzlePeriod + RingBytes + Consumers * Boxes * kBoxBytes + Stages * (8 + 8 + 4);
  static_assert(SharedBytes <= kSharedLimit, "the ring does not fit");
  /* Two CTAs share a multiprocessor where accumulators and ring are small enough (1024 is what a CTA reserves). Then
   * one stores C while the other multiplies. */
  static constexpr int Ctas = Consumers * N <= 256 && 2 * (SharedBytes + 1024) <= kSharedLimit ? 2 : 1;
  /* Wide consumers take the registers of the producer, which is a whole warpgroup then, as setmaxnreg requires:
   * 128 · 40 + 2 · 128 · 232 ≤ 65,536. Otherwise it is a lone warp. */
  static constexpr bool MovesRegisters = N > 128;
  static constexpr int ProducerRegisters = 40, ConsumerRegisters = 232;
  static constexpr int Threads = Consumers * kWarpgroup + (MovesRegisters ? kWarpgroup : 32);
};

struct Ring {
  uint8_t *stages;        /* [Stages] of StageBytes */
  uint8_t *boxes;         /* [Consumers · Boxes] */
  uint64_t *full, *empty; /* [Stages], one after the other */
  uint32_t *rows;         /* [Stages] bit r: block row r of the tile has a block there */
};

/* Where a warp stands in the ring: a stage and its barriers by their addresses, which each step only adds to. Through
 * a shuffle, without which the compiler computes them anew each time, an eighth of a narrow tile's step. */
template <class P> struct Place {
  uint32_t first_stage, first_full;
  int stage = 0, round = 0;
  __device__ __forceinline__ explicit Place(const Ring &ring)
      : first_stage(__shfl_sync(0xffffffff, sm90::shared_address(ring.stages), 0)),
        first_full(__shfl_sync(0xffffffff, sm90::shared_address(ring.full), 0)) {}
  __device__ __forceinline__ sm90::Shared at() const { return sm90::Shared(first_stage + stage * P::StageBytes); }
  __device__ __forceinline__ sm90::Shared full() const { return sm90::Shared(first_full + stage * 8); }
  __device__ __forceinline__ sm90::Shared empty() const { return full() + P::Stages * 8; }
  __device__ __forceinline__ void advance() {
    if (++stage == P::Stages) stage = 0, round ^= 1;
  }
};

/* By all threads of the CTA. */
template <class P> __device__ __forceinline__ Ring ring_create(uint8_t *shared) {
  uint8_t *boxes = shared + P::RingBytes;
  uint64_t *barriers = reinterpret_cast<uint64_t *>(boxes + P::Consumers * P::Boxes * kBoxBytes);
  const Ring ring = {shared, boxes, barriers, barriers + P::Stages,
                     reinterpret_cast<uint32_t *>(barriers + 2 * P::Stages)};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < P::Stages; stage++) {
      sm90::barrier_init(ring.full + stage, 1);
      sm90::barrier_init(ring.empty + stage, P::Cluster * P::Consumers * kWarpgroup / 32);
    }
    sm90::fence_barrier_init();
  }
  if constexpr (P::Cluster > 1) sm90::cluster_sync();
  else __syncthreads();
  return ring;
}

/* Steps of a tile. */
struct Range {
  int begin, end;
};

/* This CTA's part of them. */
template <class P> __device__ __forceinline__ Range share_of(Range steps) {
  if constexpr (P::Shares == 1) return steps;
  const int share = blockIdx.x % P::Shares, n = steps.end - steps.begin;
  return {steps.begin + n * share / P::Shares, steps.begin + n * (share + 1) / P::Shares};
}

/* Here and of steps, ordinary loads: see sm90::wait_for_previous. */
template <class P> __device__ __forceinline__ Range steps_of(const asparse_cuda_bcsr &a, int group) {
  if constexpr (P::Rows == 1)
    return share_of<P>({static_cast<int>(a.block_row_ptr[group]), static_cast<int>(a.block_row_ptr[group + 1])});
  else return {a.groups.step_ptr[group], a.groups.step_ptr[group + 1]};
}

/* A step as int4, asparse_bcsr_step; with one block row steps are blocks. */
template <class P> __device__ __forceinline__ int4 load_step(const asparse_cuda_bcsr &a, int step, int end) {
  if (step >= end) return make_int4(0, -1, -1, -1);
  if constexpr (P::Rows == 1) return make_int4(a.block_col_idx[step], step, -1, -1);
  else return reinterpret_cast<const int4 *>(a.groups.steps)[step];
}

/* Loads one block of A, or this CTA's share of it for the whole cluster. */
template <class P>
__device__ __forceinline__ void load_block(sm90::Shared to, const CUtensorMap *map, int block, sm90::Shared full) {
  if constexpr (P::Cluster > 1) {
    const int row = static_cast<int>(sm90::cluster_rank()) * (kBlock / P::Cluster);
    sm90::tma_load_multicast(to + row * 128, map, 0, block * kBlock + row, full, (1 << P::Cluster) - 1);
  } else {
    sm90::tma_load(to, map, 0, block * kBlock, full);
  }
}

/* Loads what one step needs: by one thread. */
template <class P>
__device__ __forceinline__ void load_stage(const Ring &ring, const Place<P> &place, const CUtensorMap *blocks_map,
                                           const CUtensorMap *b_map, int4 step, int first_column) {
  constexpr int kBoxesOfB = P::Columns / kBoxColumnsB;
  const int blocks[2] = {step.y, step.z};
  const sm90::Shared to = place.at(), full = place.full();
  uint32_t rows = P::Rows == 1;
#pragma unroll
  for (int row = 0; P::Rows > 1 && row < P::Rows; row++) rows |= (blocks[row] >= 0) << row;
  sm90::barrier_wait(place.empty(), place.round ^ 1);
  if constexpr (P::Rows > 1) ring.rows[place.stage] = rows;
  sm90::barrier_arrive_expect(full, (__popc(rows) + kBoxesOfB) * kBoxBytes);
#pragma unroll
  for (int row = 0; row < P::Rows; row++)
    if (P::Rows == 1 || blocks[row] >= 0) load_block<P>(to + row * kBoxBytes, blocks_map, blocks[row], full);
#pragma unroll
  for (int box = 0; box < kBoxesOfB; box++)
    sm90::tma_load(to + (P::Rows + box) * kBoxBytes, b_map, first_column + box * kBoxColumnsB, step.x * kBlock, full);
}

/* What lane holds of steps, to all lanes. */
template <class P> __device__ __forceinline__ int4 broadcast(int4 steps, int lane) {
  int4 step = {};
  step.x = __shfl_sync(0xffffffff, steps.x, lane);
  step.y = __shfl_sync(0xffffffff, steps.y, lane);
  if constexpr (P::Rows > 1) step.z = __shfl_sync(0xffffffff, steps.z, lane);
  return step;
}

/* Loads the operands of one tile, by one whole warp. mine: its first 32 steps, one a lane. */
template <class P>
__device__ __forceinline__ void produce(const Ring &ring, Place<P> &place, const CUtensorMap *blocks_map,
                                        const CUtensorMap *b_map, const asparse_cuda_bcsr &a, Range range, int4 mine,
                                        int first_column) {
  const int lane = threadIdx.x % 32;
  for (int i = range.begin; i < range.end; i++, place.advance()) {
    const int at = (i - range.begin) % 32;
    if (at == 0 && i > range.begin) mine = load_step<P>(a, i + lane, range.end);
    const int4 step = broadcast<P>(mine, at);
    if (lane == 0) load_stage<P>(ring, place, blocks_map, b_map, step, first_column);
    __syncwarp();
  }
}

/* One arrival a warp, at every CTA whose producer may write there. */
template <class P> __device__ __forceinline__ void release(sm90::Shared empty) {
  const uint32_t lane = threadIdx.x % 32;
  if constexpr (P::Cluster > 1) {
    if (lane < P::Cluster) sm90::barrier_arrive_at(empty, lane);
  } else {
    if (lane == 0) sm90::barrier_arrive(empty);
  }
}

/* d = one consumer's part of one tile of n_steps. Consumers take turns at the tensor cores: while one waits for its
 * product or for bytes, another multiplies. */
template <class P>
__device__ __forceinline__ void consume(float (&d)[P::N / 2], const Ring &ring, Place<P> &place, int consumer,
                                        int n_steps) {
  const int row = consumer / P::Slices, slice = consumer % P::Slices;
  const sm90::Shared first(place.first_stage);
  const uint64_t block = block_descriptor(first + row * kBoxBytes),
                 slices = slice_descriptor(first + (P::Rows * kBoxBytes + slice * P::SliceBytes));
  clear(d);
  for (int i = 0; i < n_steps; i++, place.advance()) {
    const uint32_t from = place.stage * (P::StageBytes >> 4);
    sm90::barrier_wait(place.full(), place.round);
    if (P::Rows == 1 || (ring.rows[place.stage] >> row & 1)) {
      multiply_block<P::N>(d, block + from, slices + from);
      sm90::wgmma_wait<0>();
    }
    release<P>(place.empty());
  }
}

/* d += the sums of the tile's other CTAs, in order, in its first one; false in the others. box_at(i): room for box i of
 * the consumer, no longer needed. The CTAs meet once, and once more before they end. */
template <class P, typename BoxAt> __device__ __forceinline__ bool add_shares(float (&d)[P::N / 2], BoxAt box_at) {
  constexpr int kQuads = kBoxBytes / 16 / kWarpgroup; /* of a thread in a box */
  const int share = blockIdx.x % P::Shares, thread = threadIdx.x % kWarpgroup;
  auto quad_at = [&](int i) {
    return reinterpret_cast<float4 *>(box_at(i / kQuads)) + i % kQuads * kWarpgroup + thread;
  };
  if (share > 0) {
#pragma unroll
    for (int i = 0; i < P::N / 8; i++) *quad_at(i) = make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
  }
  sm90::cluster_sync();
  if (share > 0) return false;
#pragma unroll 1
  for (int from = 1; from < P::Shares; from++) {
#pragma unroll
    for (int i = 0; i < P::N / 8; i++) {
      const float4 x = sm90::load_at(quad_at(i), from);
      d[4 * i] += x.x, d[4 * i + 1] += x.y, d[4 * i + 2] += x.z, d[4 * i + 3] += x.w;
    }
  }
  return true;
}

} // namespace bcsr

#endif
