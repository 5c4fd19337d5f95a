/* Device parts the register-gather WCSR kernels share.
 *
 * Cᵀ = Bᵀ·Aᵀ, so that a window's rows are the narrow side of the MMA. A warp computes tiles of one task × 64 dense
 * columns, lane = 4·g + t. For each tile the lane needs 16 bytes (dense columns 8g … 8g+7) of the gathered rows
 * 4t … 4t+3, and of the h × 16 values the 8 bytes of row g, columns 4t … 4t+3 (of every 8 rows). The order of the 16
 * compressed columns within an MMA is free as long as both operands agree: the fragment's positions 2t, 2t+1, 2t+8,
 * 2t+9 take columns 4t … 4t+3. So is the order of the dense columns: MMA q takes columns 8g+2q and 8g+2q+1 as rows g
 * and g+8. Byte-permutes of the lane's own registers then make the fragments of four MMAs, and the lane ends with 8
 * consecutive columns of C in rows 2t and 2t+1 of every 8. No shared memory, no barrier.
 *
 * The first-level cache serves a 16-byte load eight lanes at a time, each row they touch by itself. So eight neighbours
 * load 128 bytes of one row, and what a lane needs of rows 4t … it gets from lane 8t + g: 16 passes through the cache's
 * data pipe for a tile and 16 for the shuffles, where loading in place would take 64. */
#ifndef ASPARSE_WCSR_TILE_CUH
#define ASPARSE_WCSR_TILE_CUH

#include "kernels/cuda_wcsr.h"
#include "kernels/mma.cuh"
#include "kernels/result.cuh"

