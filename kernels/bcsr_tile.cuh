/* Device parts the tensor-core steps of the BCSR ladder share: one 64 × 64 block of A times 64 × N of B, the repair of
 * NaNs, and the store of the result straight from the accumulators. */
#ifndef ASPARSE_BCSR_TILE_CUH
#define ASPARSE_BCSR_TILE_CUH

#include "kernels/bcsr_element.cuh"
#include "kernels/sm90.cuh"

namespace bcsr {

/* A box is 64 rows of 128 bytes in shared memory, swizzled: 16-byte piece p of row r stands at piece p ^ (r % 8). */
constexpr int kBoxBytes = 64 * 128;
constexpr int kBoxColumnsB = 64; /* bf16 */
constexpr int kWarpgroup = 128;
constexpr int kSwizzlePeriod = 1024; /* boxes start at multiples of it */

/* Byte offset of (row, byte of the row) in a swizzled box. */
__device__ __forceinline__ int swizzled(int row, int byte) { return row * 128 + (byte ^ (row % 8) << 4); }

/* Dynamic shared memory from the first place a box can start at; kSwizzlePeriod bytes more are asked for. */
__device__ __forceinline__ uint8_t *aligned_shared() {
  extern __shared__ uint8_t unaligned[];
  return unaligned + (kSwizzlePeriod - sm90::shared_address(unaligned) % kSwizzlePeriod) % kSwizzlePeriod;
}

template <int Count> __device__ __forceinline__ void clear(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; i++) d[i] = 0.0f;
}

/* Descriptors of a block of A, one box [64 × 64], K-major, and of a slice of B: N / 64 boxes, box i holding columns
 * 64·i … of 64 rows of B, MN-major (leading offset from box to box, stride offset from 8 rows to 8 rows). */
__device__ __forceinline__ uint64_t block_descriptor(sm90::Shared block) {
  return sm90::wgmma_descriptor(block, 16, 1024);
}
__device__ __forceinline__ uint64_t slice_descriptor(sm90::Shared slice) {
  return sm90::wgmma_descriptor(slice, kBoxBytes, 1024);
}

/* d += block · slice, by their descriptors, asynchronously, as one committed group. A step of 16 in k is 32 bytes of a
 * row of the block and 16 rows of the slice. */
template <int N> __device__ __forceinline__ void multiply_block(float (&d)[N / 2], uint64_t block, uint64_t slice) {
  sm90::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kBlock / 16; step++)
    sm90::wgmma<N>(d, block + step * (32 >> 4), slice + step * (2048 >> 4));
  sm90::wgmma_commit();
}

/* Row and column of d[4·j + 2·half + {0, 1}] in the warpgroup's part of a tile (sm90.cuh, wgmma). */
__device__ __forceinline__ int fragment_row(int half) {
  const int thread = threadIdx.x % kWarpgroup;
  return thread / 32 * 16 + thread % 32 / 4 + 8 * half;
}
__device__ __forceinline__ int fragment_column(int j) { return 8 * j + threadIdx.x % 4 * 2; }

/* Padding zeros times Inf or NaN of B made these NaNs, or A·B has them: stored entries tell. row, column: of the
 * warpgroup's part. */
template <int Count>
__device__ __forceinline__ void repair(float (&d)[Count], const asparse_cuda_bcsr &a, const asparse_cuda_dense_pair &bc,
                                       int64_t row, int64_t column) {
  bool nan = false;
#pragma unroll
  for (int i = 0; i < Count; i++) nan |= d[i] != d[i];
  if (__any_sync(0xffffffff, nan)) {
#pragma unroll
    for (int i = 0; i < Count; i++)
      if (d[i] != d[i])
        d[i] = stored_sum(a, bc, row + fragment_row(i / 2 % 2), column + fragment_column(i / 4) + i % 2);
    __syncwarp();
  }
}

/* c(row.., column..) = or += d, nothing outside [m × n]. */
template <int N, typename T>
__device__ __forceinline__ void store_elements(const float (&d)[N / 2], T *c, int m, const asparse_cuda_dense_pair &bc,
                                               int64_t row, int column) {
  const bool pairs = bc.ldc % 2 == 0 && reinterpret_cast<uintptr_t>(c) % (2 * sizeof(T)) == 0;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int64_t c_row = row + fragment_row(half);
    if (c_row >= m) return;
#pragma unroll
    for (int j = 0; j < N / 8; j++) {
      const int64_t c_column = column + fragment_column(j);
      const bool left = c_column < bc.n, right = c_column + 1 < bc.n;
      T *at = c + c_row * bc.ldc + c_column;
      float x = d[4 * j + 2 * half], y = d[4 * j + 2 * half + 1];
      if (bc.accumulate) {
        if (left) x += load(at);
        if (right) y += load(at + 1);
      }
      if (pairs && right) {
        store_pair(at, x, y);
      } else {
        if (left) store(at, x);
        if (right) store(at + 1, y);
      }
    }
  }
}

template <int N>
__device__ __forceinline__ void store_direct(const float (&d)[N / 2], int m, const asparse_cuda_dense_pair &bc,
                                             int64_t row, int column) {
  if (bc.c_dtype == ASPARSE_BF16) store_elements<N>(d, static_cast<__nv_bfloat16 *>(bc.c), m, bc, row, column);
  else store_elements<N>(d, static_cast<float *>(bc.c), m, bc, row, column);
}

} // namespace bcsr

#endif
