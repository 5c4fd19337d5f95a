/* Times the WCSR kernel at its four heights, the published one (atomics) and the CSR kernel beside cuSPARSE's three CSR
 * algorithms on generated matrices: medians over CUDA graphs of 8 calls, L2 warm, one process. Usage: spmm_timing [seed
 * [tiles_per_task]] */
#include "kernels/cuda_wcsr_atomics.h"
#include "tests/gpu/spmm_timing.cuh"

/* Least microseconds: the larger of gathered bytes / 7.6 TB/s, (A + B + C) / 4.3 TB/s, one launch (ceilings measured on
 * an H200). */
static double least_time(const Matrix &a, const HostWcsr &w, int64_t n) {
  double gathered = 0, columns = static_cast<double>(w.columns());
  for (size_t i = 0; i < w.columns(); i++) gathered += w.a->window_col_idx[i] >= 0;
  double bytes = columns * (2.0 * w.a->window_height + 4) + 2.0 * a.k * n + 4.0 * a.m * n;
  return 1e6 * std::fmax(std::fmax(gathered * n * 2 / 7.6e12, bytes / 4.3e12), 2.5e-6);
}

/* The fastest WCSR configuration. */
struct BestWcsr {
  double microseconds, other_shape; /* with 1 task a CTA where 4 are faster and the other way round */
  int32_t height, tasks_per_cta, slots;
};

/* Both CTA shapes of one height; returns the faster time. */
static double time_wcsr(DeviceWcsr &d, const Operands &x, const std::vector<char> &expected, BestWcsr *best) {
  double times[2];
  const int32_t tasks_per_cta[2] = {1, 4};
  Buffer workspace(asparse_cuda_wcsr_workspace(&d.wcsr, x.n));
  for (int i = 0; i < 2; i++) {
    d.wcsr.tasks_per_cta = tasks_per_cta[i];
    CUDA_OK(cudaMemset(x.c.d, 0xff, x.c.bytes));
    times[i] = time_of([&](cudaStream_t stream) {
      CUDA_OK(asparse_cuda_wcsr_multiply(&d.wcsr, x.n, x.b.as<uint16_t>(), x.n, ASPARSE_FP32, x.c.d, x.n, false,
                                         workspace.d, stream));
    });
    agree("WCSR", ASPARSE_FP32, x.result(), expected);
  }
  int i = times[1] < times[0];
  if (times[i] < best->microseconds) {
    *best = {times[i], times[1 - i], d.wcsr.window_height, tasks_per_cta[i], d.wcsr.work.n_slots};
  }
  return times[i];
}

/* The published kernel with slices of 64, 128 and 256 columns. */
static void time_atomics(const DeviceWcsr &d, const Operands &x, const std::vector<char> &expected,
                         double (&times)[3]) {
  for (int i = 0; i < 3; i++) {
    CUDA_OK(cudaMemset(x.c.d, 0xff, x.c.bytes));
    times[i] = time_of([&](cudaStream_t stream) {
      CUDA_OK(asparse_cuda_wcsr_atomics_multiply(&d.wcsr, x.n, x.b.as<uint16_t>(), x.n, x.c.as<float>(), x.n, false,
                                                 64 << i, stream));
    });
    agree("WCSR atomics", ASPARSE_FP32, x.result(), expected);
  }
}

