/* The resident kernel against the reference: every number of resident columns, rows whole and cut, few and many CTAs,
 * awkward shapes and layouts, C in fp32 and bf16, accumulation, Inf and NaN in B, repeatability.
 * Usage: sell_cuda [seed [quick]] */
#include "tests/gpu/product_check.cuh"

static int n_checks;

static int check(Matrix &a, const DeviceSell &d, Layout layout, bool accumulate, Special special, uint64_t seed,
                 int repeats) {
  int wrong = 0;
  for (asparse_dtype c_dtype : {ASPARSE_FP32, ASPARSE_BF16}) {
    char what[64];
    std::snprintf(what, sizeof what, "SELL %d columns, %d groups, C %s", d.sell.columns, d.sell.row_groups,
                  asparse_dtype_name(c_dtype));
    Product product(a, c_dtype, layout, accumulate, special, seed);
    n_checks++;
    wrong += product.check(
        what,
        [&](const char *d_b, char *d_c) {
          return asparse_cuda_sell_multiply(&d.sell, layout.n, (const uint16_t *)d_b, layout.ldb, c_dtype, d_c,
                                            layout.ldc, accumulate, nullptr);
        },
        repeats);
  }
  return wrong;
}

static bool accepts(const asparse_cuda_sell &a, int64_t ldb, int64_t ldc, asparse_dtype c_dtype) {
  return asparse_cuda_sell_multiply(&a, 8, nullptr, ldb, c_dtype, nullptr, ldc, false, nullptr) == cudaSuccess;
}

static int check_refusals(const DeviceSell &d) {
  asparse_cuda_sell other_columns = d.sell, large = d.sell, groups = d.sell;
  other_columns.columns = 24;
  large.k = asparse_sell_most_k(d.sell.columns) + 1;
  groups.row_groups = 0;
  int wrong = accepts(d.sell, 7, 8, ASPARSE_FP32) + accepts(d.sell, 8, 7, ASPARSE_FP32);
  wrong += accepts(d.sell, 8, 8, ASPARSE_FP64) + accepts(other_columns, 8, 8, ASPARSE_FP32);
  wrong += accepts(large, 8, 8, ASPARSE_FP32) + accepts(groups, 8, 8, ASPARSE_FP32);
  if (wrong) std::printf("FAIL %d arguments accepted that break the rules\n", wrong);
  n_checks++;
  return wrong;
}

/* The result does not depend on how slices are dealt to CTAs. */
static int check_groups(Matrix &a, const HostSell &host, uint64_t seed) {
  const int64_t n = 40;
  Random random{seed};
  std::vector<uint16_t> b(static_cast<size_t>(a.k) * n);
  for (uint16_t &x : b) x = asparse_bf16_from_float(static_cast<float>(random.value()));
  Buffer d_b = upload(b);
  std::vector<float> first(static_cast<size_t>(a.m) * n), c(first.size());
  int wrong = 0;
  for (int32_t groups : {1, 3, 64}) {
    DeviceSell d(host, groups);
    Buffer d_c(c.size() * sizeof(float));
    CUDA_OK(asparse_cuda_sell_multiply(&d.sell, n, d_b.as<uint16_t>(), n, ASPARSE_FP32, d_c.d, n, false, nullptr));
    d_c.read(c.data());
    if (groups == 1) first = c;
    else wrong += std::memcmp(first.data(), c.data(), c.size() * sizeof(float)) != 0;
  }
  if (wrong) std::printf("FAIL %s, %d columns: the result depends on the groups\n", a.name.c_str(), host.a->columns);
  n_checks++;
  return wrong;
}

static int check_matrix(Matrix &a, int32_t columns, int32_t most_steps, bool quick, uint64_t *seed) {
  const std::vector<int64_t> widths =
      quick ? std::vector<int64_t>{1, 100} : std::vector<int64_t>{1, 7, 8, 33, 64, 100, 128, 143, 256, 257, 1000};
  int wrong = 0;
  HostSell host(a, columns, most_steps);
  wrong += check_groups(a, host, ++*seed);
  for (int32_t groups : {1, 7}) {
    DeviceSell d(host, groups);
    for (const Layout &layout : layouts(widths)) wrong += check(a, d, layout, false, Special::kNone, ++*seed, 1);
    for (int64_t n : {64, 100}) {
      wrong += check(a, d, {n, n, n, 0}, true, Special::kNone, ++*seed, 1);
      wrong += check(a, d, {n, n, n, 0}, false, Special::kSome, ++*seed, 1);
      wrong += check(a, d, {n, n, n, 0}, false, Special::kNone, ++*seed, quick ? 2 : 20);
    }
    if (host.a->n_slices > 0) wrong += check_refusals(d);
  }
  return wrong;
}

int main(int argc, char **argv) {
  need_gpu();
  uint64_t seed = seed_of(argc, argv);
  bool quick = argc > 2;
  int wrong = 0;
  std::vector<Matrix> matrices = awkward_matrices(seed);
  for (int32_t columns : {8, 16, 32, 64}) /* shared memory to the last row */
    matrices.push_back(uniform(70, asparse_sell_most_k(columns), 40, seed + columns));
  matrices.push_back(uniform(40, 6, 0, seed));
  for (Matrix &a : matrices) {
    a.fill(ASPARSE_BF16, ++seed);
    for (int32_t columns : {8, 16, 32, 64}) {
      if (a.k > asparse_sell_most_k(columns)) continue;
      for (int32_t most_steps : {5, 256}) wrong += check_matrix(a, columns, most_steps, quick, &seed);
    }
  }
  std::printf("sell_cuda: %d checks, %d wrong elements\n", n_checks, wrong);
  return wrong != 0;
}
