/* Every kernel of the table, through the interface that the plan uses: each unit and element type it takes, awkward
 * and large shapes, Inf and NaN in B, accumulation, repeatability, CUDA graphs, products in a row that depend on each
 * other; and the errors of asparse_device_*.
 * Usage: device_kernels [seed [quick]] */
#include "tests/gpu/product_check.cuh"

#include "kernels/device_shard.h"

extern "C" {
/* partition/partition.h knows MPI, which GPU tests do without. */
asparse_status asparse_shard_build(asparse_local_csr *a, asparse_format format, int32_t unit, asparse_shard **out);
asparse_status asparse_shard_build_clustered(const asparse_clustered *a, int32_t window_height, asparse_shard **out);
}

static int n_checks, n_failures;

static void expect(bool good, const char *what) {
  n_checks++;
  n_failures += !good;
  if (!good) std::printf("FAIL %s: %s\n", what, asparse_error_message());
}

/* A call that must fail in that way, with a message that holds text; the message is cleared. */
static void expect_error(asparse_status got, asparse_status wanted, const char *text, const char *what) {
  expect(got == wanted && std::strstr(asparse_error_message(), text), what);
  asparse_error_clear();
}

/* What enqueue() puts on stream, captured into a graph that is launched so many times. */
template <typename Enqueue> static void run_as_graph(cudaStream_t stream, int launches, Enqueue enqueue) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  enqueue();
  CUDA_OK(cudaStreamEndCapture(stream, &graph));
  CUDA_OK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < launches; i++) CUDA_OK(cudaGraphLaunch(executable, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  CUDA_OK(cudaGraphExecDestroy(executable));
  CUDA_OK(cudaGraphDestroy(graph));
}

/* ---- shards --------------------------------------------------------------------------------- */

/* A on the device for one kernel; d is NULL where the kernel cannot take the matrix and says so. */
struct Shard {
  asparse_local_csr csr;
  asparse_shard *host = nullptr;
  asparse_device_shard *d = nullptr;
  asparse_device *device;

  Shard(asparse_device *on, const asparse_device_kernel *kernel, Matrix &a, int32_t unit, int64_t n)
      : csr(a.csr()), device(on) {
    asparse_clustered rows = {};
    if (kernel->clustered) {
      STATUS_OK(asparse_rows_cluster(&csr, &rows));
      STATUS_OK(asparse_shard_build_clustered(&rows, unit, &host));
      asparse_clustered_free(&rows);
    } else {
      STATUS_OK(asparse_shard_build(&csr, kernel->format, unit, &host));
    }
    asparse_status status = asparse_device_shard_create(device, kernel, host, n, &d);
    if (status != ASPARSE_ERR_USAGE) STATUS_OK(status);
    asparse_error_clear();
    STATUS_OK(asparse_device_wait(device));
  }
  Shard(const Shard &) = delete;
  ~Shard() {
    asparse_device_shard_destroy(&d);
    asparse_shard_destroy(&host);
  }

  cudaError_t multiply(const char *d_b, char *d_c, Layout at, bool accumulate, asparse_dtype c_dtype,
                       cudaStream_t stream) const {
    asparse_device_product product = {at.n, d_b, at.ldb, d_c, at.ldc, c_dtype, accumulate};
    asparse_status status = asparse_device_shard_multiply(d, &product, stream);
    if (status != ASPARSE_OK) std::printf("  %s\n", asparse_error_message());
    return status == ASPARSE_OK ? cudaSuccess : cudaErrorUnknown;
  }

  /* The same from a captured graph, replayed twice. */
  cudaError_t replay(const char *d_b, char *d_c, Layout at, asparse_dtype c_dtype) const {
    run_as_graph(device->stream, 2, [&] { CUDA_OK(multiply(d_b, d_c, at, false, c_dtype, device->stream)); });
    return cudaSuccess;
  }
};

/* Sums of split windows by atomics: the one kernel that is not bitwise repeatable. */
static bool repeatable(const asparse_device_kernel *kernel) { return std::strcmp(kernel->name, "wcsr-atomics") != 0; }

static void check(const Shard &shard, Matrix &a, Layout at, bool accumulate, Special special, uint64_t seed,
                  int repeats = 1) {
  char what[96];
  std::snprintf(what, sizeof what, "%s, unit %d, %s", shard.d->kernel->name, asparse_shard_row_unit(shard.host),
                asparse_dtype_name(a.dtype));
  Product product(a, at, accumulate, special, seed);
  int wrong = product.check(
      what,
      [&](const char *d_b, char *d_c) {
        return shard.multiply(d_b, d_c, at, accumulate, asparse_dtype_result(a.dtype), nullptr);
      },
      repeatable(shard.d->kernel) ? repeats : 1);
  n_checks++;
  n_failures += wrong > 0;
}

/* Replays of a graph have the bits of the plain call. */
static void check_graph(const Shard &shard, Matrix &a, Layout at, uint64_t seed) {
  char what[96];
  std::snprintf(what, sizeof what, "%s, unit %d, in a graph", shard.d->kernel->name,
                asparse_shard_row_unit(shard.host));
  Product product(a, at, false, Special::kNone, seed);
  bool captured = !repeatable(shard.d->kernel); /* the first call is plain, the second a replay */
  int wrong = product.check(
      what,
      [&](const char *d_b, char *d_c) {
        CUDA_OK(cudaDeviceSynchronize());
        const asparse_dtype result = asparse_dtype_result(a.dtype);
        if (captured) return shard.replay(d_b, d_c, at, result);
        captured = true;
        return shard.multiply(d_b, d_c, at, false, result, nullptr);
      },
      captured ? 1 : 2);
  n_checks++;
  n_failures += wrong > 0;
}

/* C in bf16 is the C in fp32 rounded (1e-5: the sums may run in another order); a kernel without bf16 C says so and
 * leaves C alone. */
static void check_bf16_result(const Shard &shard, Matrix &a, int64_t n, uint64_t seed) {
  Random random{seed};
  std::vector<uint16_t> b(static_cast<size_t>(a.k) * n);
  for (size_t i = 0; i < b.size(); i++) asparse_store(ASPARSE_BF16, b.data(), static_cast<int64_t>(i), random.value());
  const size_t elements = static_cast<size_t>(a.m) * n;
  std::vector<float> wide(elements);
  std::vector<uint16_t> narrow(2 * elements); /* room for fp32: writing that must show, not crash */
  Buffer d_b = upload(b), d_c(elements * sizeof(float));
  auto multiply = [&](asparse_dtype c_dtype, void *c) {
    const asparse_device_product product = {n, d_b.d, n, d_c.d, n, c_dtype, false};
    CUDA_OK(cudaMemset(d_c.d, 0xff, d_c.bytes));
    const asparse_status status = asparse_device_shard_multiply(shard.d, &product, nullptr);
    CUDA_OK(cudaDeviceSynchronize());
    d_c.read(c);
    return status;
  };
  STATUS_OK(multiply(ASPARSE_FP32, wide.data()));
  const asparse_status status = multiply(ASPARSE_BF16, narrow.data());
  int64_t wrong = 0;
  for (size_t i = 0; i < narrow.size(); i++) {
    if (status == ASPARSE_OK && i < elements) {
      const double x = asparse_load(ASPARSE_BF16, narrow.data(), static_cast<int64_t>(i));
      wrong += !(std::fabs(x - wide[i]) <= 0x1p-8 * std::fabs(wide[i]) + 1e-5);
    } else {
      wrong += narrow[i] != 0xffff;
    }
  }
  n_checks++;
  n_failures += wrong > 0;
  if (wrong)
    std::printf("FAIL %s, unit %d, C in bf16: %s, n %lld: %lld wrong\n", shard.d->kernel->name,
                asparse_shard_row_unit(shard.host), a.name.c_str(), (long long)n, (long long)wrong);
  if (status != ASPARSE_OK) expect_error(status, ASPARSE_ERR_DEVICE, "cudaErrorNotSupported", "no C in bf16");
}

/* ---- products in a row ---------------------------------------------------------------------- */

/* Row 0 and column 0 are full: of a chain of products every row waits for row 0 of the one before, the last to be done.
 */
static Matrix arrow(int32_t m, uint64_t seed) {
  Random random{seed};
  std::vector<std::set<int32_t>> rows(m);
  for (int32_t i = 0; i < m; i++) {
    rows[i].insert(0);
    for (int32_t e = 0; e < (i == 0 ? m : 8); e++) rows[i].insert(i == 0 ? e : static_cast<int32_t>(random.below(m)));
  }
  return from_rows("arrow of " + std::to_string(m), m, rows);
}

enum class Between { kWait, kNothing, kGraph };

/* X ← A·Y, Y ← A·X, X += A·Y, … from random X and Y; what both hold in the end. */
static std::vector<char> chain(const Shard &shard, const Matrix &a, int64_t n, Between between, uint64_t seed) {
  const cudaStream_t stream = shard.device->stream;
  std::vector<char> x(2 * static_cast<size_t>(a.m) * n * asparse_dtype_size(a.dtype));
  Random random{seed};
  for (int64_t i = 0; i < 2 * a.m * n; i++) asparse_store(a.dtype, x.data(), i, random.value());
  Buffer d = upload(x);
  CUDA_OK(cudaDeviceSynchronize()); /* the copy may return before it is done, and stream does not wait for it */
  char *half[2] = {d.as<char>(), d.as<char>() + x.size() / 2};
  auto steps = [&] {
    for (int i = 0; i < 12; i++) {
      CUDA_OK(shard.multiply(half[i % 2], half[1 - i % 2], {n, n, n, 0}, i % 3 == 2, a.dtype, stream));
      if (between == Between::kWait) CUDA_OK(cudaStreamSynchronize(stream));
    }
  };
  if (between == Between::kGraph) run_as_graph(stream, 1, steps);
  else steps();
  CUDA_OK(cudaStreamSynchronize(stream));
  d.read(x.data());
  return x;
}

/* A kernel may begin before the one before it ends, and must wait for it before it touches B or C. */
static void check_chains(const Shard &shard, const Matrix &a, int64_t n, uint64_t seed) {
  const std::vector<char> right = chain(shard, a, n, Between::kWait, seed);
  const std::string what = std::string(shard.d->kernel->name) + ", unit " +
                           std::to_string(asparse_shard_row_unit(shard.host)) + ", n " + std::to_string(n);
  for (int round = 0; round < 3; round++)
    expect(chain(shard, a, n, Between::kNothing, seed) == right, (what + ": products in a row").c_str());
  expect(chain(shard, a, n, Between::kGraph, seed) == right, (what + ": products in a row of a graph").c_str());
}

/* ---- every row of the table ----------------------------------------------------------------- */

static const int64_t kMostColumns = 1024;

/* Returns whether the kernel takes the matrix. */
static bool check_awkward(asparse_device *device, const asparse_device_kernel *kernel, Matrix &a, int32_t unit,
                          bool quick, uint64_t &seed) {
  Shard shard(device, kernel, a, unit, kMostColumns);
  if (!shard.d) return false;
  std::vector<int64_t> columns = quick ? std::vector<int64_t>{7, 64} : std::vector<int64_t>{1, 7, 64, 100, 257, 1024};
  for (const Layout &at : layouts(columns)) check(shard, a, at, false, Special::kNone, ++seed);
  for (int64_t n : {64, 100}) {
    check(shard, a, {n, n, n, 0}, true, Special::kNone, ++seed);
    check(shard, a, {n, n + 4, n + 1, 1}, true, Special::kSome, ++seed);
    check(shard, a, {n, n, n, 0}, false, Special::kSome, ++seed);
    check(shard, a, {n, n, n, 0}, false, Special::kNone, ++seed, quick ? 2 : 20);
  }
  check(shard, a, {256, 256, 256, 0}, false, Special::kSome, ++seed);
  check_graph(shard, a, {256, 256, 256, 0}, ++seed);
  if (a.dtype == ASPARSE_BF16) {
    for (int64_t n : {100, 256}) check_bf16_result(shard, a, n, ++seed);
  }
  return true;
}

static bool check_large(asparse_device *device, const asparse_device_kernel *kernel, Matrix &a, int32_t unit, int64_t n,
                        uint64_t &seed) {
  Shard shard(device, kernel, a, unit, n);
  if (!shard.d) return false;
  check(shard, a, {n, n, n, 0}, false, Special::kNone, ++seed);
  return true;
}

/* As the rest of a mesh's rank: a run of rows in the middle, and rows here and there. */
static Matrix few_rows(int32_t m, int32_t k, uint64_t seed) {
  Random random{seed};
  std::vector<std::set<int32_t>> rows(m);
  for (int32_t i = 0; i < m; i++) {
    const bool used = (i >= m / 2 && i < m / 2 + 40) || random.below(97) == 0;
    for (int32_t e = 0; used && e < 9; e++) rows[i].insert(static_cast<int32_t>(random.below(k)));
  }
  return from_rows("few rows of " + std::to_string(m), k, rows);
}

/* Windows of 64 rows with 0, 1/steps, 2/steps … all of the k columns. */
static Matrix staircase(int32_t steps, int32_t k, uint64_t seed) {
  Random random{seed};
  std::vector<std::set<int32_t>> rows((steps + 1) * 64);
  for (int32_t step = 0; step <= steps; step++) {
    int32_t first = static_cast<int32_t>(random.below(k));
    for (int32_t i = 0; i < static_cast<int64_t>(k) * step / steps; i++)
      rows[step * 64 + random.below(64)].insert((first + i) % k);
  }
  return from_rows("staircase to " + std::to_string(k), k, rows);
}

struct Large {
  Matrix a;
  int64_t n;
};

/* Each dimension beyond 2^20 and not a multiple of anything (more than 65,535 windows of up to 16 rows among them),
 * and rows and windows of every length. */
static std::vector<Large> large_matrices(uint64_t seed) {
  const int32_t most = 1048561;
  std::vector<Large> all;
  all.push_back({uniform(most, 100, 0.5, seed), 9});
  all.push_back({uniform(300, most, 20, seed + 1), 24});
  all.push_back({uniform(40, 30, 3, seed + 2), most});
  all.push_back({dense_row(83, 200003, 41, seed + 3), 72});
  all.push_back({staircase(24, 1031, seed + 4), 136});
  return all;
}

/* wcsr-atomics, which is not repeatable, is the one without C in bf16. */
static void check_in_a_row(asparse_device *device, const asparse_device_kernel *kernel, Matrix &a, int32_t unit,
                           bool quick, uint64_t &seed) {
  if (!repeatable(kernel)) return;
  Shard shard(device, kernel, a, unit, 256);
  expect(shard.d != nullptr, "a shard for products in a row");
  for (int64_t n : quick ? std::vector<int64_t>{64} : std::vector<int64_t>{36, 64, 256})
    check_chains(shard, a, n, ++seed);
}

static void check_kernel(asparse_device *device, const asparse_device_kernel *kernel, std::vector<Matrix> &awkward,
                         std::vector<Large> &large, Matrix &skewed, bool quick, uint64_t &seed) {
  const int failed_before = n_failures, checks_before = n_checks;
  int taken = 0, refused = 0;
  for (asparse_dtype dtype : {ASPARSE_BF16, ASPARSE_FP32, ASPARSE_FP64}) {
    if (kernel->bf16_only && dtype != ASPARSE_BF16) continue;
    for (Matrix &a : awkward) a.fill(dtype, ++seed);
    for (Large &l : large) l.a.fill(dtype, ++seed);
    skewed.fill(dtype, ++seed);
    for (const int32_t *unit = kernel->units; *unit; unit++) {
      for (Matrix &a : awkward) (check_awkward(device, kernel, a, *unit, quick, seed) ? taken : refused)++;
      for (Large &l : large) (check_large(device, kernel, l.a, *unit, l.n, seed) ? taken : refused)++;
      check_in_a_row(device, kernel, skewed, *unit, quick, seed);
    }
  }
  expect(taken > 0, kernel->name);
  std::printf("%-16s %5d checks, %d shards, %d refused, %d failures\n", kernel->name, n_checks - checks_before, taken,
              refused, n_failures - failed_before);
  std::fflush(stdout);
}

/* ---- errors --------------------------------------------------------------------------------- */

static void check_find() {
  const asparse_device_kernel *found = nullptr;
  for (int i = 0; asparse_device_kernels[i]; i++) {
    const char *name = asparse_device_kernels[i]->name;
    expect(asparse_device_kernel_find(name, &found) == ASPARSE_OK && found == asparse_device_kernels[i], name);
    expect_error(asparse_device_kernel_find("unheard-of", &found), ASPARSE_ERR_USAGE, name,
                 "an unknown name brings the list of names");
  }
}

static void check_product_errors(asparse_device *device, uint64_t seed) {
  Matrix a = uniform(70, 50, 4, seed);
  a.fill(ASPARSE_BF16, seed);
  const asparse_device_kernel *kernel = nullptr;
  STATUS_OK(asparse_device_kernel_find("wcsr-gather", &kernel));
  Shard shard(device, kernel, a, 8, 16);
  Buffer b = upload(std::vector<uint16_t>(50 * 32)), c(70 * 32 * 4);
  const asparse_device_product good = {16, b.d, 16, c.d, 16, ASPARSE_FP32, false};
  asparse_device_product bad = good;
  auto refused = [&](const char *text, const char *what) {
    expect_error(asparse_device_shard_multiply(shard.d, &bad, nullptr), ASPARSE_ERR_USAGE, text, what);
  };
  bad.n = 17, bad.ldb = bad.ldc = 32;
  refused("16 columns cannot multiply 17", "more columns than the shard was made for");
  bad = good, bad.ldb = 15;
  refused("ldb 15", "ldb < n");
  bad = good, bad.ldc = 15;
  refused("ldc 15", "ldc < n");
  bad = good, bad.c_dtype = ASPARSE_FP64;
  refused("fp64", "C of another type");
  expect(asparse_device_shard_multiply(shard.d, &good, nullptr) == ASPARSE_OK, "a product that fits");

  asparse_device_shard *none = nullptr;
  STATUS_OK(asparse_device_kernel_find("csr", &kernel));
  expect_error(asparse_device_shard_create(device, kernel, shard.host, 16, &none), ASPARSE_ERR_USAGE,
               "does not take a shard", "a shard in another format");
  expect(!none, "no shard of a failed call");
}

static void check_memory(asparse_device *device, uint64_t seed) {
  void *d = &device;
  expect_error(asparse_device_malloc(device, 10000000000000, "ten terabytes", &d), ASPARSE_ERR_MEMORY,
               "ten terabytes needs 10000.000 GB", "10 TB are refused");
  expect(!d, "no memory of a failed call");
  expect(asparse_device_malloc(device, 0, "nothing", &d) == ASPARSE_OK && !d, "no bytes");

  Random random{seed}; /* several staging buffers and a rest */
  std::vector<uint8_t> there(50000003), back(there.size());
  for (uint8_t &x : there) x = static_cast<uint8_t>(random.next());
  STATUS_OK(asparse_device_malloc(device, there.size(), "a copy", &d));
  STATUS_OK(asparse_device_upload(device, d, there.data(), there.size()));
  STATUS_OK(asparse_device_download(device, back.data(), d, back.size()));
  expect(there == back, "bytes come back as they went");
  asparse_device_free(d);
}

int main(int argc, char **argv) {
  need_gpu();
  uint64_t seed = seed_of(argc, argv);
  const bool quick = argc > 2;
  asparse_device *device = nullptr;
  STATUS_OK(asparse_device_open(0, &device));
  check_find();
  check_product_errors(device, seed);
  check_memory(device, seed);
  std::vector<Matrix> awkward = awkward_matrices(seed);
  awkward.push_back(few_rows(2000, 500, ++seed));
  std::vector<Large> large = quick ? std::vector<Large>() : large_matrices(seed);
  Matrix skewed = arrow(quick ? 2000 : 6000, ++seed);
  for (int i = 0; asparse_device_kernels[i]; i++)
    check_kernel(device, asparse_device_kernels[i], awkward, large, skewed, quick, seed);
  asparse_device_close(&device);
  std::printf("device_kernels: %d checks, %d failures\n", n_checks, n_failures);
  return n_failures != 0;
}