static void time_bf16(cusparseHandle_t handle, Matrix &a, int64_t n, uint64_t seed, int32_t tiles_per_task) {
  a.fill(ASPARSE_BF16, seed);
  DeviceCsr csr(a);
  Operands x(a, n, seed);
  Cusparse peer = time_cusparse(handle, a, csr, x);
  std::vector<char> expected = x.result();
  BestWcsr best{INFINITY, 0, 0, 0, 0};
  double least = INFINITY, atomics[3] = {};
  std::printf("%-20s %7lld %4lld |", a.name.c_str(), (long long)a.nnz(), (long long)n);
  for (int32_t height : {8, 16, 32, 64}) {
    HostWcsr host(a, height, tiles_per_task);
    DeviceWcsr d(host);
    std::printf(" %6.1f", time_wcsr(d, x, expected, &best));
    least = std::fmin(least, least_time(a, host, n));
    if (height == 64) time_atomics(d, x, expected, atomics);
  }
  std::printf(" | %6.1f %6.1f %6.1f", atomics[0], atomics[1], atomics[2]);
  CUDA_OK(cudaMemset(x.c.d, 0xff, x.c.bytes));
  double csr_time = time_csr(csr, x);
  agree("CSR bf16", ASPARSE_FP32, x.result(), expected);
  std::printf(" | %2d/%d %4.2f %4d | %6.1f %d | %5.2fx %4.2f | %6.1f %5.2fx", best.height, best.tasks_per_cta,
              best.other_shape / best.microseconds, best.slots, peer.microseconds, peer.algorithm,
              peer.microseconds / best.microseconds, least / best.microseconds, csr_time, peer.microseconds / csr_time);
  const asparse_sell_profile profile = sell_profile(a);
  const asparse_sell_config sell = asparse_sell_choose(&profile, n, multiprocessors());
  if (sell.columns == 0) {
    std::printf(" | %16s", "-");
  } else {
    double predicted, t = time_sell(a, x, sell, multiprocessors(), expected, &predicted);
    std::printf(" | %2d %6.1f %5.2fx", sell.columns, t, peer.microseconds / t);
  }
}

static void time_wide(cusparseHandle_t handle, Matrix &a, asparse_dtype dtype, int64_t n, uint64_t seed) {
  a.fill(dtype, seed);
  DeviceCsr csr(a);
  Operands x(a, n, seed);
  Cusparse peer = time_cusparse(handle, a, csr, x);
  std::vector<char> expected = x.result();
  CUDA_OK(cudaMemset(x.c.d, 0xff, x.c.bytes));
  double t = time_csr(csr, x);
  agree(asparse_dtype_name(dtype), asparse_dtype_result(dtype), x.result(), expected);
  std::printf(" | %6.1f %6.1f %d %5.2fx", t, peer.microseconds, peer.algorithm, peer.microseconds / t);
}

int main(int argc, char **argv) {
  need_gpu();
  uint64_t seed = seed_of(argc, argv);
  int32_t tiles_per_task = argc > 2 ? std::atoi(argv[2]) : ASPARSE_CUDA_WCSR_TILES_PER_TASK;
  cusparseHandle_t handle;
  CUSPARSE_OK(cusparseCreate(&handle));
  std::vector<Matrix> matrices;
  matrices.push_back(grid(22, 22, 22, 3, false));
  matrices.push_back(grid(100, 100, 1, 4, false));
  matrices.push_back(grid(60, 60, 1, 6, false));
  matrices.push_back(grid(300, 300, 1, 1, true));
  matrices.push_back(grid(40, 40, 40, 1, true));
  matrices.push_back(uniform(20000, 20000, 16, seed));
  matrices.push_back(uniform(8192, 8192, 80, seed + 1));
  matrices.push_back(uniform(4096, 4096, 205, seed + 2));
  matrices.push_back(uniform(2048, 2048, 205, seed + 3));
  matrices.push_back(rmat(15, 16, seed + 4));
  matrices.push_back(rmat(17, 8, seed + 5));
  std::printf(
      "microseconds; WCSR tasks of at most %d tiles; h/cta: best height / tasks a CTA; oth: relative time of the\n"
      "other CTA shape; best: speed-up over the best cuSPARSE; least: fraction of the least time\n",
      tiles_per_task);
  std::printf("%-20s %7s %4s | %6s %6s %6s %6s | %20s | %14s | %8s | %6s %4s | %13s | %16s | %22s | %22s\n", "matrix",
              "nnz", "n", "h=8", "h=16", "h=32", "h=64", "atomics 64, 128, 256", "h/cta oth slot", "cuSP alg", "best",
              "least", "csr bf16", "resident", "csr fp32   cuSP alg", "csr fp64   cuSP alg");
  for (Matrix &a : matrices) {
    for (int64_t n : {256, 1024}) {
      time_bf16(handle, a, n, seed, tiles_per_task);
      time_wide(handle, a, ASPARSE_FP32, n, seed);
      time_wide(handle, a, ASPARSE_FP64, n, seed);
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  CUSPARSE_OK(cusparseDestroy(handle));
  return 0;
}