namespace wcsr {

constexpr int kTileColumns = 16; /* compressed columns of a tile */
constexpr int kWarpColumns = 64; /* dense columns of a warp */
constexpr int kLaneColumns = 8;  /* dense columns of a lane: 16 bytes of B */

/* CTAs of four warps on a multiprocessor: the register budget 65536 / (128 · CTAs) that each height fits without
 * spills. */
template <int H, bool kAligned> constexpr int kCtas = H == 64 ? 2 : H == 32 ? 3 : !kAligned ? 4 : H == 16 ? 5 : 6;

struct Problem {
  int32_t m, n;
  const int32_t *col_idx;     /* [tiles · 16] */
  const uint64_t *row_mask;   /* [tiles · 16] */
  const uint16_t *values;     /* [tiles · h · 16] */
  const int32_t *row_map;     /* [m] row of C for each row of the windows; NULL: the same */
  asparse_wcsr_groups groups; /* counts, and arrays on the device */
  int32_t log2_together;      /* of the slices of columns that neighbouring CTAs take of a group: 1, 2 or 4 */
  const uint16_t *b;          /* [k × n] */
  int32_t ldb;
  bool b_vector; /* 16-byte loads of whole column groups are possible */
  void *c;       /* [m × n], float or __nv_bfloat16 */
  int32_t ldc;
  bool accumulate;
  float *workspace; /* [n_slots × h × workspace_ld] */
  int32_t workspace_ld;
  int32_t *arrived; /* [n_splits × column slices] parts that are in the workspace */
};

template <int H> struct Tile {
  uint4 b[4];     /* rows 4o … 4o+3 of the tile's gathered rows, columns 8i … 8i+7, lane = 8·o + i */
  uint2 a[H / 8]; /* row g of every 8, columns 4t … 4t+3 */
};

/* Where results go: row r, column j of the window at out[row(r) · ld + j]; r < rows, j < n. */
template <typename C> struct Destination {
  C *out;
  const int32_t *row_map; /* of the window's rows; NULL: out is the window's first row */
  int32_t ld, rows;
  bool accumulate, stream;

  __device__ __forceinline__ C *row(int32_t r) const { return out + (int64_t)(row_map ? __ldg(row_map + r) : r) * ld; }
};

template <int H> __device__ __forceinline__ Destination<float> slot_of(const Problem &p, int32_t slot) {
  return {p.workspace + (int64_t)slot * H * p.workspace_ld, nullptr, p.workspace_ld, H, false, false};
}

template <int H, typename C> __device__ __forceinline__ Destination<C> window_of(const Problem &p, int32_t window) {
  const int32_t row = window * H, rows = min(H, p.m - row);
  C *c = static_cast<C *>(p.c);
  if (p.row_map) return {c, p.row_map + row, p.ldc, rows, p.accumulate, true};
  return {c + (int64_t)row * p.ldc, nullptr, p.ldc, rows, p.accumulate, true};
}

/* What a share begins with. */
struct Share {
  int32_t first_tile, n_tiles, window, part;
};
static_assert(sizeof(asparse_wcsr_share) == sizeof(Share) + kTileColumns * sizeof(int32_t), "read 16 bytes at a time");

/* Here and of B, ordinary loads: see sm90::wait_for_previous. */
__device__ __forceinline__ Share load_share(const Problem &p, int32_t index) {
  const int4 packed = *reinterpret_cast<const int4 *>(p.groups.shares + index);
  return {packed.x, packed.y, packed.z, packed.w};
}

/* Four columns of its first tile. */
__device__ __forceinline__ int4 load_first_columns(const Problem &p, int32_t index, int octet) {
  return reinterpret_cast<const int4 *>(p.groups.shares[index].columns)[octet];
}

__device__ __forceinline__ int4 load_columns(const Problem &p, int32_t tile, int octet) {
  return __ldg(reinterpret_cast<const int4 *>(p.col_idx + (int64_t)tile * kTileColumns) + octet);
}

/* Columns col … col+7 of row of B; zeros for padding and beyond n. */
template <bool kAligned> __device__ __forceinline__ uint4 load_b(const Problem &p, int32_t row, int32_t col) {
  uint4 x = make_uint4(0, 0, 0, 0);
  if (row < 0 || col >= p.n) return x;
  const uint16_t *at = p.b + (int64_t)row * p.ldb + col;
  if (kAligned || (p.b_vector && col + kLaneColumns <= p.n)) {
    x = *reinterpret_cast<const uint4 *>(at);
  } else {
    uint32_t e[kLaneColumns];
#pragma unroll
    for (int i = 0; i < kLaneColumns; i++) e[i] = col + i < p.n ? at[i] : 0;
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

/* By all lanes of the warp. */
template <int H> __device__ __forceinline__ void multiply_tile(const Tile<H> &x, int lane, float (&acc)[H / 8][4][4]) {
  const uint32_t(&loaded)[4][4] = reinterpret_cast<const uint32_t(&)[4][4]>(x.b);
  const int from = lane % 4 * 8 + lane / 4;
#pragma unroll
  for (int q = 0; q < 4; q++) {
    uint32_t b[4][4]; /* rows 4t … 4t+3, columns 8g … 8g+7 */
#pragma unroll
    for (int i = 0; i < 4; i++) b[i][q] = __shfl_sync(0xffffffff, loaded[i][q], from);
    const uint32_t fragment[4] = {pair_low(b[0][q], b[1][q]), pair_high(b[0][q], b[1][q]), pair_low(b[2][q], b[3][q]),
                                  pair_high(b[2][q], b[3][q])};
#pragma unroll
    for (int j = 0; j < H / 8; j++) mma_m16n8k16(acc[j][q], fragment, x.a[j]);
  }
}

/* acc += tiles tile … last of the 64 columns from first_col on; the next tile's loads fly while this one multiplies.
 * rows: the columns of the first tile that the lane loads. */
template <int H, bool kAligned>
__device__ __forceinline__ void multiply_tiles(const Problem &p, int32_t tile, int32_t last, int4 rows,
                                               int32_t first_col, int lane, float (&acc)[H / 8][4][4]) {
  if (tile > last) return;
  const int octet = lane / 8;
  const int32_t col = first_col + lane % 8 * kLaneColumns;
  Tile<H> now, next;
  int4 next_rows = load_columns(p, min(tile + 1, last), octet);
  load_tile<H, kAligned>(p, tile, rows, col, lane, now);
#pragma unroll 2
  for (; tile < last; tile++) {
    rows = next_rows;
    next_rows = load_columns(p, min(tile + 2, last), octet);
    load_tile<H, kAligned>(p, tile + 1, rows, col, lane, next);
    multiply_tile<H>(now, lane, acc);
    now = next;
  }
  multiply_tile<H>(now, lane, acc);
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

/* x: row first_row + 2t, columns 8g … 8g+7 of the 64 from first_col on. By all lanes of the warp: eight neighbours
 * store 128 bytes of a row, lane 8·o + i its columns 4i … and 32 + 4i … of row first_row + 2o. Of every pair of lanes
 * that a lane has columns for, one asks it in the first round of shuffles and the other in the second. */
__device__ __forceinline__ void store_lines(const Destination<float> &d, int32_t n, int32_t first_row,
                                            int32_t first_col, int lane, const float (&x)[8]) {
  const int i = lane % 8, octet = lane / 8, odd = i % 2, right = lane / 16; /* right: g ≥ 4 */
  float y[2][4];
#pragma unroll
  for (int e = 0; e < 4; e++) {
    const float a = right ? x[4 + e] : x[e], b = right ? x[e] : x[4 + e];
    const float first = __shfl_sync(0xffffffff, a, 4 * (i / 2 + 4 * odd) + octet);
    const float second = __shfl_sync(0xffffffff, b, 4 * (i / 2 + 4 - 4 * odd) + octet);
    y[0][e] = odd ? second : first;
    y[1][e] = odd ? first : second;
  }
  const int32_t row = first_row + 2 * octet, col = first_col + 4 * i;
  if (row >= d.rows) return;
  float *out = d.row(row);
  if (col < n) store_four(out + col, make_float4(y[0][0], y[0][1], y[0][2], y[0][3]), d.accumulate, d.stream);
  if (col + 32 < n) store_four(out + col + 32, make_float4(y[1][0], y[1][1], y[1][2], y[1][3]), d.accumulate, d.stream);
}

/* The same, eight columns being 16 bytes: lane 8·o + i stores columns 8i … 8i+7. */
__device__ __forceinline__ void store_lines(const Destination<__nv_bfloat16> &d, int32_t n, int32_t first_row,
                                            int32_t first_col, int lane, const float (&x)[8]) {
  const int i = lane % 8, octet = lane / 8;
  float y[8];
#pragma unroll
  for (int e = 0; e < 8; e++) y[e] = __shfl_sync(0xffffffff, x[e], 4 * i + octet);
  const int32_t row = first_row + 2 * octet, col = first_col + kLaneColumns * i;
  if (row < d.rows && col < n) store_eight(d.row(row) + col, y, d.accumulate);
}

template <typename C>
__device__ __forceinline__ void store_elements(const Destination<C> &d, int32_t n, int32_t row, int32_t col,
                                               const float (&x)[8]) {
  if (row >= d.rows) return;
  C *out = d.row(row) + col;
#pragma unroll
  for (int i = 0; i < kLaneColumns; i++) {
    if (col + i < n) store_one(out + i, x[i], d.accumulate);
  }
}

/* The same result from stored entries alone, for tiles where a padding zero met Inf or NaN of B. By one warp. */
template <int H, typename C>
__device__ __noinline__ void multiply_stored(const Problem &p, int32_t first_tile, int32_t n_tiles, Destination<C> d,
                                             int32_t first_col, int lane) {
  const int64_t begin = (int64_t)first_tile * kTileColumns, end = begin + (int64_t)n_tiles * kTileColumns;
  const int32_t end_col = min(first_col + kWarpColumns, p.n);
  for (int32_t row = 0; row < d.rows; row++) {
    C *out = d.row(row);
    for (int32_t col = first_col + lane; col < end_col; col += 32) {
      float sum = 0;
      for (int64_t e = begin; e < end; e++) {
        if (!(p.row_mask[e] >> row & 1)) continue;
        int64_t in_tile = e % kTileColumns;
        uint16_t value = p.values[(e - in_tile) * H + row * kTileColumns + in_tile];
        uint16_t b = p.b[(int64_t)p.col_idx[e] * p.ldb + col];
        sum = fmaf(__bfloat162float(__ushort_as_bfloat16(value)), __bfloat162float(__ushort_as_bfloat16(b)), sum);
      }
      store_one(out + col, sum, d.accumulate);
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

} // namespace wcsr

#endif
