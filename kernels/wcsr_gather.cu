/* WCSR by register gather: Cᵀ = Bᵀ·Aᵀ, so that a window's rows are the narrow side of the MMA.
 *
 * A warp computes one task × 64 dense columns, lane = 4·g + t. For each tile the lane loads 16 bytes (dense
 * columns 8g … 8g+7) of the gathered rows 4t … 4t+3, and of the h × 16 values the 8 bytes of row g, columns
 * 4t … 4t+3 (of every 8 rows). The order of the 16 compressed columns within an MMA is free as long as both
 * operands agree: the fragment's positions 2t, 2t+1, 2t+8, 2t+9 take columns 4t … 4t+3. So is the order of the
 * dense columns: MMA q takes columns 8g+2q and 8g+2q+1 as rows g and g+8. Byte-permutes of the lane's own
 * registers then make the fragments of four MMAs, and the lane ends with 8 consecutive columns of C in rows
 * 2t and 2t+1 of every 8. No shared memory, no barrier; the next tile's loads fly while this one multiplies. */
#include "kernels/cuda_wcsr.h"
#include "kernels/mma.cuh"
#include "kernels/result.cuh"

#include <algorithm>

namespace {

constexpr int kWarps = 4;
constexpr int kTileColumns = 16; /* compressed columns of a tile */
constexpr int kWarpColumns = 64; /* dense columns of a warp */
constexpr int kLaneColumns = 8;  /* dense columns of a lane: 16 bytes of B */

struct Problem {
  int32_t m, n;
  const int32_t *col_idx;         /* [tiles · 16] */
  const uint64_t *row_mask;       /* [tiles · 16] */
  const uint16_t *values;         /* [tiles · h · 16] */
  const asparse_wcsr_task *tasks; /* [n_tasks] */
  int32_t n_tasks;
  int32_t tasks_per_cta; /* 1, 2 or 4 neighbouring tasks; the CTA's warps share them by columns */
  const uint16_t *b;     /* [k × n] */
  int32_t ldb;
  bool b_vector; /* 16-byte loads of whole column groups are possible */
  void *c;       /* [m × n], float or __nv_bfloat16 */
  int32_t ldc;
  bool accumulate;
  float *workspace; /* [n_slots × h × workspace_ld] */
  int32_t workspace_ld;
};

template <int H> struct Tile {
  uint4 b[4];     /* rows 4t … 4t+3 of the tile's gathered rows, columns 8g … 8g+7 */
  uint2 a[H / 8]; /* row g of every 8, columns 4t … 4t+3 */
};

/* Where a warp's results go: row r, column j of the window at out[r · ld + j]; r < rows, j < n. */
template <typename C> struct Destination {
  C *out;
  int32_t ld, rows;
  bool accumulate, stream;
};

template <int H>
__device__ __forceinline__ Destination<float> slot_of(const Problem &p, const asparse_wcsr_task &task) {
  return {p.workspace + (int64_t)task.slot * H * p.workspace_ld, p.workspace_ld, H, false, false};
}

template <int H, typename C>
__device__ __forceinline__ Destination<C> window_of(const Problem &p, const asparse_wcsr_task &task) {
  const int32_t row = task.window * H;
  return {static_cast<C *>(p.c) + (int64_t)row * p.ldc, p.ldc, min(H, p.m - row), p.accumulate, true};
}

__device__ __forceinline__ int4 load_columns(const Problem &p, int32_t tile, int t) {
  return __ldg(reinterpret_cast<const int4 *>(p.col_idx + (int64_t)tile * kTileColumns) + t);
}

/* Columns col … col+7 of row of B; zeros for padding and beyond n. */
template <bool kAligned> __device__ __forceinline__ uint4 load_b(const Problem &p, int32_t row, int32_t col) {
  uint4 x = make_uint4(0, 0, 0, 0);
  if (row < 0 || col >= p.n) return x;
  const uint16_t *at = p.b + (int64_t)row * p.ldb + col;
  if (kAligned || (p.b_vector && col + kLaneColumns <= p.n)) {
    x = __ldg(reinterpret_cast<const uint4 *>(at));
  } else {
    uint32_t e[kLaneColumns];
#pragma unroll
    for (int i = 0; i < kLaneColumns; i++) e[i] = col + i < p.n ? __ldg(at + i) : 0;
    x = make_uint4(e[0] | e[1] << 16, e[2] | e[3] << 16, e[4] | e[5] << 16, e[6] | e[7] << 16);
  }
  return x;
}

template <int H, bool kAligned>
__device__ __forceinline__ void load_tile(const Problem &p, int32_t tile, int4 rows, int32_t col, int lane,
                                          Tile<H> &out) {
  out.b[0] = load_b<kAligned>(p, rows.x, col);
  out.b[1] = load_b<kAligned>(p, rows.y, col);
  out.b[2] = load_b<kAligned>(p, rows.z, col);
  out.b[3] = load_b<kAligned>(p, rows.w, col);
  /* (8j + g)·16 + 4t elements = 128·j + 4·lane */
  const uint16_t *a = p.values + (int64_t)tile * (H * kTileColumns) + 4 * lane;
#pragma unroll
  for (int j = 0; j < H / 8; j++) out.a[j] = __ldg(reinterpret_cast<const uint2 *>(a + 128 * j));
}

template <int H> __device__ __forceinline__ void multiply_tile(const Tile<H> &x, float (&acc)[H / 8][4][4]) {
  const uint32_t(&b)[4][4] = reinterpret_cast<const uint32_t(&)[4][4]>(x.b);
#pragma unroll
  for (int q = 0; q < 4; q++) {
    const uint32_t fragment[4] = {pair_low(b[0][q], b[1][q]), pair_high(b[0][q], b[1][q]), pair_low(b[2][q], b[3][q]),
                                  pair_high(b[2][q], b[3][q])};
#pragma unroll
    for (int j = 0; j < H / 8; j++) mma_m16n8k16(acc[j][q], fragment, x.a[j]);
  }
}

__device__ __forceinline__ void store_four(float *at, float4 x, bool accumulate, bool stream) {
  float4 *to = reinterpret_cast<float4 *>(at);
  if (accumulate) {
    float4 old = *to;
    x = make_float4(old.x + x.x, old.y + x.y, old.z + x.z, old.w + x.w);
  }
  if (stream) __stcs(to, x);
  else *to = x;
}

/* Columns col … col+7 of a row, by all lanes of a warp. Lanes g and g ^ 1 exchange halves, so that a pair's store
 * fills a 32-byte sector: 0-18 % less time on FEM and grids than two half sectors a lane (H200). */
__device__ __forceinline__ void store_pairs(const Destination<float> &d, int32_t n, int32_t row, int32_t col,
                                            const float (&x)[8]) {
  const bool right = col & kLaneColumns;
  float got[4];
#pragma unroll
  for (int i = 0; i < 4; i++) got[i] = __shfl_xor_sync(0xffffffff, right ? x[i] : x[4 + i], 4);
  if (row >= d.rows) return;
  const int32_t left_col = right ? col - 4 : col, right_col = right ? col + 4 : col + 8;
  float *out = d.out + (int64_t)row * d.ld;
  if (left_col < n) {
    store_four(out + left_col,
               right ? make_float4(got[0], got[1], got[2], got[3]) : make_float4(x[0], x[1], x[2], x[3]), d.accumulate,
               d.stream);
  }
  if (right_col < n) {
    store_four(out + right_col,
               right ? make_float4(x[4], x[5], x[6], x[7]) : make_float4(got[0], got[1], got[2], got[3]), d.accumulate,
               d.stream);
  }
}

/* bf16 needs no exchange: eight columns are 16 bytes, and neighbouring lanes fill the sector. */
__device__ __forceinline__ void store_pairs(const Destination<__nv_bfloat16> &d, int32_t n, int32_t row, int32_t col,
                                            const float (&x)[8]) {
  if (row < d.rows && col < n) store_eight(d.out + (int64_t)row * d.ld + col, x, d.accumulate);
}

template <typename C>
__device__ __forceinline__ void store_elements(const Destination<C> &d, int32_t n, int32_t row, int32_t col,
                                               const float (&x)[8]) {
  if (row >= d.rows) return;
  C *out = d.out + (int64_t)row * d.ld + col;
#pragma unroll
  for (int i = 0; i < kLaneColumns; i++) {
    if (col + i < n) store_one(out + i, x[i], d.accumulate);
  }
}

template <int H, bool kAligned, typename C>
__device__ __forceinline__ void store(const Destination<C> &d, int32_t n, int32_t col, int t,
                                      const float (&acc)[H / 8][4][4]) {
#pragma unroll
  for (int j = 0; j < H / 8; j++) {
#pragma unroll
    for (int odd = 0; odd < 2; odd++) {
      const float x[8] = {acc[j][0][odd], acc[j][0][2 + odd], acc[j][1][odd], acc[j][1][2 + odd],
                          acc[j][2][odd], acc[j][2][2 + odd], acc[j][3][odd], acc[j][3][2 + odd]};
      const int32_t row = 8 * j + 2 * t + odd;
      if (kAligned) store_pairs(d, n, row, col, x);
      else store_elements(d, n, row, col, x);
    }
  }
}

/* The same result from stored entries alone, for tiles where a padding zero met Inf or NaN of B. */
template <int H, typename C>
__device__ __noinline__ void multiply_stored(const Problem &p, const asparse_wcsr_task &task, Destination<C> d,
                                             int32_t first_col, int lane) {
  int64_t begin = (int64_t)task.first_tile * kTileColumns, end = begin + (int64_t)task.n_tiles * kTileColumns;
  int32_t end_col = min(first_col + kWarpColumns, p.n);
  for (int32_t row = 0; row < d.rows; row++) {
    for (int32_t col = first_col + lane; col < end_col; col += 32) {
      float sum = 0;
      for (int64_t e = begin; e < end; e++) {
        if (!(p.row_mask[e] >> row & 1)) continue;
        int64_t in_tile = e % kTileColumns;
        uint16_t value = p.values[(e - in_tile) * H + row * kTileColumns + in_tile];
        uint16_t b = p.b[(int64_t)p.col_idx[e] * p.ldb + col];
        sum = fmaf(__bfloat162float(__ushort_as_bfloat16(value)), __bfloat162float(__ushort_as_bfloat16(b)), sum);
      }
      store_one(d.out + (int64_t)row * d.ld + col, sum, d.accumulate);
    }
  }
}

template <int H> __device__ __forceinline__ bool has_nan(const float (&acc)[H / 8][4][4]) {
  bool nan = false;
#pragma unroll
  for (int i = 0; i < H * 2; i++) {
    float x = (&acc[0][0][0])[i];
    nan |= x != x;
  }
  return nan;
}

template <int H, bool kAligned, typename C>
__device__ __forceinline__ void finish(const Problem &p, const asparse_wcsr_task &task, const Destination<C> &d,
                                       int32_t first_col, int lane, const float (&acc)[H / 8][4][4]) {
  if (__any_sync(0xffffffff, has_nan<H>(acc))) multiply_stored<H>(p, task, d, first_col, lane);
  else store<H, kAligned>(d, p.n, first_col + lane / 4 * kLaneColumns, lane % 4, acc);
}

/* CTAs on a multiprocessor: the register budget 65536 / (128 · CTAs) that each height fits without spills. */
template <int H, bool kAligned> constexpr int kCtas = H == 64 ? 2 : H == 32 ? 3 : !kAligned ? 4 : H == 16 ? 5 : 6;

template <int H, bool kAligned, typename C>
__global__ void __launch_bounds__(32 * kWarps, kCtas<H, kAligned>) wcsr_gather(const __grid_constant__ Problem p) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int32_t index = blockIdx.x * p.tasks_per_cta + warp % p.tasks_per_cta;
  const int32_t slices = kWarps / p.tasks_per_cta; /* column slices of a CTA */
  const int32_t first_col = (blockIdx.y * slices + warp / p.tasks_per_cta) * kWarpColumns;
  if (index >= p.n_tasks || first_col >= p.n) return;
  const int4 packed = __ldg(reinterpret_cast<const int4 *>(p.tasks) + index);
  const asparse_wcsr_task task = {packed.x, packed.y, packed.z, packed.w};
  const int t = lane % 4;
  const int32_t col = first_col + lane / 4 * kLaneColumns;

