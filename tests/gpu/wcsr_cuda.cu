/* The register-gather WCSR kernel against the reference: every height, awkward shapes and layouts, split windows,
 * accumulation, Inf and NaN in B, repeatability. Usage: wcsr_cuda [seed [quick]] */
#include "tests/gpu/product_check.cuh"

static int n_checks;

static int check_type(Matrix &a, DeviceWcsr &d, asparse_dtype c_dtype, Layout layout, bool accumulate, Special special,
                      uint64_t seed, int repeats) {
  char what[64];
  std::snprintf(what, sizeof what, "WCSR height %d, %d slots, C %s", d.wcsr.window_height, d.wcsr.groups.n_slots,
                asparse_dtype_name(c_dtype));
  Buffer workspace(asparse_cuda_wcsr_workspace(&d.wcsr, layout.n));
  n_checks++;
  Product product(a, c_dtype, layout, accumulate, special, seed);
  return product.check(
      what,
      [&](const char *d_b, char *d_c) {
        return asparse_cuda_wcsr_multiply(&d.wcsr, layout.n, (const uint16_t *)d_b, layout.ldb, c_dtype, d_c,
                                          layout.ldc, accumulate, workspace.d, nullptr);
      },
      repeats);
}

/* C in fp32 and in bf16. */
static int check(Matrix &a, DeviceWcsr &d, Layout layout, bool accumulate, Special special, uint64_t seed,
                 int repeats) {
  return check_type(a, d, ASPARSE_FP32, layout, accumulate, special, seed, repeats) +
         check_type(a, d, ASPARSE_BF16, layout, accumulate, special, seed, repeats);
}

static bool accepts(const asparse_cuda_wcsr &a, int64_t ldb, int64_t ldc, asparse_dtype c_dtype = ASPARSE_FP32) {
  return asparse_cuda_wcsr_multiply(&a, 8, nullptr, ldb, c_dtype, nullptr, ldc, false, nullptr, nullptr) == cudaSuccess;
}

static int check_refusals(Matrix &a) {
  HostWcsr host(a, 8, 1);
  DeviceWcsr d(host);
  asparse_cuda_wcsr unsplit = d.wcsr;
  unsplit.groups.n_splits = 0;
  int wrong = accepts(unsplit, 7, 8) + accepts(unsplit, 8, 7) + accepts(unsplit, 8, 8, ASPARSE_FP64);
  wrong += d.wcsr.groups.n_splits == 0;
  wrong += accepts(d.wcsr, 8, 8); /* without the workspace of its splits */
  unsplit.window_height = 24;
  wrong += accepts(unsplit, 8, 8);
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
  int wrong = 0, n_refusals = 0;
  for (Matrix &a : awkward_matrices(seed)) {
    a.fill(ASPARSE_BF16, ++seed);
    for (int32_t height : {8, 16, 32, 64}) {
      for (int32_t tiles_per_task : {1, 3, 64}) {
        HostWcsr host(a, height, tiles_per_task, tiles_per_task == 3); /* like rows brought together once */
        DeviceWcsr d(host);
        for (const Layout &layout : layouts(columns)) wrong += check(a, d, layout, false, Special::kNone, ++seed, 1);
        for (int64_t n : {64, 100}) {
          wrong += check(a, d, {n, n, n, 0}, true, Special::kNone, ++seed, 1);
          wrong += check(a, d, {n, n, n, 0}, false, Special::kSome, ++seed, 1);
          wrong += check(a, d, {n, n, n, 0}, false, Special::kNone, ++seed, quick ? 2 : 20);
        }
      }
    }
    if (a.longest_row() > 1000) wrong += check_refusals(a), n_refusals++;
  }
  if (!quick) { /* more than 65,535 groups of four windows */
    Matrix many = uniform(8 * 4 * 65536 + 9, 777, 0.5, ++seed);
    many.fill(ASPARSE_BF16, ++seed);
    HostWcsr host(many, 8, 64);
    DeviceWcsr d(host);
    wrong += check(many, d, {8, 8, 8, 0}, false, Special::kNone, ++seed, 1);
  }
  if (!quick) { /* slices of columns that do not stay in L2: two together, then four and one with three that are none */
    Matrix wide = dense_row(83, 400003, 41, ++seed);
    wide.fill(ASPARSE_BF16, ++seed);
    for (int32_t height : {8, 64}) {
      HostWcsr host(wide, height, 64);
      DeviceWcsr d(host);
      for (int64_t n : {104, 296})
        for (bool accumulate : {false, true})
          wrong += check(wide, d, {n, n, n, 0}, accumulate, Special::kNone, ++seed, 3);
    }
  }
  wrong += n_refusals == 0;
  std::printf("wcsr_cuda: %d checks, %d wrong elements\n", n_checks, wrong);
  return wrong != 0;
}
