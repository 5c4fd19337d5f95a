/* WCSR by register gather (see wcsr_tile.cuh). A CTA of four warps computes a group of the work list × 64 columns: four
 * neighbouring windows, a warp each; or one window, each warp a run of its tiles, the partial sums added through shared
 * memory in the order of the tiles. The longest windows take several such CTAs: each puts its part into the workspace,
 * and the last to arrive adds all parts in order, so that the result does not depend on timing. */
#include "kernels/launch.cuh"
#include "kernels/sm90.cuh"
#include "kernels/wcsr_tile.cuh"

namespace {

using namespace wcsr;

constexpr int kWarps = ASPARSE_WCSR_WARPS;

/* What a warp stores in one go: rows of one parity of 8, 8 columns a lane. */
template <int H> constexpr int kUnits = H / 4;
template <int H> constexpr int kSharedBytes = kWarps *kUnits<H> * 8 * 32 * int{sizeof(float)};

template <bool kAligned, typename C>
__device__ __forceinline__ void store_unit(const Destination<C> &d, int32_t n, int unit, int32_t first_col, int lane,
                                           const float (&x)[8]) {
  const int32_t row = unit / 2 * 8 + unit % 2;
  if (kAligned) store_lines(d, n, row, first_col, lane, x);
  else store_elements(d, n, row + lane % 4 * 2, first_col + lane / 4 * kLaneColumns, x);
}

/* One warp's whole window. */
template <int H, bool kAligned, typename C>
__device__ __forceinline__ void finish_alone(const Problem &p, const Share &share, int32_t first_col, int lane,
                                             const float (&acc)[H / 8][4][4]) {
  const Destination<C> d = window_of<H, C>(p, share.window);
  if (__any_sync(0xffffffff, has_nan<H>(acc))) {
    multiply_stored<H>(p, share.first_tile, share.n_tiles, d, first_col, lane);
    return;
  }
#pragma unroll
  for (int unit = 0; unit < kUnits<H>; unit++) {
    float x[8];
#pragma unroll
    for (int i = 0; i < 8; i++) x[i] = acc[unit / 2][i / 2][unit % 2 + i % 2 * 2];
    store_unit<kAligned>(d, p.n, unit, first_col, lane, x);
  }
}

/* The sums of all warps, in order: partial[warp][unit][i][lane]. */
template <int H, bool kAligned, typename C>
__device__ __forceinline__ void add_and_store(const Problem &p, const Destination<C> &d, const float *partial, int warp,
                                              int lane, int32_t first_col) {
  for (int unit = warp; unit < kUnits<H>; unit += kWarps) {
    float x[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
      x[i] = 0;
#pragma unroll
      for (int w = 0; w < kWarps; w++) x[i] += partial[((w * kUnits<H> + unit) * 8 + i) * 32 + lane];
    }
    store_unit<kAligned>(d, p.n, unit, first_col, lane, x);
  }
}

/* Four columns of a part's row, those from n on left out. */
__device__ __forceinline__ float4 load_part(const float *at, int32_t columns) {
  if (columns >= 4) return __ldcg(reinterpret_cast<const float4 *>(at));
  return make_float4(__ldcg(at), columns > 1 ? __ldcg(at + 1) : 0, columns > 2 ? __ldcg(at + 2) : 0, 0);
}

/* C(window, :) = Σ over its parts, in order, by the CTA that put in the last of them: a thread takes four columns of
 * every eighth row, and all its rows of several parts are in flight at a time. */
template <int H, bool kAligned, typename C>
__device__ __forceinline__ void add_parts(const Problem &p, const asparse_wcsr_split &split, int32_t first_col) {
  constexpr int kQuads = kWarpColumns / 4, kRows = 32 * kWarps / kQuads, kInFlight = H == 8 ? 8 : H == 16 ? 4 : 2;
  static_assert(kRows == 8, "a pass takes 8 rows");
  const Destination<C> d = window_of<H, C>(p, split.window);
  const int32_t row = threadIdx.x / kQuads, col = first_col + threadIdx.x % kQuads * 4;
  const int64_t slot_size = (int64_t)H * p.workspace_ld, pass_size = (int64_t)kRows * p.workspace_ld;
  const float *in = p.workspace + split.first_slot * slot_size + (int64_t)row * p.workspace_ld + col;
  if (col >= p.n) return;
  float4 sum[H / kRows] = {};
#pragma unroll kInFlight
  for (int32_t s = 0; s < split.n_slots; s++, in += slot_size) {
#pragma unroll
    for (int pass = 0; pass < H / kRows; pass++) {
      const float4 x = load_part(in + pass * pass_size, p.n - col);
      sum[pass] = make_float4(sum[pass].x + x.x, sum[pass].y + x.y, sum[pass].z + x.z, sum[pass].w + x.w);
    }
  }
#pragma unroll
  for (int pass = 0; pass < H / kRows; pass++) {
    const int32_t r = row + pass * kRows;
    if (r >= d.rows) return;
    if constexpr (kAligned && sizeof(C) == sizeof(float)) {
      store_four(d.row(r) + col, sum[pass], d.accumulate, d.stream);
    } else {
      const float x[4] = {sum[pass].x, sum[pass].y, sum[pass].z, sum[pass].w};
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (col + i < p.n) store_one(d.row(r) + col + i, x[i], d.accumulate);
    }
  }
}

__host__ __device__ __forceinline__ int32_t slices_of(int32_t n) { return (n - 1) / kWarpColumns + 1; }

/* Whether this CTA's part was the last of its window in this slice of columns; the count starts anew then. */
__device__ __forceinline__ bool is_last(const Problem &p, int32_t split, int32_t n_slots, int32_t first_col) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    int32_t *arrived = p.arrived + (int64_t)split * slices_of(p.n) + first_col / kWarpColumns;
    last = atomicAdd(arrived, 1) == n_slots - 1;
    if (last) *arrived = 0;
  }
  __syncthreads();
  return last;
}

