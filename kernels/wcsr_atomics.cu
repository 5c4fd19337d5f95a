/* WCSR as published: windows of 64 rows are the M side of WGMMA. One warpgroup computes one task × N dense columns. A
 * stage of its ring holds four tiles of A, brought by the copy engine, and the 64 rows of B that their columns name,
 * gathered by the threads. While one stage multiplies, the copies to the others fly.
 *
 * The tasks of a split window are added to C by fp32 atomics in any order: the only kernel of the table whose result
 * is not bitwise the same from run to run. */
#include "kernels/cuda_wcsr_atomics.h"

#include <cuda_bf16.h>

#include "kernels/bcsr_tensor_maps.h"
#include "kernels/bcsr_tile.cuh"

namespace {

using bcsr::kBoxBytes;

constexpr int kThreads = 128;
constexpr int kHeight = 64;      /* rows of a window */
constexpr int kTileColumns = 16; /* compressed columns of a tile */
constexpr int kStageTiles = 4;   /* tiles of a stage */
constexpr int kPieceColumns = 8; /* dense columns of 16 bytes of B */
constexpr int kTileBytes = kHeight * kTileColumns * 2;
constexpr int kBytesA = kStageTiles * kTileBytes;

struct Problem {
  int32_t m, n;
  const int32_t *col_idx;         /* [tiles · 16] */
  const uint64_t *row_mask;       /* [tiles · 16] */
  const uint16_t *values;         /* [tiles · 64 · 16] */
  const asparse_wcsr_task *tasks; /* slot ≥ 0: part of a split window */
  const uint16_t *b;              /* [k × n] */
  int32_t ldb;
  bool b_pieces; /* rows of B start on 16 bytes */
  float *c;      /* [m × n] */
  int32_t ldc;
  bool c_pairs; /* even columns of C are aligned to 8 bytes */
  bool accumulate;
};

/* N: dense columns of a CTA. Stages and CTAs: as many as 227 KB of shared memory and the registers hold. */
template <int N> struct Shape {
  static constexpr int kStages = N == 64 ? 4 : N == 128 ? 3 : 2;
  static constexpr int kCtas = N == 256 ? 2 : 3;
  static constexpr int kStageBytes = kBytesA + N / 64 * kBoxBytes;
  static constexpr int kSharedBytes = 1024 + kStages * (kStageBytes + 8); /* 1024: room to align to the swizzle */
  static constexpr int kPieces = N / kPieceColumns;                       /* of a row of B */
  static constexpr int kRows = 64 * kPieces / kThreads; /* neighbouring rows of a stage a thread copies */
};

struct Ring {
  uint8_t *stages; /* each [4 tiles of A | N / 64 boxes of B], aligned to 1024 */
  uint64_t *full;  /* phases end when A and every warp's share of B have arrived */
};

/* Columns of the rows of B that this thread copies for a step of the task; -1 for padding and beyond its end. */
template <int N>
__device__ __forceinline__ void load_columns(const Problem &p, const asparse_wcsr_task &task, int32_t step,
                                             int32_t (&rows)[Shape<N>::kRows]) {
  const int first = threadIdx.x / Shape<N>::kPieces * Shape<N>::kRows; /* in the stage; never across two tiles */
  const int32_t tile = step * kStageTiles + first / kTileColumns;
  const int64_t at = static_cast<int64_t>(task.first_tile + tile) * kTileColumns + first % kTileColumns;
#pragma unroll
  for (int i = 0; i < Shape<N>::kRows; i += 4) {
    const int4 four =
        tile < task.n_tiles ? __ldg(reinterpret_cast<const int4 *>(p.col_idx + at + i)) : make_int4(-1, -1, -1, -1);
    rows[i] = four.x, rows[i + 1] = four.y, rows[i + 2] = four.z, rows[i + 3] = four.w;
  }
}

/* Eight elements from B of any alignment, the first count of them; then zeros. */
__device__ __forceinline__ void copy_elements(uint8_t *shared, const uint16_t *b, int count) {
#pragma unroll 1
  for (int i = 0; i < kPieceColumns; i++) reinterpret_cast<uint16_t *>(shared)[i] = i < count ? __ldg(b + i) : 0;
}

/* This thread's share of the 64 × N slice of B: one piece of kRows neighbouring rows, zeros where there is none. Zeros
 * come from an address that always holds 16 bytes: memcheck takes every copy to read them. */
template <int N>
__device__ __forceinline__ void gather(const Problem &p, const int32_t (&rows)[Shape<N>::kRows], int32_t first_col,
                                       uint8_t *slice) {
  const int piece = threadIdx.x % Shape<N>::kPieces, first_row = threadIdx.x / Shape<N>::kPieces * Shape<N>::kRows;
  const int32_t col = first_col + piece * kPieceColumns;
  const int32_t inside = max(0, min(p.n - col, kPieceColumns));
  const bool whole = p.b_pieces && (inside == 0 || inside == kPieceColumns);
  uint8_t *box = slice + piece / 8 * kBoxBytes;
#pragma unroll
  for (int i = 0; i < Shape<N>::kRows; i++) {
    const int32_t count = rows[i] >= 0 ? inside : 0;
    const uint16_t *from = count > 0 ? p.b + static_cast<int64_t>(rows[i]) * p.ldb + col : p.values;
    uint8_t *to = box + bcsr::swizzled(first_row + i, piece % 8 * 16);
    if (whole) sm90::copy_async_16(to, from, count * 2);
    else copy_elements(to, from, count);
  }
}

/* Starts the copies of a step, if the task has it, and fetches the column indices of the next. */
template <int N>
__device__ __forceinline__ void fetch(const CUtensorMap *values_map, const Problem &p, const asparse_wcsr_task &task,
                                      int32_t first_col, int32_t step, const Ring &ring, int stage,
                                      int32_t (&rows)[Shape<N>::kRows]) {
  if (step * kStageTiles < task.n_tiles) {
    uint8_t *to = ring.stages + stage * Shape<N>::kStageBytes;
    if (threadIdx.x == 0) {
      sm90::barrier_arrive_expect(ring.full + stage, kBytesA);
      sm90::tma_load(to, values_map, 0, (task.first_tile + step * kStageTiles) * kHeight, ring.full + stage);
    }
    gather<N>(p, rows, first_col, to + kBytesA);
    load_columns<N>(p, task, step + 1, rows);
  }
  sm90::copy_async_commit();
}

/* d += stage, asynchronously. A tile is 64 rows of 32 bytes, K-major: one step of 16 in k. Tiles beyond the task's end
 * meet zeros of B. */
template <int N> __device__ __forceinline__ void multiply_stage(float (&d)[N / 2], const uint8_t *stage) {
  const uint64_t a = sm90::wgmma_descriptor(stage, 16, 256, sm90::Swizzle::k32);
  const uint64_t b = sm90::wgmma_descriptor(stage + kBytesA, kBoxBytes, 1024);
  sm90::wgmma_fence();
#pragma unroll
  for (int tile = 0; tile < kStageTiles; tile++)
    sm90::wgmma<N>(d, a + tile * (kTileBytes >> 4), b + tile * (2048 >> 4));
  sm90::wgmma_commit();
}

enum class Store { kOverwrite, kAccumulate, kAtomic };

__device__ __forceinline__ Store store_of(const Problem &p, const asparse_wcsr_task &task) {
  return task.slot >= 0 ? Store::kAtomic : p.accumulate ? Store::kAccumulate : Store::kOverwrite;
}

__device__ __forceinline__ void put(float *c, float x, Store store) {
  if (store == Store::kAtomic) sm90::atomic_add(c, x);
  else *c = store == Store::kAccumulate ? *c + x : x;
}

__device__ __forceinline__ void put_pair(float *c, float2 x, Store store) {
  float2 *to = reinterpret_cast<float2 *>(c);
  if (store == Store::kAtomic) {
    sm90::atomic_add(to, x);
  } else {
    const float2 old = store == Store::kAccumulate ? *to : make_float2(0, 0);
    __stcs(to, make_float2(old.x + x.x, old.y + x.y));
  }
}

template <int N>
__device__ __forceinline__ void store_window(const Problem &p, const asparse_wcsr_task &task, int32_t first_col,
                                             const float (&d)[N / 2]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Store store = store_of(p, task);
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int32_t row = task.window * kHeight + warp * 16 + lane / 4 + 8 * half;
    if (row >= p.m) return;
    float *c_row = p.c + static_cast<int64_t>(row) * p.ldc;
#pragma unroll
    for (int j = 0; j < N / 8; j++) {
      const int32_t col = first_col + 8 * j + lane % 4 * 2;
      const float2 x = make_float2(d[4 * j + 2 * half], d[4 * j + 2 * half + 1]);
      if (p.c_pairs && col + 1 < p.n) {
        put_pair(c_row + col, x, store);
      } else {
        if (col < p.n) put(c_row + col, x.x, store);
        if (col + 1 < p.n) put(c_row + col + 1, x.y, store);
      }
    }
  }
}

