/* SELL with resident B: a CTA keeps 8 … 64 columns of all rows of B in shared memory and streams its share of A past
 * them. A warp computes one slice at a time; a lane owns one segment × 8 columns, so that an entry costs it one
 * 16-byte read of shared memory, eight exact widenings and eight multiply-adds. The parts of a row that is cut are
 * added by shuffles, always in the same order.
 *
 * What limits it: the four entries that a multiprocessor's schedulers work on at a time take 16 cycles of shared
 * memory and some 21 instructions of each scheduler. */
#include "kernels/cuda_sell.h"
#include "kernels/launch.cuh"
#include "kernels/result.cuh"
#include "kernels/sm90.cuh"

#include <algorithm>

namespace {

constexpr int kMostWarps = 32;  /* with at most 64 registers a thread */
constexpr int kLaneColumns = 8; /* of a lane: 16 bytes of B */
constexpr int kZeroPieces = 8;  /* 128 bytes of zeros behind B, for padding */

struct Problem {
  int32_t k, n;
  int32_t log2_pieces; /* of 16 bytes in a resident row: columns / 8 = 1, 2, 4 or 8 */
  int32_t n_slices;
  const asparse_sell_slice *slices; /* [n_slices] */
  const int32_t *rows;              /* [n_slices · height] */
  const uint4 *entries;             /* quads */
  const uint16_t *b;                /* [k × n] */
  int64_t ldb;
  void *c; /* [m × n] */
  int64_t ldc;
  bool accumulate;
  /* 65536 and 16, as numbers that the compiler does not know: with them, shifts run on the multiply pipe, which would
   * idle, and not on the ALU, which the masks fill. */
  uint32_t two_to_16, piece_bytes;
};

extern __shared__ uint4 resident[]; /* [(k << log2_pieces) + kZeroPieces] */

/* 16 bytes to shared memory, asynchronously (Data Movement and Conversion Instructions: cp.async). */
__device__ __forceinline__ void copy_piece(uint4 *to, const uint16_t *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(sm90::shared_address(to)), "l"(from) : "memory");
}

/* Columns first_col … of all rows of B; zeros beyond column n and behind row k. By ordinary loads: see
 * sm90::wait_for_previous. */
template <bool kAligned> __device__ __forceinline__ void fill(const Problem &p, int32_t first_col) {
  const int32_t pieces = p.k << p.log2_pieces, in_row = (1 << p.log2_pieces) - 1;
  for (int32_t i = threadIdx.x; i < pieces + kZeroPieces; i += blockDim.x) {
    const int32_t col = first_col + (i & in_row) * kLaneColumns;
    const uint16_t *from = p.b + (i >> p.log2_pieces) * p.ldb + col;
    if (i >= pieces || col >= p.n) {
      resident[i] = make_uint4(0, 0, 0, 0);
    } else if (kAligned) {
      copy_piece(&resident[i], from);
    } else {
      uint32_t x[kLaneColumns];
#pragma unroll
      for (int j = 0; j < kLaneColumns; j++) x[j] = col + j < p.n ? from[j] : 0;
      resident[i] = make_uint4(x[0] | x[1] << 16, x[2] | x[3] << 16, x[4] | x[5] << 16, x[6] | x[7] << 16);
    }
  }
}

__device__ __forceinline__ void wait_for_fill() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

__device__ __forceinline__ uint4 load_piece(uint32_t address) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(address));
  return x;
}

/* sum += entry · the lane's piece of its row of B. */
__device__ __forceinline__ void multiply_entry(const Problem &p, uint32_t entry, uint32_t base, float (&sum)[8]) {
  const uint4 b = load_piece((entry & 0xffffu) * p.piece_bytes + base);
  const uint32_t pairs[4] = {b.x, b.y, b.z, b.w};
  const float a = bf16_high(entry);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    sum[2 * i] = fmaf(a, __uint_as_float(pairs[i] * p.two_to_16), sum[2 * i]);
    sum[2 * i + 1] = fmaf(a, bf16_high(pairs[i]), sum[2 * i + 1]);
  }
}