/* One window, or a part of it, by all warps. shares: theirs. */
template <int H, bool kAligned, typename C>
__device__ __forceinline__ void finish_shared(const Problem &p, const Share *shares, int32_t first_col, int warp,
                                              int lane, const float (&acc)[H / 8][4][4]) {
  extern __shared__ float partial[];
#pragma unroll
  for (int unit = 0; unit < kUnits<H>; unit++) {
#pragma unroll
    for (int i = 0; i < 8; i++)
      partial[((warp * kUnits<H> + unit) * 8 + i) * 32 + lane] = acc[unit / 2][i / 2][unit % 2 + i % 2 * 2];
  }
  const bool nan = __syncthreads_or(has_nan<H>(acc)); /* all shares and partial sums are there */
  const int32_t window = shares[0].window, part = shares[0].part;
  const bool whole = part == ASPARSE_WCSR_SHARED;
  if (nan) {
    if (warp == 0) {
      const int32_t first_tile = shares[0].first_tile;
      const int32_t n_tiles = shares[kWarps - 1].first_tile + shares[kWarps - 1].n_tiles - first_tile;
      if (whole) multiply_stored<H>(p, first_tile, n_tiles, window_of<H, C>(p, window), first_col, lane);
      else multiply_stored<H>(p, first_tile, n_tiles, slot_of<H>(p, part), first_col, lane);
    }
  } else if (whole) {
    add_and_store<H, kAligned>(p, window_of<H, C>(p, window), partial, warp, lane, first_col);
  } else {
    add_and_store<H, kAligned>(p, slot_of<H>(p, part), partial, warp, lane, first_col);
  }
  if (whole) return;
  const int32_t index = __ldg(p.groups.slot_split + part);
  const asparse_wcsr_split split = p.groups.splits[index];
  if (is_last(p, index, split.n_slots, first_col)) add_parts<H, kAligned, C>(p, split, first_col);
}

template <int H, bool kAligned, typename C>
__global__ void __launch_bounds__(32 * kWarps, kCtas<H, kAligned>) wcsr_gather(const __grid_constant__ Problem p) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int32_t slice = (blockIdx.y << p.log2_together) + (blockIdx.x & ((1 << p.log2_together) - 1));
  if (slice * kWarpColumns >= p.n) return;
  __shared__ Share shares[kWarps]; /* not in registers, which are short while tiles are multiplied */
  __shared__ int32_t first_cols[kWarps];
  const int32_t index = (blockIdx.x >> p.log2_together) * kWarps + warp;
  const Share share = load_share(p, index);
  const int4 rows = load_first_columns(p, index, lane / 8);
  sm90::wait_for_previous();
  if (share.part == ASPARSE_WCSR_IDLE) return;
  if (lane == 0) shares[warp] = share, first_cols[warp] = slice * kWarpColumns;
  float acc[H / 8][4][4] = {};
  multiply_tiles<H, kAligned>(p, share.first_tile, share.first_tile + share.n_tiles - 1, rows, slice * kWarpColumns,
                              lane, acc);
  sm90::let_next_begin();
  __syncwarp();
  const int32_t first_col = first_cols[warp];
  if (shares[warp].part == ASPARSE_WCSR_ALONE) finish_alone<H, kAligned, C>(p, shares[warp], first_col, lane, acc);
  else finish_shared<H, kAligned, C>(p, shares, first_col, warp, lane, acc);
}

template <int H, bool kAligned, typename C> cudaError_t launch(const Problem &p, cudaStream_t stream) {
  const int bytes = p.groups.n_shared > 0 ? kSharedBytes<H> : 0;
  const auto kernel = wcsr_gather<H, kAligned, C>;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<H>);
  if (error != cudaSuccess) return error;
  const int32_t n_groups = p.accumulate ? p.groups.n_used : p.groups.n_groups;
  if (n_groups == 0) return cudaSuccess;
  const int32_t together = 1 << p.log2_together, rounds = (slices_of(p.n) - 1) / together + 1;
  return launch_overlapped(kernel, dim3(n_groups * together, rounds), 32 * kWarps, bytes, stream, p);
}

