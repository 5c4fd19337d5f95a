/* Every variant of the BCSR ladder against the reference: awkward shapes and layouts, both types of C, accumulation,
 * Inf and NaN in B, repeatability, graph capture, refusals. Build it with ASPARSE_RANDOM_DELAYS too.
 * Usage: bcsr_cuda [seed [quick]] */
#include "tests/gpu/bcsr_fixture.cuh"
#include "tests/gpu/product_check.cuh"

static int n_checks;

/* Blocks of 64 × 64 are there with probability density, their entries with probability fill. */
static Matrix block_sparse(int32_t m, int32_t k, double density, double fill, uint64_t seed) {
  Random random{seed};
  std::vector<std::set<int32_t>> rows(m);
  for (int32_t i = 0; i < m; i += 64)
    for (int32_t j = 0; j < k; j += 64) {
      if (random.unit() >= density) continue;
      for (int32_t e = 0; e < 64 * 64; e++)
        if (i + e / 64 < m && j + e % 64 < k && random.unit() < fill) rows[i + e / 64].insert(j + e % 64);
    }
  return from_rows("blocks " + std::to_string(m) + "x" + std::to_string(k), k, rows);
}

static std::vector<Matrix> matrices(uint64_t seed, bool quick) {
  std::vector<Matrix> all;
  all.push_back(block_sparse(1, 1, 1, 1, seed));
  all.push_back(block_sparse(200, 130, 0, 1, seed)); /* no entries */
  all.push_back(block_sparse(333, 511, 0.25, 0.3, seed + 1));
  if (quick) return all;
  all.push_back(block_sparse(64, 64, 1, 1, seed + 2));
  all.push_back(block_sparse(130, 200, 0.5, 0.5, seed + 3));
  all.push_back(block_sparse(65, 3000, 0.9, 0.02, seed + 4));
  all.push_back(block_sparse(707, 961, 0.08, 0.7, seed + 5)); /* empty block rows */
  return all;
}

/* a, filled with values, in blocks. */
struct HostBcsr {
  asparse_bcsr *a = nullptr;
  HostBcsr(Matrix &matrix, uint64_t seed) {
    matrix.fill(ASPARSE_BF16, seed);
    const asparse_local_csr csr = matrix.csr();
    STATUS_OK(asparse_bcsr_build(&csr, ASPARSE_CUDA_BLOCK, &a));
  }
  HostBcsr(const HostBcsr &) = delete;
  ~HostBcsr() { asparse_bcsr_destroy(&a); }
};

struct Case {
  asparse_dtype c_dtype;
  bool accumulate;
  Special special;
};

static const Case kCases[8] = {{ASPARSE_FP32, false, Special::kNone}, {ASPARSE_BF16, false, Special::kNone},
                               {ASPARSE_FP32, true, Special::kNone},  {ASPARSE_BF16, true, Special::kNone},
                               {ASPARSE_FP32, false, Special::kSome}, {ASPARSE_BF16, false, Special::kSome},
                               {ASPARSE_FP32, true, Special::kSome},  {ASPARSE_BF16, true, Special::kSome}};

static int check(Matrix &a, const DeviceBcsr &d, const Layout &at, const Case &c, uint64_t seed, int repeats) {
  static const std::vector<BcsrVariant> variants = bcsr_variants();
  Product product(a, c.c_dtype, at, c.accumulate, c.special, seed);
  int wrong = 0;
  for (const BcsrVariant &variant : variants) {
    const asparse_cuda_bcsr with_groups = d.with_groups(variant.tile_rows);
    if (variant.needs_aligned_b && (at.ldb % 8 != 0 || at.offset % 8 != 0)) continue;
    n_checks++;
    wrong += product.check((variant.name + (c.c_dtype == ASPARSE_BF16 ? ", bf16 C" : "")).c_str(),
                           [&](const char *d_b, char *d_c) {
                             const asparse_cuda_dense_pair bc = {
                                 at.n,        reinterpret_cast<const uint16_t *>(d_b), at.ldb, d_c, at.ldc, c.c_dtype,
                                 c.accumulate};
                             return variant.multiply(&with_groups, &bc, nullptr);
                           },
                           repeats);
  }
  return wrong;
}

