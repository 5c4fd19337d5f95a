/* The BCSR ladder beside cuSPARSE CSR and dense cuBLAS in one process: block-sparse matrices with full 64 × 64 blocks
 * at random, bf16 A and B, C in fp32 and bf16. Methods take turns; the median of the turns is printed, caches warm. C
 * of our kernels is checked on sampled rows against fp64. Usage: bcsr_timing [turns [density [brief]]], brief: n = 1024
 * and 4096, without cuSPARSE */
#include <algorithm>

#include <cublas_v2.h>
#include <cusparse.h>

#include "tests/gpu/bcsr_fixture.cuh"

#define LIBRARY(call)                                                                                                  \
  do {                                                                                                                 \
    int status_ = static_cast<int>(call);                                                                              \
    if (status_ != 0) {                                                                                                \
      std::printf("%s:%d: %s: status %d\n", __FILE__, __LINE__, #call, status_);                                       \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (0)

/* ---- timing --------------------------------------------------------------------------------- */

struct Method {
  std::string name;
  std::function<void()> run;
  std::vector<float> milliseconds; /* sorted once timed */
  double median() const { return milliseconds[milliseconds.size() / 2]; }
};

static float time_launches(const Method &method, int launches) {
  static cudaEvent_t start = nullptr, stop = nullptr;
  if (!start) {
    CUDA_OK(cudaEventCreate(&start));
    CUDA_OK(cudaEventCreate(&stop));
  }
  float elapsed;
  CUDA_OK(cudaEventRecord(start));
  for (int i = 0; i < launches; i++) method.run();
  CUDA_OK(cudaEventRecord(stop));
  CUDA_OK(cudaEventSynchronize(stop));
  CUDA_OK(cudaEventElapsedTime(&elapsed, start, stop));
  return elapsed / static_cast<float>(launches);
}

/* A turn is one launch to warm the caches and five timed ones; a method slower than 5 ms takes three turns of one. */
static void time_in_turns(std::vector<Method> &methods, int turns) {
  std::vector<bool> slow;
  for (const Method &method : methods) slow.push_back((method.run(), time_launches(method, 1)) > 5.0f);
  for (int turn = 0; turn < turns; turn++)
    for (size_t i = 0; i < methods.size(); i++) {
      if (slow[i] && turn >= 3) continue;
      if (!slow[i]) methods[i].run();
      methods[i].milliseconds.push_back(time_launches(methods[i], slow[i] ? 1 : 5));
    }
  for (Method &method : methods) std::sort(method.milliseconds.begin(), method.milliseconds.end());
}

/* ---- operands ------------------------------------------------------------------------------- */

static std::vector<uint16_t> random_bf16(int64_t count, uint64_t seed) {
  std::vector<uint16_t> x(count);
#pragma omp parallel for
  for (int64_t i = 0; i < count; i++) {
    Random random{seed + static_cast<uint64_t>(i)};
    x[i] = asparse_bf16_from_float(static_cast<float>(random.value()));
  }
  return x;
}

/* Full blocks, each there with probability density. */
struct RandomBlocks {
  asparse_bcsr *a = nullptr;
  RandomBlocks(int32_t m, int32_t k, double density, uint64_t seed) {
    std::vector<std::vector<int32_t>> rows(m / 64);
    Random random{seed};
    int64_t n_blocks = 0;
    for (auto &row : rows) {
      for (int32_t j = 0; j < k / 64; j++)
        if (random.unit() < density) row.push_back(j);
      n_blocks += static_cast<int64_t>(row.size());
    }
    STATUS_OK(asparse_bcsr_create(&a, m, k, 64, n_blocks, ASPARSE_BF16));
    a->nnz = n_blocks * 64 * 64;
    a->block_row_ptr[0] = 0;
    for (int32_t i = 0; i < m / 64; i++) {
      a->block_row_ptr[i + 1] = a->block_row_ptr[i] + static_cast<int64_t>(rows[i].size());
      std::copy(rows[i].begin(), rows[i].end(), a->block_col_idx + a->block_row_ptr[i]);
    }
    std::fill(a->entry_mask, a->entry_mask + n_blocks * 64, UINT64_MAX);
    const std::vector<uint16_t> values = random_bf16(a->nnz, ++seed << 32);
    std::memcpy(a->blocks, values.data(), values.size() * sizeof(uint16_t));
  }
  RandomBlocks(const RandomBlocks &) = delete;
  ~RandomBlocks() { asparse_bcsr_destroy(&a); }
};

/* A as CSR and as a dense matrix, for the libraries. */
struct LibraryOperands {
  Buffer row_ptr, col_idx, values, dense; /* dense [m × k] */
  explicit LibraryOperands(const asparse_bcsr *a)
      : row_ptr((a->m + 1) * sizeof(int32_t)), col_idx(a->nnz * sizeof(int32_t)), values(a->nnz * sizeof(uint16_t)),
        dense(int64_t{a->m} * a->k * sizeof(uint16_t)) {
    std::vector<int32_t> h_row_ptr = {0}, h_col_idx;
    std::vector<uint16_t> h_values, h_dense(int64_t{a->m} * a->k, 0);
    const uint16_t *blocks = static_cast<const uint16_t *>(a->blocks);
    for (int64_t i = 0; i < a->m; i++) {
      for (int64_t block = a->block_row_ptr[i / 64]; block < a->block_row_ptr[i / 64 + 1]; block++)
        for (int c = 0; c < 64; c++) {
          h_col_idx.push_back(a->block_col_idx[block] * 64 + c);
          h_values.push_back(blocks[(block * 64 + i % 64) * 64 + c]);
          h_dense[i * a->k + h_col_idx.back()] = h_values.back();
        }
      h_row_ptr.push_back(static_cast<int32_t>(h_values.size()));
    }
    CUDA_OK(cudaMemcpy(row_ptr.d, h_row_ptr.data(), row_ptr.bytes, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(col_idx.d, h_col_idx.data(), col_idx.bytes, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(values.d, h_values.data(), values.bytes, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(dense.d, h_dense.data(), dense.bytes, cudaMemcpyHostToDevice));
  }
};

static const float kOne = 1.0f, kZero = 0.0f;
static const cusparseSpMMAlg_t kAlgorithms[3] = {CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2,
                                                 CUSPARSE_SPMM_CSR_ALG3};

/* cuSPARSE with C in fp32. */
struct CusparseProduct {
  cusparseHandle_t handle;
  cusparseSpMatDescr_t a;
  cusparseDnMatDescr_t b, c;
  void *workspace[3];
  CusparseProduct(cusparseHandle_t cusparse, const LibraryOperands &l, const asparse_bcsr *bcsr, int64_t n, void *d_b,
                  void *d_c)
      : handle(cusparse) {
    LIBRARY(cusparseCreateCsr(&a, bcsr->m, bcsr->k, bcsr->nnz, l.row_ptr.d, l.col_idx.d, l.values.d, CUSPARSE_INDEX_32I,
                              CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_16BF));
    LIBRARY(cusparseCreateDnMat(&b, bcsr->k, n, n, d_b, CUDA_R_16BF, CUSPARSE_ORDER_ROW));
    LIBRARY(cusparseCreateDnMat(&c, bcsr->m, n, n, d_c, CUDA_R_32F, CUSPARSE_ORDER_ROW));
    for (int i = 0; i < 3; i++) {
      size_t bytes = 0;
      LIBRARY(cusparseSpMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne,
                                      a, b, &kZero, c, CUDA_R_32F, kAlgorithms[i], &bytes));
      CUDA_OK(cudaMalloc(&workspace[i], bytes + 16));
      LIBRARY(cusparseSpMM_preprocess(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne,
                                      a, b, &kZero, c, CUDA_R_32F, kAlgorithms[i], workspace[i]));
    }
  }
  CusparseProduct(const CusparseProduct &) = delete;
  ~CusparseProduct() {
    for (void *space : workspace) cudaFree(space);
    cusparseDestroySpMat(a);
    cusparseDestroyDnMat(b);
    cusparseDestroyDnMat(c);
  }
  void run(int i) const {
    LIBRARY(cusparseSpMM(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, a, b,
                         &kZero, c, CUDA_R_32F, kAlgorithms[i], workspace[i]));
  }
};

/* Largest |c - ref| / (2·q·2^-23·Σ|a||b| + u_c·|ref|) in row i; infinite for NaN. */
static double row_error(const asparse_bcsr *a, const std::vector<uint16_t> &b, int64_t n, asparse_dtype c_dtype,
                        int64_t i, const char *c_row) {
  const int64_t begin = a->block_row_ptr[i / 64], end = a->block_row_ptr[i / 64 + 1];
  std::vector<double> sum(n), size(n);
  for (int64_t e = begin * 64; e < end * 64; e++) { /* entry e % 64 of the row of block e / 64 */
    const double x = asparse_load(ASPARSE_BF16, a->blocks, (e / 64 * 64 + i % 64) * 64 + e % 64);
    for (int64_t j = 0; j < n; j++) {
      const double y = asparse_float_from_bf16(b[(a->block_col_idx[e / 64] * int64_t{64} + e % 64) * n + j]);
      sum[j] += x * y;
      size[j] += std::fabs(x * y);
    }
  }
  double worst = 0.0;
  for (int64_t j = 0; j < n; j++) {
    const double u_c = c_dtype == ASPARSE_BF16 ? 0x1.01p-8 : 0, q = static_cast<double>((end - begin) * 64);
    const double bound = 2.0 * q * 0x1p-23 * size[j] + u_c * std::fabs(sum[j]);
    const double error = std::fabs(asparse_load(c_dtype, c_row, j) - sum[j]);
    worst = std::max(worst, error == 0.0 ? 0.0 : error <= 1e300 ? error / bound : INFINITY);
  }
  return worst;
}

/* The largest of 16 sampled rows. */
static double sampled_error(Random &random, const asparse_bcsr *a, const std::vector<uint16_t> &b, int64_t n,
                            asparse_dtype c_dtype, const char *d_c) {
  const size_t row_bytes = n * asparse_dtype_size(c_dtype);
  const uint64_t seed = random.next();
  double worst = 0.0;
#pragma omp parallel for reduction(max : worst)
  for (int sample = 0; sample < 16; sample++) {
    const int64_t i = Random{seed + static_cast<uint64_t>(sample)}.below(a->m);
    std::vector<char> row(row_bytes);
    CUDA_OK(cudaMemcpy(row.data(), d_c + i * row_bytes, row_bytes, cudaMemcpyDeviceToHost));
    worst = std::max(worst, row_error(a, b, n, c_dtype, i, row.data()));
  }
  return worst;
}

/* ---- one table ------------------------------------------------------------------------------ */

struct Libraries {
  cusparseHandle_t cusparse;
  cublasHandle_t cublas;
};

static void print_table(const std::vector<Method> &methods, int64_t nnz, int64_t n) {
  const double dense_ms = methods[0].median();
  double csr_ms = INFINITY;
  for (const Method &method : methods)
    if (method.name.compare(0, 8, "cuSPARSE") == 0) csr_ms = std::min(csr_ms, method.median());
  double before = 0.0;
  for (const Method &method : methods) {
    const std::vector<float> &ms = method.milliseconds;
    const double median = method.median();
    std::printf("  %-16s %9.4f ms (%.4f-%.4f) %8.1f TFLOP/s %7.2fx cuBLAS", method.name.c_str(), median, ms.front(),
                ms[ms.size() * 9 / 10], 2.0 * nnz * n / median * 1e-9, dense_ms / median);
    if (csr_ms < INFINITY) std::printf(" %7.2fx cuSPARSE", csr_ms / median);
    const bool step = std::any_of(std::begin(asparse_bcsr_ladder), std::end(asparse_bcsr_ladder),
                                  [&](const asparse_bcsr_variant &s) { return method.name == s.name; });
    if (step && before > 0.0) std::printf(" %6.2fx the step before", before / median);
    if (step) before = median;
    std::printf("\n");
  }
}

/* One shape, one n, one type of C. */
static void time_product(const Libraries &libraries, const asparse_bcsr *a, const DeviceBcsr &d,
                         const LibraryOperands &l, int64_t n, asparse_dtype c_dtype, int turns, bool brief) {
  Random random{static_cast<uint64_t>(n)};
  const std::vector<uint16_t> b = random_bf16(a->k * n, 1 + n);
  Buffer d_b = upload(b), d_c(a->m * n * sizeof(float));
  const asparse_cuda_dense_pair bc = {n, d_b.as<uint16_t>(), n, d_c.d, n, c_dtype, false};
  CusparseProduct csr(libraries.cusparse, l, a, n, d_b.d, d_c.d);

  std::vector<Method> methods;
  methods.push_back({"cuBLAS dense",
                     [&] { /* Cᵀ = Bᵀ·Aᵀ, column-major */
                           const int columns = static_cast<int>(n);
                           LIBRARY(cublasGemmEx(libraries.cublas, CUBLAS_OP_N, CUBLAS_OP_N, columns, a->m, a->k, &kOne,
                                                d_b.d, CUDA_R_16BF, columns, l.dense.d, CUDA_R_16BF, a->k, &kZero,
                                                d_c.d, c_dtype == ASPARSE_BF16 ? CUDA_R_16BF : CUDA_R_32F, columns,
                                                CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
                     },
                     {}});
  if (!brief && c_dtype == ASPARSE_FP32)
    for (int i = 0; i < 3; i++)
      methods.push_back({"cuSPARSE CSR " + std::to_string(i + 1), [&, i] { csr.run(i); }, {}});
  methods.push_back(
      {"C overwritten", [&] { CUDA_OK(cudaMemsetAsync(d_c.d, 0, a->m * n * asparse_dtype_size(c_dtype))); }, {}});
  const size_t first = methods.size();
  for (const BcsrVariant &variant : bcsr_variants()) {
    const asparse_cuda_bcsr with_groups = d.with_groups(variant.tile_rows);
    methods.push_back({variant.name, [=] { CUDA_OK(variant.multiply(&with_groups, &bc, nullptr)); }, {}});
  }
  time_in_turns(methods, turns);

  double worst = 0.0;
  for (size_t i = first; i < methods.size(); i++) {
    CUDA_OK(cudaMemset(d_c.d, 0xff, d_c.bytes));
    methods[i].run();
    worst = std::max(worst, sampled_error(random, a, b, n, c_dtype, d_c.as<char>()));
  }
  std::printf("%d x %d, n %lld, C %s, %.1f %% of the blocks empty; largest error %.3f of the bound\n", a->m, a->k,
              static_cast<long long>(n), asparse_dtype_name(c_dtype),
              100.0 * (1.0 - static_cast<double>(a->nnz) / (static_cast<double>(a->m) * a->k)), worst);
  print_table(methods, a->nnz, n);
}

int main(int argc, char **argv) {
  const int turns = argc > 1 ? std::max(1, std::atoi(argv[1])) : 21;
  const bool brief = argc > 3;
  const std::vector<double> densities =
      argc > 2 ? std::vector<double>{std::atof(argv[2])} : std::vector<double>{0.1, 0.01, 0.05, 0.5};
  Libraries libraries;
  LIBRARY(cusparseCreate(&libraries.cusparse));
  LIBRARY(cublasCreate(&libraries.cublas));
  for (double density : densities)
    for (int32_t m : {18944, 3584}) {
      const RandomBlocks blocks(m, m == 3584 ? 18944 : 3584, density, 20260101);
      const DeviceBcsr d(blocks.a);
      const LibraryOperands l(blocks.a);
      for (asparse_dtype c_dtype : {ASPARSE_FP32, ASPARSE_BF16})
        for (int64_t n : brief ? std::vector<int64_t>{1024, 4096} : std::vector<int64_t>{256, 1024, 4096})
          time_product(libraries, blocks.a, d, l, n, c_dtype, turns, brief);
    }
  LIBRARY(cublasDestroy(libraries.cublas));
  LIBRARY(cusparseDestroy(libraries.cusparse));
  return 0;
}
