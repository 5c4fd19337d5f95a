/* What the timing programs of sparse kernels share: operands, event timings, cuSPARSE's CSR algorithms. */
#ifndef ASPARSE_SPMM_TIMING_CUH
#define ASPARSE_SPMM_TIMING_CUH

#include <algorithm>
#include <functional>

#include <cusparse.h>

#include "tests/gpu/sparse_fixture.cuh"

#define CUSPARSE_OK(call)                                                                                              \
  do {                                                                                                                 \
    cusparseStatus_t status_ = (call);                                                                                 \
    if (status_ != CUSPARSE_STATUS_SUCCESS) {                                                                          \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cusparseGetErrorString(status_));                      \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (0)

enum { kRepeats = 15, kCalls = 8, kWarmUps = 2 };

/* Median microseconds of one call among kCalls in a CUDA graph, so that launching costs as little as it can. */
inline double time_of(const std::function<void(cudaStream_t)> &call) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  cudaEvent_t start, stop;
  CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_OK(cudaEventCreate(&start));
  CUDA_OK(cudaEventCreate(&stop));
  call(stream);
  CUDA_OK(cudaStreamSynchronize(stream));
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kCalls; i++) call(stream);
  CUDA_OK(cudaStreamEndCapture(stream, &graph));
  CUDA_OK(cudaGraphInstantiate(&replay, graph, 0));
  std::vector<float> times(kRepeats);
  for (int i = 0; i < kWarmUps; i++) CUDA_OK(cudaGraphLaunch(replay, stream));
  for (float &t : times) {
    CUDA_OK(cudaEventRecord(start, stream));
    CUDA_OK(cudaGraphLaunch(replay, stream));
    CUDA_OK(cudaEventRecord(stop, stream));
    CUDA_OK(cudaEventSynchronize(stop));
    CUDA_OK(cudaEventElapsedTime(&t, start, stop));
  }
  CUDA_OK(cudaGraphExecDestroy(replay));
  CUDA_OK(cudaGraphDestroy(graph));
  CUDA_OK(cudaEventDestroy(start));
  CUDA_OK(cudaEventDestroy(stop));
  CUDA_OK(cudaStreamDestroy(stream));
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return 1e3 * times[kRepeats / 2] / kCalls;
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

inline cudaDataType cuda_type(asparse_dtype t) {
  return t == ASPARSE_FP64 ? CUDA_R_64F : t == ASPARSE_FP32 ? CUDA_R_32F : CUDA_R_16BF;
}

struct Cusparse {
  double microseconds; /* of the fastest algorithm */
  int algorithm;       /* 1, 2 or 3 */
};

/* The best of CSR_ALG1, 2, 3, each after its preprocess step; C of the last one stays in x.c. */
inline Cusparse time_cusparse(cusparseHandle_t handle, const Matrix &a, const DeviceCsr &d, const Operands &x) {
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
    double t = time_of([&](cudaStream_t stream) {
      CUSPARSE_OK(cusparseSetStream(handle, stream));
      CUSPARSE_OK(cusparseSpMM(handle, plain, plain, one, mat, b, zero, c, result, algorithms[i], buffer.d));
    });
    CUSPARSE_OK(cusparseSetStream(handle, nullptr));
    if (t < best.microseconds) best = {t, i + 1};
  }
  CUSPARSE_OK(cusparseDestroySpMat(mat));
  CUSPARSE_OK(cusparseDestroyDnMat(b));
  CUSPARSE_OK(cusparseDestroyDnMat(c));
  return best;
}

/* Largest difference of two fp32 or fp64 results, relative to the largest element. */
inline double difference(asparse_dtype type, const std::vector<char> &x, const std::vector<char> &y) {
  double largest = 0, most = 0;
  for (size_t i = 0; i < x.size() / asparse_dtype_size(type); i += 7) {
    double p = asparse_load(type, x.data(), (int64_t)i), q = asparse_load(type, y.data(), (int64_t)i);
    largest = std::fmax(largest, std::fabs(q));
    most = p == q ? most : std::fabs(p - q) <= most ? most : std::fabs(p - q); /* NaN stays */
  }
  return most / (largest > 0 ? largest : 1);
}

inline void agree(const char *what, asparse_dtype type, const std::vector<char> &x, const std::vector<char> &y) {
  double d = difference(type, x, y);
  if (!(d < (type == ASPARSE_FP64 ? 1e-12 : 1e-4))) std::printf("  %s differs from cuSPARSE by %.2g\n", what, d);
}

inline double time_csr(const DeviceCsr &d, const Operands &x) {
  const asparse_dtype c_dtype = asparse_dtype_result(d.csr.dtype);
  return time_of([&](cudaStream_t stream) {
    CUDA_OK(asparse_cuda_csr_multiply(&d.csr, x.n, x.b.d, x.n, c_dtype, x.c.d, x.n, false, stream));
  });
}

inline asparse_sell_profile sell_profile(const Matrix &a) {
  int64_t longest = 0;
  for (int32_t i = 0; i < a.m; i++) longest = std::max(longest, a.row_ptr[i + 1] - a.row_ptr[i]);
  return {a.m, a.k, a.nnz(), longest};
}

/* One layout of the resident kernel; predicted microseconds go to *predicted. */
inline double time_sell(Matrix &a, const Operands &x, const asparse_sell_config &choice, int32_t multiprocessors,
                        const std::vector<char> &expected, double *predicted) {
  HostSell host(a, choice.columns, choice.most_steps);
  asparse_sell_profile profile = sell_profile(a);
  profile.n_stored = host.a->n_stored;
  const asparse_sell_config config = asparse_sell_configure(&profile, x.n, multiprocessors, choice.columns);
  DeviceSell d(host, config.row_groups);
  *predicted = 1e6 * config.predicted_seconds;
  CUDA_OK(cudaMemset(x.c.d, 0xff, x.c.bytes));
  double t = time_of([&](cudaStream_t stream) {
    CUDA_OK(asparse_cuda_sell_multiply(&d.sell, x.n, x.b.as<uint16_t>(), x.n, ASPARSE_FP32, x.c.d, x.n, false, stream));
  });
  agree("SELL", ASPARSE_FP32, x.result(), expected);
  return t;
}

inline int32_t multiprocessors() {
  int device, count;
  CUDA_OK(cudaGetDevice(&device));
  CUDA_OK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

#endif
