/* Correctness of every step of the BCSR ladder against fp64 on fresh random data: awkward shapes, poisoned C, canaries
 * around C, NaN around B, refusals, graph capture, bitwise repeatability. Build it with -DASPARSE_RANDOM_DELAYS too.
 * Usage: bcsr_cuda [seed] [small] */
#include <time.h>

#include "tests/gpu/bcsr_fixture.cuh"

static const uint32_t kPoison = 0x7fc0dead; /* a NaN no kernel writes */
static int failures = 0, checks = 0;

static void expect(bool condition, const char *what, const char *variant) {
  checks++;
  if (condition) return;
  failures++;
  printf("FAILED: %s: %s\n", variant, what);
}

struct problem {
  host_bcsr a;
  int64_t n, ldb, ldc;
  std::vector<uint16_t> b; /* [(k + 1) × ldb], NaN outside k × n */
  asparse_cuda_bcsr d_a;
  uint16_t *d_b;
  float *d_c; /* [(m + 2) × ldc], the first and last row canaries */
};

static problem problem_create(random_stream &random, int32_t m, int32_t k, int64_t n, double density, int64_t ldb,
                              int64_t ldc) {
  problem p = {random_bcsr(random, m, k, density), n, ldb, ldc, {}, {}, nullptr, nullptr};
  p.b.assign((k + 1) * ldb, 0x7fc0);
  for (int64_t i = 0; i < k; i++)
    for (int64_t j = 0; j < n; j++) p.b[i * ldb + j] = random_bf16(random);
  p.d_a = bcsr_to_device(p.a);
  p.d_b = to_device(p.b);
  CUDA(cudaMalloc(&p.d_c, (m + 2) * ldc * sizeof(float)));
  return p;
}

static void problem_destroy(problem &p) {
  bcsr_free(p.d_a);
  CUDA(cudaFree(p.d_b));
  CUDA(cudaFree(p.d_c));
}

/* C with its canaries after one run of the variant over poison. */
static std::vector<float> run(const problem &p, const bcsr_variant &variant) {
  const int64_t elements = (p.a.m + 2) * p.ldc;
  std::vector<uint32_t> poison(elements, kPoison);
  std::vector<float> c(elements);
  CUDA(cudaMemcpy(p.d_c, poison.data(), elements * sizeof(float), cudaMemcpyHostToDevice));
  const asparse_cuda_dense_pair bc = {p.n, p.d_b, p.ldb, p.d_c + p.ldc, p.ldc};
  CUDA(variant.run(&p.d_a, &bc, nullptr));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaMemcpy(c.data(), p.d_c, elements * sizeof(float), cudaMemcpyDeviceToHost));
  return c;
}

static void check_problem(const problem &p, double *worst) {
  std::vector<double> sum(p.a.m * p.n), bound(p.a.m * p.n);
  for (int64_t i = 0; i < p.a.m; i++) reference_row(p.a, i, p.b, p.n, p.ldb, &sum[i * p.n], &bound[i * p.n]);
  for (const bcsr_variant &variant : bcsr_variants()) {
    if (variant.needs_aligned_b && p.ldb % 8 != 0) continue;
    const std::vector<float> c = run(p, variant);
    char what[160];
    snprintf(what, sizeof what, "m %d k %d n %ld blocks %ld ldb %ld ldc %ld", p.a.m, p.a.k, static_cast<long>(p.n),
             static_cast<long>(p.a.block_col_idx.size()), static_cast<long>(p.ldb), static_cast<long>(p.ldc));
    bool right = true, untouched = true;
    for (int64_t i = 0; i < p.a.m; i++) {
      const double error = row_error(p.n, &c[(i + 1) * p.ldc], &sum[i * p.n], &bound[i * p.n]);
      right = right && error <= 1.0;
      *worst = error > *worst ? error : *worst;
    }
    for (int64_t i = 0; i < p.a.m + 2; i++)
      for (int64_t j = i == 0 || i == p.a.m + 1 ? 0 : p.n; j < p.ldc; j++) {
        uint32_t bits;
        memcpy(&bits, &c[i * p.ldc + j], sizeof bits);
        untouched = untouched && bits == kPoison;
      }
    expect(right, what, variant.name);
    if (!untouched) printf("FAILED: %s: wrote outside C: %s\n", variant.name, what);
    expect(untouched, "wrote outside C", variant.name);
  }
}

static void check_shapes(random_stream &random, bool small) {
  static const int64_t columns[] = {1, 7, 8, 33, 64, 100, 128, 143, 256, 257, 500, 520, 1000, 1024};
  static const struct {
    int32_t m, k;
    double density;
  } shapes[] = {{1, 1, 1.0}, {64, 64, 1.0}, {130, 200, 0.5}, {200, 130, 0.0}, {333, 511, 0.2}, {65, 3000, 0.9}};
  double worst = 0.0;
  for (const auto &shape : shapes)
    for (int64_t n : columns) {
      if (small && (n > 300 || shape.k > 600)) continue;
      const int64_t ldb = (n + 7) / 8 * 8 + 8 * (n % 2), ldc = (n + 3) / 4 * 4 + 4 * (n % 3);
      for (int odd = 0; odd < 3; odd++) { /* C by boxes, by pairs, by single elements with B of any alignment */
        if (odd != 0 && shape.k > 600) continue;
        problem p = problem_create(random, shape.m, shape.k, n, shape.density, odd == 2 ? n + 1 - n % 2 : ldb,
                                   odd == 0   ? ldc
                                   : odd == 1 ? ldc + 2
                                              : n + 1 - n % 2);
        check_problem(p, &worst);
        problem_destroy(p);
      }
    }
  printf("shapes: largest error %.3f of the bound\n", worst);
}