  float acc[H / 8][4][4] = {};
  int32_t tile = task.first_tile;
  const int32_t last = tile + task.n_tiles - 1;
  if (tile <= last) {
    Tile<H> now, next;
    int4 rows = load_columns(p, tile, t), next_rows = load_columns(p, min(tile + 1, last), t);
    load_tile<H, kAligned>(p, tile, rows, col, lane, now);
#pragma unroll 2
    for (; tile < last; tile++) {
      rows = next_rows;
      next_rows = load_columns(p, min(tile + 2, last), t);
      load_tile<H, kAligned>(p, tile + 1, rows, col, lane, next);
      multiply_tile<H>(now, acc);
      now = next;
    }
    multiply_tile<H>(now, acc);
  }

  if (task.slot >= 0) finish<H, kAligned>(p, task, slot_of<H>(p, task), first_col, lane, acc);
  else finish<H, kAligned>(p, task, window_of<H, C>(p, task), first_col, lane, acc);
}

/* C(window, :) = Σ over its slots, in order, so that the result does not depend on timing. */
template <typename C>
__global__ void __launch_bounds__(256)
    add_slots(const __grid_constant__ Problem p, int32_t h, const asparse_wcsr_split *__restrict__ splits) {
  const asparse_wcsr_split split = splits[blockIdx.x];
  const int32_t col = blockIdx.y * blockDim.x + threadIdx.x;
  if (col >= p.n) return;
  const int64_t slot_size = (int64_t)h * p.workspace_ld;
  const int32_t first_row = split.window * h, rows = min(h, p.m - first_row);
  for (int32_t r = blockIdx.z; r < rows; r += gridDim.z) {
    const float *in = p.workspace + split.first_slot * slot_size + (int64_t)r * p.workspace_ld + col;
    float sum = 0;
    for (int32_t s = 0; s < split.n_slots; s++) sum += in[s * slot_size];
    store_one(static_cast<C *>(p.c) + (int64_t)(first_row + r) * p.ldc + col, sum, p.accumulate);
  }
}

