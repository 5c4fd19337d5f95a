/* Packing rows: threads of a row copy its pieces, rows are strided over the grid. */
#include "kernels/cuda_pack.h"

#include <algorithm>

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostCtas = INT64_C(1) << 20; /* rows beyond are strided over */

/* Strides and lengths in pieces of type T. */
template <typename T>
__global__ void __launch_bounds__(kThreads) pack_rows(int64_t n_rows, const int32_t *__restrict__ rows, int64_t length,
                                                      const T *__restrict__ b, int64_t ldb, T *__restrict__ packed) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < n_rows; i += step) {
    const int64_t row = rows ? rows[i] : i;
    for (int64_t j = threadIdx.x; j < length; j += blockDim.x) packed[i * length + j] = b[row * ldb + j];
  }
}

template <typename T>
cudaError_t launch(int64_t n_rows, const int32_t *d_rows, int64_t row_bytes, const void *d_b, int64_t ld_bytes,
                   void *d_packed, cudaStream_t stream) {
  const int64_t size = sizeof(T), length = row_bytes / size;
  unsigned x = 1;
  while (x < kThreads && x < length) x *= 2;
  const unsigned y = kThreads / x;
  const int64_t ctas = std::min((n_rows - 1) / y + 1, kMostCtas);
  pack_rows<T><<<static_cast<unsigned>(ctas), dim3(x, y), 0, stream>>>(
      n_rows, d_rows, length, static_cast<const T *>(d_b), ld_bytes / size, static_cast<T *>(d_packed));
  return cudaGetLastError();
}

} // namespace

cudaError_t asparse_cuda_pack(asparse_dtype dtype, int64_t n_rows, const int32_t *d_rows, int64_t n, const void *d_b,
                              int64_t ldb, void *d_packed, cudaStream_t stream) {
  const int64_t size = dtype == ASPARSE_FP64 ? 8 : dtype == ASPARSE_FP32 ? 4 : 2;
  if (n_rows < 0 || n < 0 || ldb < n) return cudaErrorInvalidValue;
  if (n_rows == 0 || n == 0) return cudaSuccess;
  const uint64_t bits = reinterpret_cast<uintptr_t>(d_b) | reinterpret_cast<uintptr_t>(d_packed) |
                        static_cast<uint64_t>(n * size) | static_cast<uint64_t>(ldb * size);
  const auto copy = bits % 16 == 0  ? launch<uint4>
                    : bits % 8 == 0 ? launch<uint2>
                    : bits % 4 == 0 ? launch<uint32_t>
                                    : launch<uint16_t>;
  return copy(n_rows, d_rows, n * size, d_b, ldb * size, d_packed, stream);
}