static int refused(cudaError_t got, cudaError_t wanted, const char *what) {
  n_checks++;
  if (got == wanted) return 0;
  std::printf("FAIL %s: %s, expected %s\n", what, cudaGetErrorName(got), cudaGetErrorName(wanted));
  return 1;
}

static int check_refusals(const DeviceBcsr &d) {
  Buffer b(d.bcsr.k * 24 * sizeof(uint16_t)), c(d.bcsr.m * 24 * sizeof(float));
  const asparse_cuda_dense_pair good = {24, b.as<uint16_t>(), 24, c.d, 24, ASPARSE_FP32, false};
  int wrong = 0;
  for (const BcsrVariant &variant : bcsr_variants()) {
    const asparse_cuda_bcsr with_groups = d.with_groups(variant.tile_rows);
    asparse_cuda_dense_pair bad = good;
    bad.ldb = 23;
    wrong += refused(variant.multiply(&with_groups, &bad, nullptr), cudaErrorInvalidValue, "ldb < n");
    bad = good, bad.c_dtype = ASPARSE_FP64;
    wrong += refused(variant.multiply(&with_groups, &bad, nullptr), cudaErrorInvalidValue, "fp64 C");
    bad = good, bad.c = c.as<char>() + 2;
    wrong += refused(variant.multiply(&with_groups, &bad, nullptr), cudaErrorMisalignedAddress, "half an element");
    bad = good, bad.n = bad.ldb = 20;
    if (variant.needs_aligned_b)
      wrong += refused(variant.multiply(&with_groups, &bad, nullptr), cudaErrorMisalignedAddress, "ldb 20");
    asparse_cuda_bcsr a = with_groups;
    a.n_block_rows++;
    wrong += refused(variant.multiply(&a, &good, nullptr), cudaErrorInvalidValue, "a wrong number of block rows");
    a.m = a.n_block_rows = 0;
    wrong += refused(variant.multiply(&a, &good, nullptr), cudaSuccess, "0 rows");
  }
  const asparse_bcsr_pipeline_config unknown = {1, 200, 3, 1, 1, false}, grouped = {3, 256, 3, 1, 1, true};
  wrong += refused(asparse_bcsr_pipeline(&d.bcsr, &good, grouped, nullptr), cudaErrorInvalidValue, "no groups");
  wrong += refused(asparse_bcsr_pipeline(&d.bcsr, &good, unknown, nullptr), cudaErrorInvalidValue, "200 columns");
  return wrong;
}