/* A warp's 16 rows from stored entries alone, where a padding zero met Inf or NaN of B. */
__device__ __noinline__ void multiply_stored(const Problem &p, asparse_wcsr_task task, int32_t first_col,
                                             int32_t end_col) {
  const int lane = threadIdx.x % 32, first_row = threadIdx.x / 32 * 16;
  const int64_t begin = static_cast<int64_t>(task.first_tile) * kTileColumns;
  const int64_t end = begin + static_cast<int64_t>(task.n_tiles) * kTileColumns;
  const Store store = store_of(p, task);
  for (int row = first_row; row < first_row + 16 && task.window * kHeight + row < p.m; row++) {
    for (int32_t col = first_col + lane; col < end_col; col += 32) {
      float sum = 0;
      for (int64_t e = begin; e < end; e++) {
        if (!(p.row_mask[e] >> row & 1)) continue;
        const int64_t in_tile = e % kTileColumns;
        const uint16_t value = p.values[(e - in_tile) * kHeight + row * kTileColumns + in_tile];
        const uint16_t b = p.b[static_cast<int64_t>(p.col_idx[e]) * p.ldb + col];
        sum = fmaf(__bfloat162float(__ushort_as_bfloat16(value)), __bfloat162float(__ushort_as_bfloat16(b)), sum);
      }
      put(p.c + static_cast<int64_t>(task.window * kHeight + row) * p.ldc + col, sum, store);
    }
  }
}

