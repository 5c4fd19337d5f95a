/* The CUDA-core CSR kernel against the reference in fp64, fp32 and bf16, C of bf16 too. Usage: csr_cuda [seed [quick]]
 */
#include "tests/gpu/product_check.cuh"

static int n_checks;

static int check(Matrix &a, asparse_dtype c_dtype, const DeviceCsr &d, Layout layout, bool accumulate, Special special,
                 uint64_t seed, int repeats) {
  char what[48];
  std::snprintf(what, sizeof what, "CSR %s, C %s", asparse_dtype_name(a.dtype), asparse_dtype_name(c_dtype));
  Product product(a, c_dtype, layout, accumulate, special, seed);
  n_checks++;
  return product.check(
      what,
      [&](const char *d_b, char *d_c) {
        return asparse_cuda_csr_multiply(&d.csr, layout.n, d_b, layout.ldb, c_dtype, d_c, layout.ldc, accumulate,
                                         nullptr);
      },
      repeats);
}

static bool accepts(const asparse_cuda_csr &a, int64_t ldb, int64_t ldc, asparse_dtype c_dtype) {
  return asparse_cuda_csr_multiply(&a, 8, nullptr, ldb, c_dtype, nullptr, ldc, false, nullptr) == cudaSuccess;
}

static int check_refusals(const DeviceCsr &d) {
  asparse_cuda_csr bad = d.csr;
  bad.dtype = static_cast<asparse_dtype>(9);
  const asparse_dtype good = asparse_dtype_result(d.csr.dtype);
  int wrong = accepts(d.csr, 7, 8, good) + accepts(d.csr, 8, 7, good) + accepts(bad, 8, 8, good);
  wrong += d.csr.dtype != ASPARSE_BF16 && accepts(d.csr, 8, 8, ASPARSE_BF16);
  if (wrong) std::printf("FAIL %d arguments accepted that break the rules\n", wrong);
  n_checks++;
  return wrong;
}

static int check_all(Matrix &a, asparse_dtype dtype, asparse_dtype c_dtype, bool quick, uint64_t *seed) {
  const std::vector<int64_t> columns =
      quick ? std::vector<int64_t>{1, 3, 16, 100}
            : std::vector<int64_t>{1, 2, 3, 4, 7, 8, 16, 32, 33, 64, 100, 128, 143, 256, 257, 1024};
  int wrong = 0;
  a.fill(dtype, ++*seed);
  DeviceCsr d(a);
  for (const Layout &layout : layouts(columns))
    wrong += check(a, c_dtype, d, layout, false, Special::kNone, ++*seed, 1);
  for (int64_t n : {8, 64, 100, 33}) {
    wrong += check(a, c_dtype, d, {n, n, n, 0}, true, Special::kNone, ++*seed, 1);
    wrong += check(a, c_dtype, d, {n, n, n, 0}, false, Special::kSome, ++*seed, 1);
    wrong += check(a, c_dtype, d, {n, n, n, 0}, false, Special::kNone, ++*seed, quick ? 2 : 20);
  }
  d.csr.n_long_rows = 0; /* long rows by one warp */
  wrong += check(a, c_dtype, d, {64, 64, 64, 0}, false, Special::kNone, ++*seed, 1);
  return wrong + check_refusals(d);
}

int main(int argc, char **argv) {
  need_gpu();
  uint64_t seed = seed_of(argc, argv);
  bool quick = argc > 2;
  int wrong = 0;
  for (Matrix &a : awkward_matrices(seed)) {
    for (asparse_dtype dtype : {ASPARSE_FP64, ASPARSE_FP32, ASPARSE_BF16})
      wrong += check_all(a, dtype, asparse_dtype_result(dtype), quick, &seed);
    wrong += check_all(a, ASPARSE_BF16, ASPARSE_BF16, quick, &seed);
  }
  std::printf("csr_cuda: %d checks, %d wrong elements\n", n_checks, wrong);
  return wrong != 0;
}