template <int H, typename C> cudaError_t launch(const Problem &p, bool aligned, cudaStream_t stream) {
  const int32_t slices = kWarps / p.tasks_per_cta;
  const dim3 grid((p.n_tasks - 1) / p.tasks_per_cta + 1, (p.n - 1) / (slices * kWarpColumns) + 1);
  if (aligned) wcsr_gather<H, true, C><<<grid, 32 * kWarps, 0, stream>>>(p);
  else wcsr_gather<H, false, C><<<grid, 32 * kWarps, 0, stream>>>(p);
  return cudaGetLastError();
}

template <typename C>
cudaError_t multiply(const Problem &p, int32_t h, const asparse_wcsr_work &work, bool aligned, cudaStream_t stream) {
  const cudaError_t error = h == 8    ? launch<8, C>(p, aligned, stream)
                            : h == 16 ? launch<16, C>(p, aligned, stream)
                            : h == 32 ? launch<32, C>(p, aligned, stream)
                                      : launch<64, C>(p, aligned, stream);
  if (error != cudaSuccess || work.n_splits == 0) return error;
  const dim3 grid(work.n_splits, (p.n - 1) / 256 + 1, 8);
  add_slots<C><<<grid, 256, 0, stream>>>(p, h, work.splits);
  return cudaGetLastError();
}

