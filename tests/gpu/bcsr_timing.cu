/* The BCSR ladder beside cuSPARSE CSR and dense cuBLAS in one process: block-sparse matrices with 64 × 64 blocks,
 * bf16 A and B, fp32 C. Methods take turns; the median of the turns is printed, caches warm. C of our kernels is
 * checked on sampled rows against fp64. Usage: bcsr_timing [turns [density]] */
#include <algorithm>
#include <cublas_v2.h>
#include <cusparse.h>
#include <functional>
#include <string>

#include "tests/gpu/bcsr_fixture.cuh"

#define LIBRARY(call)                                                                                                  \
  do {                                                                                                                 \
    int status_ = static_cast<int>(call);                                                                              \
    if (status_ != 0) {                                                                                                \
      fprintf(stderr, "%s:%d: %s: status %d\n", __FILE__, __LINE__, #call, status_);                                   \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

struct method {
  std::string name;
  std::function<void()> run;
  std::vector<float> milliseconds; /* sorted once timed */
  double median() const { return milliseconds[milliseconds.size() / 2]; }
};

static float time_launches(const method &method, int launches) {
  static cudaEvent_t start = nullptr, stop = nullptr;
  if (!start) {
    CUDA(cudaEventCreate(&start));
    CUDA(cudaEventCreate(&stop));
  }
  float elapsed;
  CUDA(cudaEventRecord(start));
  for (int i = 0; i < launches; i++) method.run();
  CUDA(cudaEventRecord(stop));
  CUDA(cudaEventSynchronize(stop));
  CUDA(cudaEventElapsedTime(&elapsed, start, stop));
  return elapsed / static_cast<float>(launches);
}

/* A turn is one launch to warm the caches and five timed ones; a method slower than 5 ms takes three turns of one. */
static void time_in_turns(std::vector<method> &methods, int turns) {
  std::vector<bool> slow;
  for (const method &method : methods) slow.push_back((method.run(), time_launches(method, 1)) > 5.0f);
  for (int turn = 0; turn < turns; turn++)
    for (size_t i = 0; i < methods.size(); i++) {
      if (slow[i] && turn >= 3) continue;
      if (!slow[i]) methods[i].run();
      methods[i].milliseconds.push_back(time_launches(methods[i], slow[i] ? 1 : 5));
    }
  for (method &method : methods) std::sort(method.milliseconds.begin(), method.milliseconds.end());
}

/* A as CSR and as a dense matrix, for the libraries. */
struct library_operands {
  int64_t nnz;
  int32_t *row_ptr, *col_idx;
  uint16_t *values, *dense; /* dense [m × k] */
};

static library_operands library_operands_create(const host_bcsr &a) {
  std::vector<int32_t> row_ptr = {0}, col_idx;
  std::vector<uint16_t> values, dense(int64_t{a.m} * a.k, 0);
  for (int64_t i = 0; i < a.m; i++) {
    for (int64_t block = a.block_row_ptr[i / 64]; block < a.block_row_ptr[i / 64 + 1]; block++)
      for (int c = 0; c < 64 && a.block_col_idx[block] * 64 + c < a.k; c++) {
        col_idx.push_back(a.block_col_idx[block] * 64 + c);
        values.push_back(a.blocks[(block * 64 + i % 64) * 64 + c]);
        dense[i * a.k + col_idx.back()] = values.back();
      }
    row_ptr.push_back(static_cast<int32_t>(values.size()));
  }
  return {static_cast<int64_t>(values.size()), to_device(row_ptr), to_device(col_idx), to_device(values),
          to_device(dense)};
}

static void library_operands_destroy(library_operands &l) {
  CUDA(cudaFree(l.row_ptr));
  CUDA(cudaFree(l.col_idx));
  CUDA(cudaFree(l.values));
  CUDA(cudaFree(l.dense));
}

struct cusparse_product {
  cusparseSpMatDescr_t a;
  cusparseDnMatDescr_t b, c;
  void *workspace[3];
};

static const float kOne = 1.0f, kZero = 0.0f;
static const cusparseSpMMAlg_t kAlgorithms[3] = {CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2,
                                                 CUSPARSE_SPMM_CSR_ALG3};

static cusparse_product cusparse_create(cusparseHandle_t handle, const library_operands &l, int64_t m, int64_t k,
                                        int64_t n, void *b, void *c) {
  cusparse_product p = {};
  LIBRARY(cusparseCreateCsr(&p.a, m, k, l.nnz, l.row_ptr, l.col_idx, l.values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_BASE_ZERO, CUDA_R_16BF));
  LIBRARY(cusparseCreateDnMat(&p.b, k, n, n, b, CUDA_R_16BF, CUSPARSE_ORDER_ROW));
  LIBRARY(cusparseCreateDnMat(&p.c, m, n, n, c, CUDA_R_32F, CUSPARSE_ORDER_ROW));
  for (int i = 0; i < 3; i++) {
    size_t bytes = 0;
    LIBRARY(cusparseSpMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne,
                                    p.a, p.b, &kZero, p.c, CUDA_R_32F, kAlgorithms[i], &bytes));
    CUDA(cudaMalloc(&p.workspace[i], bytes + 16));
    LIBRARY(cusparseSpMM_preprocess(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne,
                                    p.a, p.b, &kZero, p.c, CUDA_R_32F, kAlgorithms[i], p.workspace[i]));
  }
  return p;
}

static void cusparse_destroy(cusparse_product &p) {
  for (void *workspace : p.workspace) CUDA(cudaFree(workspace));
  LIBRARY(cusparseDestroySpMat(p.a));
  LIBRARY(cusparseDestroyDnMat(p.b));
  LIBRARY(cusparseDestroyDnMat(p.c));
}

/* Largest error of 16 sampled rows, in units of the bound. */
static double sampled_error(random_stream &random, const host_bcsr &a, const std::vector<uint16_t> &b, int64_t n,
                            const float *d_c) {
  std::vector<float> row(n);
  std::vector<double> sum(n), bound(n);
  double worst = 0.0;
  for (int i = 0; i < 16; i++) {
    const int64_t sampled = static_cast<int64_t>(random.next() % a.m);
    CUDA(cudaMemcpy(row.data(), d_c + sampled * n, n * sizeof(float), cudaMemcpyDeviceToHost));
    reference_row(a, sampled, b, n, n, sum.data(), bound.data());
    worst = std::max(worst, row_error(n, row.data(), sum.data(), bound.data()));
  }
  return worst;
}

static void print_table(const std::vector<method> &methods, int64_t nnz, int64_t n, double dense_ms, double csr_ms) {
  for (const method &method : methods) {
    const std::vector<float> &ms = method.milliseconds;
    const double median = method.median();
    printf("  %-16s %9.4f ms (%.4f-%.4f) %8.1f TFLOP/s %7.2fx cuBLAS %7.2fx cuSPARSE\n", method.name.c_str(), median,
           ms.front(), ms[ms.size() * 9 / 10], 2.0 * nnz * n / median * 1e-9, dense_ms / median, csr_ms / median);
  }
}

static void time_matrix(random_stream &random, cusparseHandle_t cusparse, cublasHandle_t cublas, int32_t m, int32_t k,
                        double density, const std::vector<int64_t> &columns, int turns) {
  const host_bcsr a = random_bcsr(random, m, k, density);
  asparse_cuda_bcsr d_a = bcsr_to_device(a);
  library_operands l = library_operands_create(a);
  for (int64_t n : columns) {
    std::vector<uint16_t> b(k * n);
    for (uint16_t &x : b) x = random_bf16(random);
    uint16_t *d_b = to_device(b);
    float *d_c;
    CUDA(cudaMalloc(&d_c, m * n * sizeof(float)));
    const asparse_cuda_dense_pair bc = {n, d_b, n, d_c, n};
    cusparse_product csr = cusparse_create(cusparse, l, m, k, n, d_b, d_c);

    std::vector<method> methods;
    methods.push_back({"cuBLAS dense",
                       [&] { /* Cᵀ = Bᵀ·Aᵀ, column-major */
                             LIBRARY(cublasGemmEx(cublas, CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(n), m, k, &kOne,
                                                  d_b, CUDA_R_16BF, static_cast<int>(n), l.dense, CUDA_R_16BF, k,
                                                  &kZero, d_c, CUDA_R_32F, static_cast<int>(n), CUBLAS_COMPUTE_32F,
                                                  CUBLAS_GEMM_DEFAULT));
                       },
                       {}});
    for (int i = 0; i < 3; i++)
      methods.push_back({"cuSPARSE CSR " + std::to_string(i + 1),
                         [&, i] {
                           LIBRARY(cusparseSpMM(cusparse, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                                CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, csr.a, csr.b, &kZero, csr.c,
                                                CUDA_R_32F, kAlgorithms[i], csr.workspace[i]));
                         },
                         {}});
    for (const bcsr_variant &variant : bcsr_variants())
      methods.push_back({variant.name, [&, variant] { CUDA(variant.run(&d_a, &bc, nullptr)); }, {}});
    time_in_turns(methods, turns);

    double worst = 0.0, csr_ms = INFINITY;
    for (size_t i = 1; i < 4; i++) csr_ms = std::min(csr_ms, methods[i].median());
    for (size_t i = 4; i < methods.size(); i++) {
      CUDA(cudaMemset(d_c, 0xff, m * n * sizeof(float)));
      methods[i].run();
      worst = std::max(worst, sampled_error(random, a, b, n, d_c));
    }
    printf("%d x %d, n %ld, %.1f %% of the blocks empty; largest error %.3f of the bound\n", m, k, static_cast<long>(n),
           100.0 * (1.0 - static_cast<double>(l.nnz) / (static_cast<double>(m) * k)), worst);
    print_table(methods, l.nnz, n, methods[0].median(), csr_ms);
    cusparse_destroy(csr);
    CUDA(cudaFree(d_b));
    CUDA(cudaFree(d_c));
  }
  library_operands_destroy(l);
  bcsr_free(d_a);
}

int main(int argc, char **argv) {
  const int turns = argc > 1 ? std::max(1, atoi(argv[1])) : 21;
  random_stream random = {20260101};
  cusparseHandle_t cusparse;
  cublasHandle_t cublas;
  LIBRARY(cusparseCreate(&cusparse));
  LIBRARY(cublasCreate(&cublas));
  const std::vector<double> densities =
      argc > 2 ? std::vector<double>{atof(argv[2])} : std::vector<double>{0.1, 0.01, 0.05, 0.5};
  for (double density : densities) {
    time_matrix(random, cusparse, cublas, 18944, 3584, density, {1024, 256, 4096}, turns);
    time_matrix(random, cusparse, cublas, 3584, 18944, density, {1024, 256, 4096}, turns);
  }
  LIBRARY(cublasDestroy(cublas));
  LIBRARY(cusparseDestroy(cusparse));
  return 0;
}