__device__ __forceinline__ void multiply_quad(const Problem &p, const uint4 &quad, uint32_t base, float (&sum)[8]) {
  multiply_entry(p, quad.x, base, sum);
  multiply_entry(p, quad.y, base, sum);
  multiply_entry(p, quad.z, base, sum);
  multiply_entry(p, quad.w, base, sum);
}

/* A slice that a warp is about to compute: the loads of its first quads are under way. */
struct Stream {
  const uint4 *at; /* the lane's segment of the first quad */
  uint32_t n_quads, parts;
  int32_t row; /* -1: none */
  uint4 quads[2];
};

__device__ __forceinline__ Stream open_slice(const Problem &p, int32_t slice, int32_t segment, int32_t height) {
  const uint2 packed = __ldg(reinterpret_cast<const uint2 *>(p.slices) + slice);
  Stream s;
  s.at = p.entries + static_cast<int64_t>(packed.x) * height + segment;
  s.n_quads = packed.y & 0xffffu;
  s.parts = packed.y >> 16;
  s.row = __ldg(p.rows + static_cast<int64_t>(slice) * height + segment);
  s.quads[0] = __ldg(s.at); /* past the end, too: two quads of padding follow the last slice */
  s.quads[1] = __ldg(s.at + height);
  return s;
}

/* base: where the lane's piece of row 0 lies in shared memory. */
__device__ __forceinline__ void multiply_slice(const Problem &p, const Stream &s, uint32_t base, int32_t height,
                                               float (&sum)[8]) {
  uint4 now = s.quads[0], next = s.quads[1];
  const uint4 *at = s.at + 2 * height;
#pragma unroll 3
  for (uint32_t q = 0; q < s.n_quads; q++, at += height) {
    const uint4 after = __ldg(at); /* past the end of the slice, too: see open_slice */
    multiply_quad(p, now, base, sum);
    now = next;
    next = after;
  }
}

/* The sum over neighbouring segments, in each of them; lanes of a segment are neighbours. */
__device__ __forceinline__ void add_parts(uint32_t parts, int32_t log2_pieces, float (&sum)[8]) {
  for (uint32_t distance = 1; distance < parts; distance *= 2) {
#pragma unroll
    for (int i = 0; i < 8; i++) sum[i] += __shfl_xor_sync(0xffffffff, sum[i], distance << log2_pieces);
  }
}

template <typename C, bool kAligned>
__device__ __forceinline__ void store(const Problem &p, int32_t row, int32_t col, const float (&sum)[8]) {
  C *out = static_cast<C *>(p.c) + row * p.ldc + col;
  if constexpr (kAligned) {
    if (col < p.n) store_eight(out, sum, p.accumulate);
  } else {
#pragma unroll
    for (int i = 0; i < kLaneColumns; i++) {
      if (col + i < p.n) store_one(out + i, sum[i], p.accumulate);
    }
  }
}

/* Slices are dealt to all warps of the row groups there and back, longest first. */
__device__ __forceinline__ int32_t dealt_slice(int32_t round, int32_t warp) {
  const int32_t n_warps = gridDim.y * (blockDim.x / 32), first = warp * gridDim.y + blockIdx.y;
  return round * n_warps + (round % 2 == 0 ? first : n_warps - 1 - first);
}

template <typename C, bool kAligned>
__global__ void __launch_bounds__(32 * kMostWarps) sell_resident(const __grid_constant__ Problem p) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int32_t height = 32 >> p.log2_pieces, segment = lane >> p.log2_pieces;
  const int32_t piece = lane & ((1 << p.log2_pieces) - 1);
  const uint32_t base = sm90::shared_address(&resident[piece]);
  const int32_t first_col = blockIdx.x * (kLaneColumns << p.log2_pieces), col = first_col + piece * kLaneColumns;
  int32_t round = 0, slice = dealt_slice(0, warp);
  Stream stream = {};
  if (slice < p.n_slices) stream = open_slice(p, slice, segment, height);
  sm90::wait_for_previous();
  fill<kAligned>(p, first_col);
  wait_for_fill();
  while (slice < p.n_slices) {
    float sum[8] = {};
    multiply_slice(p, stream, base, height, sum);
    add_parts(stream.parts, p.log2_pieces, sum);
    const bool first_part = (segment & (stream.parts - 1)) == 0, nothing = p.accumulate && stream.n_quads == 0;
    const int32_t row = stream.row;
    slice = dealt_slice(++round, warp);
    if (slice < p.n_slices) stream = open_slice(p, slice, segment, height);
    else sm90::let_next_begin();
    if (first_part && row >= 0 && !nothing) store<C, kAligned>(p, row, col, sum);
  }
}