static void check_refusals(random_stream &random) {
  problem p = problem_create(random, 100, 100, 24, 1.0, 24, 24);
  const asparse_cuda_dense_pair good = {24, p.d_b, 24, p.d_c + 24, 24};
  asparse_cuda_dense_pair bad = good;
  bad.ldb = 23;
  for (const bcsr_variant &variant : bcsr_variants())
    expect(variant.run(&p.d_a, &bad, nullptr) == cudaErrorInvalidValue, "ldb < n is refused", variant.name);
  bad = good, bad.n = 20, bad.ldb = 20;
  for (const bcsr_variant &variant : bcsr_variants())
    if (variant.needs_aligned_b)
      expect(variant.run(&p.d_a, &bad, nullptr) == cudaErrorMisalignedAddress, "ldb 20 is refused", variant.name);
  asparse_cuda_bcsr wrong = p.d_a;
  wrong.n_block_rows++;
  for (const bcsr_variant &variant : bcsr_variants())
    expect(variant.run(&wrong, &good, nullptr) == cudaErrorInvalidValue, "wrong block rows are refused", variant.name);
  expect(asparse_bcsr_pipeline(&p.d_a, &good, {200, 3}, nullptr) == cudaErrorInvalidValue, "tile 200 is refused",
         "pipeline");
  wrong = p.d_a, wrong.m = 0, wrong.n_block_rows = 0;
  for (const bcsr_variant &variant : bcsr_variants())
    expect(variant.run(&wrong, &good, nullptr) == cudaSuccess, "0 rows", variant.name);
  problem_destroy(p);
}

/* Bitwise the same in 20 runs, and as a captured graph. */
static void check_repeats(random_stream &random, bool small) {
  const int64_t n = small ? 143 : 1000, ld = (n + 7) / 8 * 8;
  problem p = problem_create(random, small ? 300 : 3000, 2000, n, 0.3, ld, ld);
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (const bcsr_variant &variant : bcsr_variants()) {
    const std::vector<float> first = run(p, variant);
    bool same = true;
    for (int i = 0; i < 20; i++)
      same = same && memcmp(run(p, variant).data(), first.data(), first.size() * sizeof(float)) == 0;
    expect(same, "20 runs are bitwise equal", variant.name);

    cudaGraph_t graph;
    cudaGraphExec_t executable;
    const asparse_cuda_dense_pair bc = {p.n, p.d_b, p.ldb, p.d_c + p.ldc, p.ldc};
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA(variant.run(&p.d_a, &bc, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    CUDA(cudaMemset(p.d_c + p.ldc, 0xff, p.a.m * p.ldc * sizeof(float)));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaGraphLaunch(executable, stream));
    CUDA(cudaStreamSynchronize(stream));
    std::vector<float> c(first.size());
    CUDA(cudaMemcpy(c.data(), p.d_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    same = true;
    for (int64_t i = 1; i <= p.a.m; i++)
      same = same && memcmp(&c[i * p.ldc], &first[i * p.ldc], n * sizeof(float)) == 0;
    expect(same, "a captured graph computes the same", variant.name);
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
  }
  CUDA(cudaStreamDestroy(stream));
  problem_destroy(p);
}

static void check_choice() {
  for (int32_t rows : {1, 56, 300})
    for (int64_t per_row : {1, 10, 50}) {
      const asparse_cuda_bcsr a = {64 * rows, 64, rows, rows * per_row, nullptr, nullptr, nullptr};
      bool least = true, compiled = true;
      for (int64_t n = 1; n < 3000; n++) {
        const asparse_bcsr_pipeline_config chosen = asparse_bcsr_pipeline_choose(&a, n);
        const int64_t tile = chosen.tile_columns;
        bool found = false;
        for (int i = 0; i < ASPARSE_BCSR_PIPELINE_CONFIGS; i++) {
          const asparse_bcsr_pipeline_config config = asparse_bcsr_pipeline_compiled(i);
          found = found || (config.tile_columns == tile && config.stages == chosen.stages);
        }
        compiled = compiled && found;
        for (int64_t other = 128; other <= 512; other += 128)
          least = least && (n + tile - 1) / tile * tile <= (n + other - 1) / other * other;
      }
      expect(least, "no other tile pads less", "choice");
      expect(compiled, "the choice is compiled", "choice");
    }
  const asparse_cuda_bcsr few = {64, 64, 1, 50, nullptr, nullptr, nullptr};
  const asparse_cuda_bcsr many = {19200, 64, 300, 15000, nullptr, nullptr, nullptr};
  expect(asparse_bcsr_pipeline_choose(&few, 1024).tile_columns == 128, "few tiles are narrow", "choice");
  const asparse_cuda_bcsr brief = {19200, 64, 300, 1500, nullptr, nullptr, nullptr};
  expect(asparse_bcsr_pipeline_choose(&brief, 1024).tile_columns == 256, "short block rows share", "choice");
  expect(asparse_bcsr_pipeline_choose(&brief, 256).tile_columns == 128, "few short tiles are narrow", "choice");
  expect(asparse_bcsr_pipeline_choose(&many, 1024).tile_columns == 512, "long block rows get wide tiles", "choice");
}

int main(int argc, char **argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("skipped: no GPU\n");
    return 77;
  }
  random_stream random = {argc > 1 ? strtoull(argv[1], nullptr, 10) : static_cast<uint64_t>(time(nullptr))};
  const bool small = argc > 2;
  printf("seed %llu\n", static_cast<unsigned long long>(random.state));
  check_choice();
  check_refusals(random);
  check_shapes(random, small);
  check_repeats(random, small);
  printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}
