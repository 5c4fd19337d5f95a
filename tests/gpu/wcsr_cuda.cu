/* The register-gather WCSR kernel against the reference: every height, awkward shapes and layouts, split windows,
 * accumulation, Inf and NaN in B, repeatability. Usage: wcsr_cuda [seed [quick]] */
#include "tests/gpu/product_check.cuh"

static int n_checks;

static int check(Matrix &a, DeviceWcsr &d, Layout layout, bool accumulate, Special special, uint64_t seed,
                 int repeats) {
  char what[64];
  std::snprintf(what, sizeof what, "WCSR height %d, %d slots", d.wcsr.window_height, d.wcsr.work.n_slots);
  Buffer workspace(asparse_cuda_wcsr_workspace(&d.wcsr, layout.n));
  Product product(a, layout, accumulate, special, seed);
  const int32_t tasks_per_cta[4] = {0, 1, 2, 4};
  d.wcsr.tasks_per_cta = tasks_per_cta[n_checks++ % 4];
  return product.check(
      what,
      [&](const char *d_b, char *d_c) {
        return asparse_cuda_wcsr_multiply(&d.wcsr, layout.n, (const uint16_t *)d_b, layout.ldb, (float *)d_c,
                                          layout.ldc, accumulate, workspace.d, nullptr);
      },
      repeats);
}

static int check_refusals(Matrix &a) {
  HostWcsr host(a, 8, 1);
  DeviceWcsr d(host);
  float *c = nullptr;
  int wrong = asparse_cuda_wcsr_multiply(&d.wcsr, 8, nullptr, 7, c, 8, false, nullptr, nullptr) == cudaSuccess;
  wrong += asparse_cuda_wcsr_multiply(&d.wcsr, 8, nullptr, 8, c, 7, false, nullptr, nullptr) == cudaSuccess;
  wrong += d.wcsr.work.n_splits == 0; /* without its workspace: */
  wrong += asparse_cuda_wcsr_multiply(&d.wcsr, 8, nullptr, 8, c, 8, false, nullptr, nullptr) == cudaSuccess;
  d.wcsr.tasks_per_cta = 3;
  wrong += asparse_cuda_wcsr_multiply(&d.wcsr, 8, nullptr, 8, c, 8, false, nullptr, nullptr) == cudaSuccess;
  d.wcsr.tasks_per_cta = 0;
  d.wcsr.window_height = 24;
  wrong += asparse_cuda_wcsr_multiply(&d.wcsr, 8, nullptr, 8, c, 8, false, nullptr, nullptr) == cudaSuccess;
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
    for (int32_t height : {8, 16, 32, 64}) {
      for (int32_t tiles_per_task : {3, (int32_t)ASPARSE_CUDA_WCSR_TILES_PER_TASK}) {
        HostWcsr host(a, height, tiles_per_task);
        DeviceWcsr d(host);
        for (const Layout &layout : layouts(columns)) wrong += check(a, d, layout, false, Special::kNone, ++seed, 1);
        for (int64_t n : {64, 100}) {
          wrong += check(a, d, {n, n, n, 0}, true, Special::kNone, ++seed, 1);
          wrong += check(a, d, {n, n, n, 0}, false, Special::kSome, ++seed, 1);
          wrong += check(a, d, {n, n, n, 0}, false, Special::kNone, ++seed, quick ? 2 : 20);
        }
      }
    }
    if (a.nnz() > 1000) wrong += check_refusals(a);
  }
  if (!quick) { /* more than 65,535 groups of four windows */
    Matrix many = uniform(8 * 4 * 65536 + 9, 777, 0.5, ++seed);
    many.fill(ASPARSE_BF16, ++seed);
    HostWcsr host(many, 8, 64);
    DeviceWcsr d(host);
    wrong += check(many, d, {8, 8, 8, 0}, false, Special::kNone, ++seed, 1);
  }
  std::printf("wcsr_cuda: %d checks, %d wrong elements\n", n_checks, wrong);
  return wrong != 0;
}
