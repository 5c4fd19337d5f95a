/* Device parts the tensor-core steps of the BCSR ladder share: one 64 × 64 block of A times 64 × N of B, and the
 * direct store of the result. */
#ifndef ASPARSE_BCSR_TILE_CUH
#define ASPARSE_BCSR_TILE_CUH

#include "kernels/cuda_bcsr.h"
#include "kernels/sm90.cuh"

namespace bcsr {

/* A box is 64 rows of 128 bytes in shared memory, swizzled: 16-byte piece p of row r stands at piece p ^ (r % 8). */
constexpr int kBlock = ASPARSE_CUDA_BLOCK;
constexpr int kBoxBytes = 64 * 128;
constexpr int kBoxColumnsB = 64; /* bf16 */
constexpr int kBoxColumnsC = 32; /* fp32 */
constexpr int kWarpgroup = 128;

/* Byte offset of (row, byte of the row) in a swizzled box. */
__device__ __forceinline__ int swizzled(int row, int byte) { return row * 128 + (byte ^ (row % 8) << 4); }

template <int Count> __device__ __forceinline__ void clear(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; i++) d[i] = 0.0f;
}

/* d += block · slice, asynchronously, as one committed group. block: one box [64 × 64]; slice: N / 64 boxes, box i
 * holding columns 64·i … of the 64 rows of B. A step of 16 in k is 32 bytes of a row of the block (K-major) and 16
 * rows of the slice (MN-major: leading offset from box to box, stride offset from 8 rows to 8 rows). */
template <int N>
__device__ __forceinline__ void multiply_block(float (&d)[N / 2], const uint8_t *block, const uint8_t *slice) {
  uint64_t a = sm90::wgmma_descriptor(block, 16, 1024);
  uint64_t b = sm90::wgmma_descriptor(slice, kBoxBytes, 1024);
  sm90::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kBlock / 16; step++) sm90::wgmma<N>(d, a + step * (32 >> 4), b + step * (2048 >> 4));
  sm90::wgmma_commit();
}

/* c(row.., column..) = d, straight from the accumulators, nothing outside [m × n]. thread: 0 … 127 of the warpgroup. */
template <int N>
__device__ __forceinline__ void store_direct(const float (&d)[N / 2], int thread, int64_t row, int column, int m, int n,
                                             float *c, int64_t ldc) {
  const bool pairs = ldc % 2 == 0 && reinterpret_cast<uintptr_t>(c) % 8 == 0;
  row += thread / 32 * 16 + thread % 32 / 4;
  column += thread % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    if (row + 8 * half >= m) return;
    float *c_row = c + (row + 8 * half) * ldc;
#pragma unroll
    for (int j = 0; j < N / 8; j++) {
      const int first = column + 8 * j;
      const float left = d[4 * j + 2 * half], right = d[4 * j + 2 * half + 1];
      if (pairs && first + 1 < n) {
        *reinterpret_cast<float2 *>(c_row + first) = make_float2(left, right);
      } else {
        if (first < n) c_row[first] = left;
        if (first + 1 < n) c_row[first + 1] = right;
      }
    }
  }
}

} // namespace bcsr

#endif
