/* A in the layouts of the peers, made on the device from what is there already. */
#include "kernels/peers.h"

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

template <typename T>
__global__ void csr_to_dense(int32_t m, const int32_t *row_ptr, const int32_t *col_idx, const T *values, int64_t ld,
                             T *dense) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= m) return;
  for (int64_t e = row_ptr[row] + static_cast<int64_t>(threadIdx.x % 32); e < row_ptr[row + 1]; e += 32)
    dense[row * ld + col_idx[e]] = values[e];
}

template <typename T>
__global__ void bsr_to_ell(int32_t r, int64_t width, const int64_t *block_row_ptr, const T *blocks, T *ell_values) {
  const int64_t row = blockIdx.x, first = block_row_ptr[row], count = (block_row_ptr[row + 1] - first) * r * r;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    const int64_t block = i / (r * r), y = i / r % r, x = i % r;
    ell_values[(row * r + y) * width * r + block * r + x] = blocks[first * r * r + i];
  }
}

} // namespace

cudaError_t asparse_cuda_csr_to_dense(size_t size, int32_t m, const int32_t *row_ptr, const int32_t *col_idx,
                                      const void *values, int64_t ld, void *dense, cudaStream_t stream) {
  if (m == 0) return cudaSuccess;
  const unsigned grid = static_cast<unsigned>((m - 1) / kWarps + 1);
  if (size == 8)
    csr_to_dense<<<grid, kThreads, 0, stream>>>(m, row_ptr, col_idx, static_cast<const uint64_t *>(values), ld,
                                                static_cast<uint64_t *>(dense));
  else if (size == 4)
    csr_to_dense<<<grid, kThreads, 0, stream>>>(m, row_ptr, col_idx, static_cast<const uint32_t *>(values), ld,
                                                static_cast<uint32_t *>(dense));
  else
    csr_to_dense<<<grid, kThreads, 0, stream>>>(m, row_ptr, col_idx, static_cast<const uint16_t *>(values), ld,
                                                static_cast<uint16_t *>(dense));
  return cudaGetLastError();
}

cudaError_t asparse_cuda_bsr_to_ell(size_t size, int32_t r, int32_t n_block_rows, int64_t width,
                                    const int64_t *block_row_ptr, const void *blocks, void *ell_values,
                                    cudaStream_t stream) {
  if (n_block_rows == 0) return cudaSuccess;
  if (size == 8)
    bsr_to_ell<<<n_block_rows, kThreads, 0, stream>>>(r, width, block_row_ptr, static_cast<const uint64_t *>(blocks),
                                                      static_cast<uint64_t *>(ell_values));
  else if (size == 4)
    bsr_to_ell<<<n_block_rows, kThreads, 0, stream>>>(r, width, block_row_ptr, static_cast<const uint32_t *>(blocks),
                                                      static_cast<uint32_t *>(ell_values));
  else
    bsr_to_ell<<<n_block_rows, kThreads, 0, stream>>>(r, width, block_row_ptr, static_cast<const uint16_t *>(blocks),
                                                      static_cast<uint16_t *>(ell_values));
  return cudaGetLastError();
}
