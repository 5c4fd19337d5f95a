/* Times the WCSR kernel at its four heights, the published one (atomics) and the CSR kernel beside cuSPARSE's three CSR
 * algorithms on generated matrices: medians of event timings, L2 warm, one process. Usage: spmm_timing [seed
 * [tiles_per_task]] */
#include <algorithm>
#include <functional>

#include <cusparse.h>

#include "kernels/cuda_wcsr_atomics.h"
#include "tests/gpu/sparse_fixture.cuh"

#define CUSPARSE_OK(call)                                                                                              \
  do {                                                                                                                 \
    cusparseStatus_t status_ = (call);                                                                                 \
    if (status_ != CUSPARSE_STATUS_SUCCESS) {                                                                          \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cusparseGetErrorString(status_));                      \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (0)

enum { kRepeats = 21, kWarmUps = 3 };

/* Median microseconds of one call. */
static double time_of(const std::function<void()> &call) {
  cudaEvent_t start, stop;
  CUDA_OK(cudaEventCreate(&start));
  CUDA_OK(cudaEventCreate(&stop));
  std::vector<float> times(kRepeats);
  for (int i = 0; i < kWarmUps; i++) call();
  for (float &t : times) {
    CUDA_OK(cudaEventRecord(start));
    call();
    CUDA_OK(cudaEventRecord(stop));
    CUDA_OK(cudaEventSynchronize(stop));
    CUDA_OK(cudaEventElapsedTime(&t, start, stop));
  }
  CUDA_OK(cudaEventDestroy(start));
  CUDA_OK(cudaEventDestroy(stop));
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return 1e3 * times[kRepeats / 2];
}

/* B and C of one product. */
struct Operands {
  int64_t n;
  Buffer b, c;
  Operands(const Matrix &a, int64_t columns, uint64_t seed)
      : n(columns), b(static_cast<size_t>(a.k) * n * asparse_dtype_size(a.dtype)),
        c(static_cast<size_t>(a.m) * n * asparse_dtype_size(asparse_dtype_result(a.dtype))) {
    asparse_dense *host = nullptr;
    STATUS_OK(asparse_dense_create(&host, a.k, n, a.dtype));
    asparse_dense_fill_random(host, seed, 0, nullptr);
    CUDA_OK(cudaMemcpy(b.d, host->values, b.bytes, cudaMemcpyHostToDevice));
    asparse_dense_destroy(&host);
  }
  std::vector<char> result() const {
    std::vector<char> host(c.bytes);
    c.read(host.data());
    return host;
  }
};

static cudaDataType cuda_type(asparse_dtype t) {
  return t == ASPARSE_FP64 ? CUDA_R_64F : t == ASPARSE_FP32 ? CUDA_R_32F : CUDA_R_16BF;
}

struct Cusparse {
  double microseconds; /* of the fastest algorithm */
  int algorithm;       /* 1, 2 or 3 */
};

/* The best of CSR_ALG1, 2, 3, each after its preprocess step; C of the last one stays in x.c. */
static Cusparse time_cusparse(cusparseHandle_t handle, const Matrix &a, const DeviceCsr &d, const Operands &x) {
  const cudaDataType type = cuda_type(a.dtype), result = cuda_type(asparse_dtype_result(a.dtype));
  std::vector<int32_t> row_ptr(a.row_ptr.begin(), a.row_ptr.end()); /* 32-bit, its faster form */
  Buffer d_row_ptr = upload(row_ptr);
  cusparseSpMatDescr_t mat;
  cusparseDnMatDescr_t b, c;
  CUSPARSE_OK(cusparseCreateCsr(&mat, a.m, a.k, a.nnz(), d_row_ptr.d, d.col_idx.d, d.values.d, CUSPARSE_INDEX_32I,
                                CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type));
  CUSPARSE_OK(cusparseCreateDnMat(&b, a.k, x.n, x.n, x.b.d, type, CUSPARSE_ORDER_ROW));
  CUSPARSE_OK(cusparseCreateDnMat(&c, a.m, x.n, x.n, x.c.d, result, CUSPARSE_ORDER_ROW));
  const float one32 = 1, zero32 = 0;
  const double one64 = 1, zero64 = 0;
  const void *one = result == CUDA_R_64F ? (const void *)&one64 : &one32;
  const void *zero = result == CUDA_R_64F ? (const void *)&zero64 : &zero32;
  const cusparseSpMMAlg_t algorithms[3] = {CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3};
  const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
  Cusparse best{INFINITY, 0};
  for (int i = 0; i < 3; i++) {
    size_t bytes = 0;
    if (cusparseSpMM_bufferSize(handle, plain, plain, one, mat, b, zero, c, result, algorithms[i], &bytes)) continue;
    Buffer buffer(bytes);
    if (cusparseSpMM_preprocess(handle, plain, plain, one, mat, b, zero, c, result, algorithms[i], buffer.d)) continue;
    double t = time_of([&] {
      CUSPARSE_OK(cusparseSpMM(handle, plain, plain, one, mat, b, zero, c, result, algorithms[i], buffer.d));
    });
    if (t < best.microseconds) best = {t, i + 1};
  }
  CUSPARSE_OK(cusparseDestroySpMat(mat));
  CUSPARSE_OK(cusparseDestroyDnMat(b));
  CUSPARSE_OK(cusparseDestroyDnMat(c));
  return best;
}

/* Largest difference of two fp32 or fp64 results, relative to the largest element. */
static double difference(asparse_dtype type, const std::vector<char> &x, const std::vector<char> &y) {
  double largest = 0, most = 0;
  for (size_t i = 0; i < x.size() / asparse_dtype_size(type); i += 7) {
    double p = asparse_load(type, x.data(), (int64_t)i), q = asparse_load(type, y.data(), (int64_t)i);
    largest = std::fmax(largest, std::fabs(q));
    most = p == q ? most : std::fabs(p - q) <= most ? most : std::fabs(p - q); /* NaN stays */
  }
  return most / (largest > 0 ? largest : 1);
}

static void agree(const char *what, asparse_dtype type, const std::vector<char> &x, const std::vector<char> &y) {
  double d = difference(type, x, y);
  if (!(d < (type == ASPARSE_FP64 ? 1e-12 : 1e-4))) std::printf("  %s differs from cuSPARSE by %.2g\n", what, d);
}

static double time_csr(const DeviceCsr &d, const Operands &x) {
  return time_of([&] { CUDA_OK(asparse_cuda_csr_multiply(&d.csr, x.n, x.b.d, x.n, x.c.d, x.n, false, nullptr)); });
}

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
    times[i] = time_of([&] {
      CUDA_OK(asparse_cuda_wcsr_multiply(&d.wcsr, x.n, x.b.as<uint16_t>(), x.n, x.c.as<float>(), x.n, false,
                                         workspace.d, nullptr));
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
    times[i] = time_of([&] {
      CUDA_OK(asparse_cuda_wcsr_atomics_multiply(&d.wcsr, x.n, x.b.as<uint16_t>(), x.n, x.c.as<float>(), x.n, false,
                                                 64 << i, nullptr));
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
  std::printf("%-20s %7s %4s | %6s %6s %6s %6s | %20s | %14s | %8s | %6s %4s | %13s | %22s | %22s\n", "matrix", "nnz",
              "n", "h=8", "h=16", "h=32", "h=64", "atomics 64, 128, 256", "h/cta oth slot", "cuSP alg", "best", "least",
              "csr bf16", "csr fp32   cuSP alg", "csr fp64   cuSP alg");
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