template <int H> cudaError_t launch(const Problem &p, bool aligned, bool bf16, cudaStream_t stream) {
  if (bf16) return aligned ? launch<H, true, __nv_bfloat16>(p, stream) : launch<H, false, __nv_bfloat16>(p, stream);
  return aligned ? launch<H, true, float>(p, stream) : launch<H, false, float>(p, stream);
}

bool aligned_to_16(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

/* Slices one after the other keep the slice of B in L2. Four at a time read A less often, which pays where A, B's slice
 * and C's (whose lines leave first, so that half of them count) do not stay in L2 together; and the parts of the
 * longest windows start with the first slices, not with the last of few. On an H200 with 60 MB this gains 7 % where it
 * is done (34 matrices, n = 256 and 1024) and would lose 5 % elsewhere (geometric means). */
int32_t log2_together(const asparse_cuda_wcsr *a, int64_t n, int64_t c_element) {
  const int64_t kept = 34 << 20, tile_bytes = kTileColumns * (a->window_height * 2 + 4);
  const int64_t bytes = a->n_tiles * tile_bytes + kWarpColumns * (a->k * INT64_C(2) + a->m * c_element / 2);
  const bool pays = bytes > kept || (a->groups.n_splits > 0 && n <= 4 * kWarpColumns);
  if (!pays || a->groups.n_groups > INT32_MAX / 4) return 0;
  return n > 2 * kWarpColumns ? 2 : n > kWarpColumns ? 1 : 0;
}

int32_t workspace_ld(int64_t n) { return static_cast<int32_t>((n + 7) / 8 * 8); }

/* Preconditions of cuda_wcsr.h. */
bool is_valid(const asparse_cuda_wcsr *a, int64_t n, int64_t ldb, int64_t ldc, asparse_dtype c_dtype,
              const void *d_workspace) {
  const int32_t h = a->window_height;
  return (h == 8 || h == 16 || h == 32 || h == 64) && a->m >= 0 && n >= 0 && n <= INT64_C(65535) * kWarpColumns &&
         ldb >= n && ldb <= INT32_MAX && ldc >= n && ldc <= INT32_MAX && aligned_to_16(a->window_col_idx) &&
         aligned_to_16(a->values) && aligned_to_16(a->groups.shares) && aligned_to_16(d_workspace) &&
         (a->groups.n_splits == 0 || (d_workspace && a->arrived)) &&
         (c_dtype == ASPARSE_FP32 || c_dtype == ASPARSE_BF16);
}

} // namespace

size_t asparse_cuda_wcsr_workspace(const asparse_cuda_wcsr *a, int64_t n) {
  return sizeof(float) * a->groups.n_slots * a->window_height * workspace_ld(n);
}

cudaError_t asparse_cuda_wcsr_multiply(const asparse_cuda_wcsr *a, int64_t n, const uint16_t *d_b, int64_t ldb,
                                       asparse_dtype c_dtype, void *d_c, int64_t ldc, bool accumulate,
                                       void *d_workspace, cudaStream_t stream) {
  if (!is_valid(a, n, ldb, ldc, c_dtype, d_workspace)) return cudaErrorInvalidValue;
  if (a->m == 0 || n == 0) return cudaSuccess;
  const bool bf16 = c_dtype == ASPARSE_BF16;
  Problem p = {};
  p.m = a->m;
  p.n = static_cast<int32_t>(n);
  p.col_idx = a->window_col_idx;
  p.row_mask = a->row_mask;
  p.values = a->values;
  p.row_map = a->row_map;
  p.groups = a->groups;
  p.log2_together = log2_together(a, n, bf16 ? sizeof(uint16_t) : sizeof(float));
  p.b = d_b;
  p.ldb = static_cast<int32_t>(ldb);
  p.b_vector = ldb % kLaneColumns == 0 && aligned_to_16(d_b);
  p.c = d_c;
  p.ldc = static_cast<int32_t>(ldc);
  p.accumulate = accumulate;
  p.workspace = static_cast<float *>(d_workspace);
  p.workspace_ld = workspace_ld(n);
  p.arrived = a->arrived;
  const bool c_vector = ldc % (bf16 ? 8 : 4) == 0 && aligned_to_16(d_c);
  const bool aligned = p.b_vector && c_vector && n % kLaneColumns == 0;
  switch (a->window_height) {
  case 8: return launch<8>(p, aligned, bf16, stream);
  case 16: return launch<16>(p, aligned, bf16, stream);
  case 32: return launch<32>(p, aligned, bf16, stream);
  default: return launch<64>(p, aligned, bf16, stream);
  }
}