/* A captured graph computes what the launch computes, and nothing the launcher does forbids capture. */
static int check_capture(const DeviceBcsr &d) {
  const int64_t n = 256;
  std::vector<uint16_t> b(d.bcsr.k * n, 0x3f80); /* 1 */
  Buffer d_b = upload(b), d_c(d.bcsr.m * n * sizeof(float));
  std::vector<float> launched(d.bcsr.m * n), replayed(d.bcsr.m * n);
  const asparse_cuda_dense_pair bc = {n, d_b.as<uint16_t>(), n, d_c.d, n, ASPARSE_FP32, false};
  cudaStream_t stream;
  int wrong = 0;
  CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (const BcsrVariant &variant : bcsr_variants()) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    const asparse_cuda_bcsr with_groups = d.with_groups(variant.tile_rows);
    CUDA_OK(variant.multiply(&with_groups, &bc, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    d_c.read(launched.data());
    CUDA_OK(cudaMemset(d_c.d, 0xff, d_c.bytes));
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA_OK(variant.multiply(&with_groups, &bc, stream));
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&executable, graph, 0));
    CUDA_OK(cudaGraphLaunch(executable, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    d_c.read(replayed.data());
    n_checks++;
    const bool same = std::memcmp(launched.data(), replayed.data(), d_c.bytes) == 0;
    if (!same) std::printf("FAIL %s: a captured graph computes something else\n", variant.name.c_str());
    wrong += !same;
    CUDA_OK(cudaGraphExecDestroy(executable));
    CUDA_OK(cudaGraphDestroy(graph));
  }
  CUDA_OK(cudaStreamDestroy(stream));
  return wrong;
}

static bool is_compiled(const asparse_bcsr_pipeline_config &c) {
  for (int i = 0; i < ASPARSE_BCSR_PIPELINE_CONFIGS; i++) {
    const asparse_bcsr_pipeline_config x = asparse_bcsr_pipeline_compiled(i);
    if (x.tile_rows == c.tile_rows && x.tile_columns == c.tile_columns && x.stages == c.stages &&
        x.cluster == c.cluster && x.shares == c.shares && x.persistent == c.persistent)
      return true;
  }
  return false;
}

/* The choice is compiled, takes groups only where there are some, pads little, and shares tiles where they are few. */
static int check_choice() {
  int wrong = 0, grouped = 0, shared = 0;
  for (int32_t rows : {1, 56, 296, 5000})
    for (int64_t per_row : {0, 1, 6, 28, 150})
      for (int32_t group_rows : {0, 2, 3})
        for (int64_t n = 1; n < 5000; n += n < 600 ? 1 : 97) {
          asparse_cuda_bcsr a = {};
          a.m = 64 * rows, a.k = 64 * 200, a.n_block_rows = rows, a.n_blocks = rows * per_row;
          a.groups.rows = group_rows;
          if (group_rows) a.groups.n_groups = (rows + group_rows - 1) / group_rows;
          a.groups.n_steps = static_cast<int32_t>(a.n_blocks * 3 / 4);
          const asparse_bcsr_pipeline_config c = asparse_bcsr_pipeline_choose(&a, n);
          const int64_t columns = (n + c.tile_columns - 1) / c.tile_columns * c.tile_columns;
          const bool good = is_compiled(c) && (c.tile_rows == 1 || c.tile_rows == group_rows) &&
                            8 * columns <= 9 * ((n + 127) / 128 * 128);
          n_checks++;
          grouped += c.tile_rows > 1;
          shared += c.shares > 1;
          wrong += !good;
          if (!good) std::printf("FAIL choice for %d block rows, n %lld\n", rows, (long long)n);
        }
  if (grouped == 0 || shared == 0) std::printf("FAIL groups or shared tiles are never chosen\n");
  return wrong + (grouped == 0) + (shared == 0);
}

/* B for the copy engine and C not. */
static std::vector<Layout> bcsr_layouts(const std::vector<int64_t> &columns) {
  std::vector<Layout> all = layouts(columns);
  for (const Layout &layout : {Layout{64, 64, 65, 0}, Layout{100, 104, 102, 0}, Layout{257, 264, 258, 0},
                               Layout{256, 256, 260, 0}, Layout{40, 48, 41, 8}})
    all.push_back(layout);
  return all;
}

static int check_matrix(Matrix &a, const std::vector<int64_t> &columns, bool quick, uint64_t seed) {
  const HostBcsr host(a, seed);
  const DeviceBcsr d(host.a);
  int wrong = 0, next = 0;
  for (const Layout &layout : bcsr_layouts(columns)) wrong += check(a, d, layout, kCases[next++ * 3 % 8], ++seed, 1);
  for (const Case &c : kCases)
    wrong += check(a, d, {136, 136, 136, 0}, c, ++seed, quick || c.special == Special::kSome ? 2 : 20);
  if (a.nnz() > 1000) wrong += check_refusals(d) + check_capture(d);
  return wrong;
}

int main(int argc, char **argv) {
  int wrong = check_choice(); /* needs no GPU */
  if (wrong) return 1;
  need_gpu();
  uint64_t seed = seed_of(argc, argv);
  const bool quick = argc > 2;
  const std::vector<int64_t> columns = quick
                                           ? std::vector<int64_t>{100, 520}
                                           : std::vector<int64_t>{1, 7, 8, 33, 64, 100, 128, 143, 256, 257, 1000, 1024};
  for (Matrix &a : matrices(seed, quick)) wrong += check_matrix(a, columns, quick, seed += 1000);
  if (!quick) { /* more than 65,535 block rows */
    Matrix many = block_sparse(64 * 65536 + 9, 60, 0.001, 0.1, ++seed);
    const HostBcsr host(many, ++seed);
    wrong += check(many, DeviceBcsr(host.a), {1, 8, 1, 0}, kCases[0], ++seed, 1);
  }
  std::printf("bcsr_cuda: %d checks, %d wrong elements\n", n_checks, wrong);
  return wrong != 0;
}