template <typename C, bool kAligned>
cudaError_t launch(const Problem &p, dim3 grid, int32_t warps, cudaStream_t stream) {
  const int32_t bytes = ((p.k << p.log2_pieces) + kZeroPieces) * static_cast<int32_t>(sizeof(uint4));
  const cudaError_t error =
      cudaFuncSetAttribute(sell_resident<C, kAligned>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  return launch_overlapped(sell_resident<C, kAligned>, grid, 32 * warps, bytes, stream, p);
}

bool aligned_to_16(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

bool is_valid(const asparse_cuda_sell *a, int64_t n, int64_t ldb, asparse_dtype c_dtype, int64_t ldc) {
  const int32_t columns = a->columns;
  if (columns != 8 && columns != 16 && columns != 32 && columns != 64) return false;
  return a->m >= 0 && a->k >= 0 && a->k <= asparse_sell_most_k(columns) && a->height == 256 / columns &&
         a->n_slices >= 0 && a->n_slices <= INT32_MAX / 2 && a->row_groups >= 1 && a->row_groups <= 65535 && n >= 0 &&
         n <= INT32_MAX - columns && ldb >= n && ldc >= n && (c_dtype == ASPARSE_FP32 || c_dtype == ASPARSE_BF16) &&
         aligned_to_16(a->slices) && aligned_to_16(a->entries);
}

} // namespace

cudaError_t asparse_cuda_sell_multiply(const asparse_cuda_sell *a, int64_t n, const uint16_t *d_b, int64_t ldb,
                                       asparse_dtype c_dtype, void *d_c, int64_t ldc, bool accumulate,
                                       cudaStream_t stream) {
  if (!is_valid(a, n, ldb, c_dtype, ldc)) return cudaErrorInvalidValue;
  if (a->m == 0 || n == 0) return cudaSuccess;
  Problem p = {};
  p.k = a->k;
  p.n = static_cast<int32_t>(n);
  p.log2_pieces = a->columns == 8 ? 0 : a->columns == 16 ? 1 : a->columns == 32 ? 2 : 3;
  p.n_slices = a->n_slices;
  p.slices = a->slices;
  p.rows = a->rows;
  p.entries = reinterpret_cast<const uint4 *>(a->entries);
  p.b = d_b;
  p.ldb = ldb;
  p.c = d_c;
  p.ldc = ldc;
  p.accumulate = accumulate;
  p.two_to_16 = 65536;
  p.piece_bytes = sizeof(uint4);
  const int64_t c_piece = c_dtype == ASPARSE_FP32 ? 4 : 8;
  const bool aligned = n % kLaneColumns == 0 && ldb % kLaneColumns == 0 && ldc % c_piece == 0 && aligned_to_16(d_b) &&
                       aligned_to_16(d_c);
  /* Even rounds of slices over the warps of a CTA. */
  const int32_t slices = (a->n_slices - 1) / a->row_groups + 1, rounds = (slices - 1) / kMostWarps + 1;
  const int32_t warps = (slices - 1) / rounds + 1;
  const dim3 grid(static_cast<unsigned>((n - 1) / a->columns + 1), a->row_groups);
  if (c_dtype == ASPARSE_FP32)
    return aligned ? launch<float, true>(p, grid, warps, stream) : launch<float, false>(p, grid, warps, stream);
  return aligned ? launch<__nv_bfloat16, true>(p, grid, warps, stream)
                 : launch<__nv_bfloat16, false>(p, grid, warps, stream);
}
