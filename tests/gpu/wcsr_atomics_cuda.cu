/* The WCSR kernel with WGMMA and atomics against the reference: every slice, awkward shapes and layouts, split windows,
 * accumulation, Inf and NaN in B, repeatability where no window is split. Usage: wcsr_atomics_cuda [seed [quick]] */
#include "kernels/cuda_wcsr_atomics.h"
#include "tests/gpu/product_check.cuh"

static int n_checks;

static int check(Matrix &a, const DeviceWcsr &d, Layout layout, bool accumulate, Special special, uint64_t seed,
                 int repeats) {
  const int32_t slices[4] = {0, 64, 128, 256}, slice = slices[n_checks++ % 4];
  char what[64];
  std::snprintf(what, sizeof what, "WCSR atomics, slice %d, %d splits", slice, d.wcsr.work.n_splits);
  Product product(a, layout, accumulate, special, seed);
  return product.check(
      what,
      [&](const char *d_b, char *d_c) {
        return asparse_cuda_wcsr_atomics_multiply(&d.wcsr, layout.n, (const uint16_t *)d_b, layout.ldb, (float *)d_c,
                                                  layout.ldc, accumulate, slice, nullptr);
      },
      d.wcsr.work.n_splits == 0 ? repeats : 1);
}

static int check_refusals(Matrix &a) {
  HostWcsr host(a, 64, 64), low(a, 32, 64);
  DeviceWcsr d(host), d_low(low);
  auto taken = [](const asparse_cuda_wcsr &w, int64_t ldb, int64_t ldc, int32_t slice) {
    return asparse_cuda_wcsr_atomics_multiply(&w, 8, nullptr, ldb, nullptr, ldc, false, slice, nullptr) == cudaSuccess;
  };
  int wrong = taken(d.wcsr, 7, 8, 0) + taken(d.wcsr, 8, 7, 0) + taken(d.wcsr, 8, 8, 96) + taken(d_low.wcsr, 8, 8, 0);
  d.wcsr.n_tiles = INT32_MAX / 64 + 1;
  wrong += taken(d.wcsr, 8, 8, 0);
  if (wrong) std::printf("FAIL %d arguments accepted that break the rules\n", wrong);
  n_checks++;
  return wrong;
}

int main(int argc, char **argv) {
  need_gpu();
  uint64_t seed = seed_of(argc, argv);
  bool quick = argc > 2;
  std::vector<int64_t> columns =
      quick ? std::vector<int64_t>{1, 100} : std::vector<int64_t>{1, 7, 8, 33, 64, 100, 128, 143, 256, 257, 1000, 1024};
  int wrong = 0;
  for (Matrix &a : awkward_matrices(seed)) {
    a.fill(ASPARSE_BF16, ++seed);
    for (int32_t tiles_per_task : {3, 8, (int32_t)ASPARSE_CUDA_WCSR_TILES_PER_TASK, 1 << 20}) {
      HostWcsr host(a, 64, tiles_per_task);
      DeviceWcsr d(host);
      for (const Layout &layout : layouts(columns)) wrong += check(a, d, layout, false, Special::kNone, ++seed, 1);
      for (int64_t n : {64, 100, 256}) {
        wrong += check(a, d, {n, n, n, 0}, true, Special::kNone, ++seed, 1);
        wrong += check(a, d, {n, n, n, 0}, false, Special::kSome, ++seed, 1);
        wrong += check(a, d, {n, n, n, 0}, false, Special::kNone, ++seed, quick ? 2 : 20);
      }
    }
    if (a.nnz() > 1000) wrong += check_refusals(a);
  }
  if (!quick) { /* more than 65,535 windows */
    Matrix many = uniform(64 * 65536 + 9, 777, 0.1, ++seed);
    many.fill(ASPARSE_BF16, ++seed);
    HostWcsr host(many, 64, 64);
    DeviceWcsr d(host);
    wrong += check(many, d, {8, 8, 8, 0}, false, Special::kNone, ++seed, 1);
  }
  std::printf("wcsr_atomics_cuda: %d checks, %d wrong elements\n", n_checks, wrong);
  return wrong != 0;
}
