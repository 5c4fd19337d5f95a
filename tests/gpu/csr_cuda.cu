/* The CUDA-core CSR kernel against the reference in fp64, fp32 and bf16. Usage: csr_cuda [seed [quick]] */
#include "tests/gpu/product_check.cuh"

static int n_checks;

static int check(Matrix &a, const DeviceCsr &d, Layout layout, bool accumulate, Special special, uint64_t seed,
                 int repeats) {
  char what[32];
  std::snprintf(what, sizeof what, "CSR %s", asparse_dtype_name(a.dtype));
  Product product(a, layout, accumulate, special, seed);
  n_checks++;
  return product.check(
      what,
      [&](const char *d_b, char *d_c) {
        return asparse_cuda_csr_multiply(&d.csr, layout.n, d_b, layout.ldb, d_c, layout.ldc, accumulate, nullptr);
      },
      repeats);
}

static int check_refusals(const DeviceCsr &d) {
  asparse_cuda_csr bad = d.csr;
  bad.dtype = static_cast<asparse_dtype>(9);
  int wrong = asparse_cuda_csr_multiply(&d.csr, 8, nullptr, 7, nullptr, 8, false, nullptr) == cudaSuccess;
  wrong += asparse_cuda_csr_multiply(&d.csr, 8, nullptr, 8, nullptr, 7, false, nullptr) == cudaSuccess;
  wrong += asparse_cuda_csr_multiply(&bad, 8, nullptr, 8, nullptr, 8, false, nullptr) == cudaSuccess;
  if (wrong) std::printf("FAIL %d arguments accepted that break the rules\n", wrong);
  n_checks++;
  return wrong;
}

int main(int argc, char **argv) {
  need_gpu();
  uint64_t seed = seed_of(argc, argv);
  bool quick = argc > 2;
  std::vector<int64_t> columns =
      quick ? std::vector<int64_t>{1, 100} : std::vector<int64_t>{1, 7, 8, 33, 64, 100, 128, 143, 256, 257, 1024};
  int wrong = 0;
  for (Matrix &a : awkward_matrices(seed)) {
    for (asparse_dtype dtype : {ASPARSE_FP64, ASPARSE_FP32, ASPARSE_BF16}) {
      a.fill(dtype, ++seed);
      DeviceCsr d(a);
      for (const Layout &layout : layouts(columns)) wrong += check(a, d, layout, false, Special::kNone, ++seed, 1);
      for (int64_t n : {64, 100, 33}) {
        wrong += check(a, d, {n, n, n, 0}, true, Special::kNone, ++seed, 1);
        wrong += check(a, d, {n, n, n, 0}, false, Special::kSome, ++seed, 1);
        wrong += check(a, d, {n, n, n, 0}, false, Special::kNone, ++seed, quick ? 2 : 20);
      }
      d.csr.n_long_rows = 0; /* long rows by one warp */
      wrong += check(a, d, {64, 64, 64, 0}, false, Special::kNone, ++seed, 1);
      wrong += check_refusals(d);
    }
  }
  std::printf("csr_cuda: %d checks, %d wrong elements\n", n_checks, wrong);
  return wrong != 0;
}