template <int N>
__global__ void __launch_bounds__(kThreads, Shape<N>::kCtas)
    wcsr_atomics(const __grid_constant__ CUtensorMap values_map, const __grid_constant__ Problem p) {
  using S = Shape<N>;
  extern __shared__ uint8_t unaligned[];
  uint8_t *shared = unaligned + (1024 - sm90::shared_address(unaligned) % 1024) % 1024;
  const Ring ring = {shared, reinterpret_cast<uint64_t *>(shared + S::kStages * S::kStageBytes)};
  const int4 packed = __ldg(reinterpret_cast<const int4 *>(p.tasks) + blockIdx.x);
  const asparse_wcsr_task task = {packed.x, packed.y, packed.z, packed.w};
  const int32_t first_col = blockIdx.y * N;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < S::kStages; stage++) sm90::barrier_init(ring.full + stage, 1 + kThreads / 32);
    sm90::fence_barrier_init();
  }
  __syncthreads();

  float d[N / 2];
  bcsr::clear(d);
  int32_t rows[S::kRows];
  load_columns<N>(p, task, 0, rows);
#pragma unroll
  for (int step = 0; step < S::kStages - 1; step++) fetch<N>(&values_map, p, task, first_col, step, ring, step, rows);

  int stage = 0, parity = 0;
  for (int32_t step = 0; step * kStageTiles < task.n_tiles; step++) {
    sm90::copy_async_wait<S::kStages - 2>();
    sm90::fence_async_proxy();
    sm90::wgmma_wait<0>(); /* once all warps are here, the stage before is free */
    __syncwarp();
    if (threadIdx.x % 32 == 0) sm90::barrier_arrive(ring.full + stage);
    sm90::barrier_wait(ring.full + stage, parity);
    multiply_stage<N>(d, ring.stages + stage * S::kStageBytes);
    const int before = (stage == 0 ? S::kStages : stage) - 1;
    fetch<N>(&values_map, p, task, first_col, step + S::kStages - 1, ring, before, rows);
    if (++stage == S::kStages) stage = 0, parity ^= 1;
  }
  sm90::wgmma_wait<0>();

  bool nan = false;
