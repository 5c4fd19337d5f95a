/* Packing of rows, every element size and alignment, byte for byte. Usage: pack_cuda [seed] */
#include "kernels/cuda_pack.h"
#include "tests/gpu/sparse_fixture.cuh"

static int check(asparse_dtype dtype, int64_t n_rows, int64_t n, int64_t ldb, bool listed, Random &random) {
  const int64_t k = 501, size = static_cast<int64_t>(asparse_dtype_size(dtype)), canary = 64;
  std::vector<char> b(((k - 1) * ldb + n) * size), packed(n_rows * n * size + canary, 0x5a);
  for (char &x : b) x = static_cast<char>(random.next());
  std::vector<char> expected = packed;
  std::vector<int32_t> rows(n_rows);
  for (int64_t i = 0; i < n_rows; i++) {
    rows[i] = static_cast<int32_t>(listed ? random.below(k) : i);
    std::memcpy(&expected[i * n * size], &b[rows[i] * ldb * size], n * size);
  }
  Buffer d_b = upload(b), d_rows = upload(rows), d_packed = upload(packed);
  CUDA_OK(
      asparse_cuda_pack(dtype, n_rows, listed ? d_rows.as<int32_t>() : nullptr, n, d_b.d, ldb, d_packed.d, nullptr));
  CUDA_OK(cudaDeviceSynchronize());
  d_packed.read(packed.data());
  if (packed == expected) return 0;
  std::printf("FAIL pack %s: %lld rows, n %lld, ldb %lld\n", asparse_dtype_name(dtype), (long long)n_rows, (long long)n,
              (long long)ldb);
  return 1;
}

int main(int argc, char **argv) {
  need_gpu();
  Random random{seed_of(argc, argv)};
  int checks = 0, wrong = 0;
  for (asparse_dtype dtype : {ASPARSE_FP64, ASPARSE_FP32, ASPARSE_BF16}) {
    for (int64_t n : {1, 2, 7, 8, 64, 100, 257, 1024}) {
      for (int64_t pad : {0, 1, 8}) {
        for (int64_t n_rows : {0, 1, 333}) {
          for (bool listed : {false, true}) {
            wrong += check(dtype, n_rows, n, n + pad, listed, random);
            checks++;
          }
        }
      }
    }
  }
  wrong += asparse_cuda_pack(ASPARSE_FP32, 1, nullptr, 4, nullptr, 3, nullptr, nullptr) == cudaSuccess;
  std::printf("pack_cuda: %d checks, %d wrong\n", checks + 1, wrong);
  return wrong != 0;
}
