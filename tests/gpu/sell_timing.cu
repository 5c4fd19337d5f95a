/* Times the resident kernel at each number of columns that fits, beside the other bf16 kernels and the best of
 * cuSPARSE's CSR algorithms, on random matrices of few columns. Usage: sell_timing [seed] */
#include "kernels/cuda_bcsr.h"
#include "tests/gpu/spmm_timing.cuh"

extern "C" asparse_status asparse_bcsr_build(const asparse_local_csr *a, int32_t block_size, asparse_bcsr **out);

/* A in blocks of 64 × 64, by the warp-specialised pipeline. */
static double time_bcsr(Matrix &a, const Operands &x, const std::vector<char> &expected) {
  asparse_local_csr csr = a.csr();
  asparse_bcsr *host = nullptr;
  STATUS_OK(asparse_bcsr_build(&csr, ASPARSE_CUDA_BLOCK, &host));
  const int32_t block_rows = (a.m - 1) / ASPARSE_CUDA_BLOCK + 1;
  const int64_t n_blocks = host->block_row_ptr[block_rows];
  Buffer row_ptr(host->block_row_ptr, sizeof(int64_t) * (block_rows + 1));
  Buffer col_idx(host->block_col_idx, sizeof(int32_t) * n_blocks);
  Buffer blocks(host->blocks, sizeof(uint16_t) * n_blocks * ASPARSE_CUDA_BLOCK * ASPARSE_CUDA_BLOCK);
  asparse_bcsr_destroy(&host);
  const asparse_cuda_bcsr d = {
      a.m, a.k, block_rows, n_blocks, row_ptr.as<int64_t>(), col_idx.as<int32_t>(), blocks.as<uint16_t>()};
  const asparse_cuda_dense_pair bc = {x.n, x.b.as<uint16_t>(), x.n, x.c.as<float>(), x.n};
  CUDA_OK(cudaMemset(x.c.d, 0xff, x.c.bytes));
  double t = time_of([&](cudaStream_t stream) {
    CUDA_OK(asparse_bcsr_pipeline(&d, &bc, asparse_bcsr_pipeline_choose(&d, x.n), stream));
  });
  agree("BCSR", ASPARSE_FP32, x.result(), expected);
  return t;
}

/* The best of heights 16 and 64, each with 1 and 4 tasks a CTA. */
static double time_wcsr(Matrix &a, const Operands &x, const std::vector<char> &expected) {
  double best = INFINITY;
  for (int32_t height : {16, 64}) {
    HostWcsr host(a, height, ASPARSE_CUDA_WCSR_TILES_PER_TASK);
    DeviceWcsr d(host);
    Buffer workspace(asparse_cuda_wcsr_workspace(&d.wcsr, x.n));
    for (int32_t tasks : {1, 4}) {
      d.wcsr.tasks_per_cta = tasks;
      best = std::fmin(best, time_of([&](cudaStream_t stream) {
                         CUDA_OK(asparse_cuda_wcsr_multiply(&d.wcsr, x.n, x.b.as<uint16_t>(), x.n, ASPARSE_FP32, x.c.d,
                                                            x.n, false, workspace.d, stream));
                       }));
    }
  }
  agree("WCSR", ASPARSE_FP32, x.result(), expected);
  return best;
}

static void time_matrix(cusparseHandle_t handle, Matrix &a, int64_t n, uint64_t seed) {
  DeviceCsr csr(a);
  Operands x(a, n, seed);
  const Cusparse peer = time_cusparse(handle, a, csr, x);
  const std::vector<char> expected = x.result();
  const asparse_sell_profile profile = sell_profile(a);
  const int32_t chosen = asparse_sell_choose(&profile, n, multiprocessors()).columns;
  std::printf("%-22s %8lld %4lld |", a.name.c_str(), (long long)a.nnz(), (long long)n);
  double sell = INFINITY, best = INFINITY;
  for (int32_t columns : {8, 16, 32, 64}) {
    if (a.k > asparse_sell_most_k(columns)) {
      std::printf(" %13s", "-");
      continue;
    }
    const asparse_sell_config config = asparse_sell_configure(&profile, n, multiprocessors(), columns);
    double predicted, t = time_sell(a, x, config, multiprocessors(), expected, &predicted);
    std::printf(" %6.1f (%4.2f)", t, predicted / t);
    best = std::fmin(best, t);
    if (columns == chosen) sell = t;
  }
  const double wcsr = time_wcsr(a, x, expected), csr_time = time_csr(csr, x), bcsr = time_bcsr(a, x, expected);
  std::printf(" | %2d %4.2f | %6.1f %6.1f %6.1f | %6.1f %d | %5.2fx %5.2fx\n", chosen, sell / best, csr_time, wcsr,
              bcsr, peer.microseconds, peer.algorithm, peer.microseconds / sell,
              peer.microseconds / std::fmin(std::fmin(sell, bcsr), std::fmin(wcsr, csr_time)));
  std::fflush(stdout);
}

int main(int argc, char **argv) {
  uint64_t seed = seed_of(argc, argv);
  cusparseHandle_t handle;
  CUSPARSE_OK(cusparseCreate(&handle));
  std::printf(
      "microseconds (predicted / measured); chosen columns, their time relative to the best; speed-up over the\n"
      "best cuSPARSE: resident, and best of the four kernels\n");
  std::printf("%-22s %8s %4s | %13s %13s %13s %13s | %7s | %6s %6s %6s | %8s |\n", "matrix", "nnz", "n", "8 columns",
              "16", "32", "64", "chosen", "CSR", "WCSR", "BCSR", "cuSPARSE");
  std::vector<Matrix> matrices;
  for (int32_t m : {512, 1024, 2048, 4096, 8192}) {
    for (double density : {0.01, 0.02, 0.05, 0.1, 0.2}) {
      if (density * m * m < 4e6) matrices.push_back(bernoulli(m, m, density, 0, ++seed));
    }
    matrices.push_back(bernoulli(m, m, 0.02, 0.7, ++seed));
  }
  matrices.push_back(bernoulli(2048, 512, 0.1, 0, ++seed));
  matrices.push_back(bernoulli(14000, 14000, 0.01, 0, ++seed));
  matrices.push_back(bernoulli(100000, 4000, 0.005, 0, ++seed));
  for (Matrix &a : matrices) {
    a.fill(ASPARSE_BF16, ++seed);
    for (int64_t n : {256, 1024}) time_matrix(handle, a, n, seed);
  }
  CUSPARSE_OK(cusparseDestroy(handle));
  return 0;
}