#pragma unroll
  for (int i = 0; i < N / 2; i++) nan |= d[i] != d[i];
  if (__any_sync(0xffffffff, nan)) multiply_stored(p, task, first_col, min(first_col + N, p.n));
  else store_window<N>(p, task, first_col, d);
}

/* C = 0 in the rows of split windows, which atomics add to. */
__global__ void __launch_bounds__(256)
    zero_windows(const __grid_constant__ Problem p, const asparse_wcsr_split *__restrict__ splits) {
  const int32_t first_row = splits[blockIdx.x].window * kHeight, rows = min(kHeight, p.m - first_row);
  const int32_t col = blockIdx.y * blockDim.x + threadIdx.x;
  if (col >= p.n) return;
  for (int32_t r = blockIdx.z; r < rows; r += gridDim.z) p.c[static_cast<int64_t>(first_row + r) * p.ldc + col] = 0;
}

template <int N>
cudaError_t launch(const CUtensorMap &values_map, const Problem &p, int32_t n_tasks, cudaStream_t stream) {
  constexpr int kBytes = Shape<N>::kSharedBytes;
  const cudaError_t error = cudaFuncSetAttribute(wcsr_atomics<N>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  wcsr_atomics<N><<<dim3(n_tasks, (p.n - 1) / N + 1), kThreads, kBytes, stream>>>(values_map, p);
  return cudaGetLastError();
}

template <typename T> bool aligned(const T *pointer, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

} // namespace

cudaError_t asparse_cuda_wcsr_atomics_multiply(const asparse_cuda_wcsr *a, int64_t n, const uint16_t *d_b, int64_t ldb,
                                               float *d_c, int64_t ldc, bool accumulate, int32_t slice_columns,
                                               cudaStream_t stream) {
  const asparse_wcsr_work &work = a->work;
  /* Of 22 cases (11 generated matrices, n = 256 and 1024) 128 is the fastest in 19, 64 takes up to 45 % longer, 256 up
   * to 57 %. On the other three (random, 2048 and 4096 rows) 128 takes 14 to 20 % longer than the best (H200). */
  const int32_t slice = slice_columns ? slice_columns : n <= 64 ? 64 : 128;
  const bool valid = a->window_height == kHeight && a->m >= 0 && a->n_tiles >= 0 &&
                     a->n_tiles <= INT32_MAX / kHeight - kStageTiles && n >= 0 && n <= INT64_C(65535) * slice &&
                     (slice == 64 || slice == 128 || slice == 256) && ldb >= n && ldb <= INT32_MAX && ldc >= n &&
                     ldc <= INT32_MAX && aligned(a->window_col_idx, 16) && aligned(a->values, 16) &&
                     aligned(work.tasks, 16);
  if (!valid) return cudaErrorInvalidValue;
  if (a->m == 0 || n == 0 || work.n_tasks == 0) return cudaSuccess;

  Problem p = {};
  p.m = a->m;
  p.n = static_cast<int32_t>(n);
  p.col_idx = a->window_col_idx;
  p.row_mask = a->row_mask;
  p.values = a->values;
  p.tasks = work.tasks;
  p.b = d_b;
  p.ldb = static_cast<int32_t>(ldb);
  p.b_pieces = ldb % kPieceColumns == 0 && aligned(d_b, 16);
  p.c = d_c;
  p.ldc = static_cast<int32_t>(ldc);
  p.c_pairs = ldc % 2 == 0 && aligned(d_c, 8);
  p.accumulate = accumulate;
  if (work.n_splits > 0 && !accumulate) {
    zero_windows<<<dim3(work.n_splits, (p.n - 1) / 256 + 1, 8), 256, 0, stream>>>(p, work.splits);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
  }
  CUtensorMap values_map = {};
  if (a->n_tiles > 0) {
    const cudaError_t error = asparse_wcsr_map_values(&values_map, a->values, a->n_tiles);
    if (error != cudaSuccess) return error;
  }
  return slice == 64    ? launch<64>(values_map, p, work.n_tasks, stream)
         : slice == 128 ? launch<128>(values_map, p, work.n_tasks, stream)
                        : launch<256>(values_map, p, work.n_tasks, stream);
}