bool aligned_to_16(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

int32_t workspace_ld(int64_t n) { return static_cast<int32_t>((n + 7) / 8 * 8); }

} // namespace

size_t asparse_cuda_wcsr_workspace(const asparse_cuda_wcsr *a, int64_t n) {
  return sizeof(float) * a->work.n_slots * a->window_height * workspace_ld(n);
}

cudaError_t asparse_cuda_wcsr_multiply(const asparse_cuda_wcsr *a, int64_t n, const uint16_t *d_b, int64_t ldb,
                                       asparse_dtype c_dtype, void *d_c, int64_t ldc, bool accumulate,
                                       void *d_workspace, cudaStream_t stream) {
  const asparse_wcsr_work &work = a->work;
  const int32_t h = a->window_height;
  const int64_t most_columns = INT64_C(65535) * kWarpColumns; /* grid.y */
  const int32_t tasks = a->tasks_per_cta;
  const bool valid = (tasks == 0 || tasks == 1 || tasks == 2 || tasks == 4) &&
                     (h == 8 || h == 16 || h == 32 || h == 64) && a->m >= 0 && n >= 0 && n <= most_columns &&
                     ldb >= n && ldb <= INT32_MAX && ldc >= n && ldc <= INT32_MAX && aligned_to_16(a->window_col_idx) &&
                     aligned_to_16(a->values) && aligned_to_16(work.tasks) && aligned_to_16(d_workspace) &&
                     (work.n_splits == 0 || d_workspace) && (c_dtype == ASPARSE_FP32 || c_dtype == ASPARSE_BF16);
  if (!valid) return cudaErrorInvalidValue;
  if (a->m == 0 || n == 0 || work.n_tasks == 0) return cudaSuccess;

  const int64_t slices = (n - 1) / kWarpColumns + 1;
  const int32_t wanted = a->tasks_per_cta ? a->tasks_per_cta : h <= 16 ? 4 : 1;
  const int32_t tasks_per_cta = slices == 1 ? 4 : slices == 2 ? std::max(wanted, 2) : wanted;
  const bool b_vector = ldb % 8 == 0 && aligned_to_16(d_b),
             c_vector = ldc % (c_dtype == ASPARSE_FP32 ? 4 : 8) == 0 && aligned_to_16(d_c);
  Problem p = {};
  p.m = a->m;
  p.n = static_cast<int32_t>(n);
  p.col_idx = a->window_col_idx;
  p.row_mask = a->row_mask;
  p.values = a->values;
  p.tasks = work.tasks;
  p.n_tasks = work.n_tasks;
  p.tasks_per_cta = tasks_per_cta;
  p.b = d_b;
  p.ldb = static_cast<int32_t>(ldb);
  p.b_vector = b_vector;
  p.c = d_c;
  p.ldc = static_cast<int32_t>(ldc);
  p.accumulate = accumulate;
  p.workspace = static_cast<float *>(d_workspace);
  p.workspace_ld = workspace_ld(n);
  const bool aligned = b_vector && c_vector && n % kLaneColumns == 0;
  return c_dtype == ASPARSE_FP32 ? multiply<float>(p, h, work, aligned, stream)
                                 : multiply<__nv_bfloat16>(p, h, work, aligned, stream);
}
