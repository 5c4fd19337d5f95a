/* One product, computed into a poisoned C with canaries and compared element by element with a long double
 * reference that does what CSR arithmetic does. */
#ifndef ASPARSE_PRODUCT_CHECK_CUH
#define ASPARSE_PRODUCT_CHECK_CUH

#include "tests/gpu/sparse_fixture.cuh"

/* How B and C lie in memory. */
struct Layout {
  int64_t n, ldb, ldc;
  int64_t offset; /* elements before the first one of B and of C, to break alignment */
};

enum class Special { kNone, kSome }; /* Inf and NaN in B */

class Product {
public:
  Product(Matrix &a, Layout layout, bool accumulate, Special special, uint64_t seed)
      : Product(a, asparse_dtype_result(a.dtype), layout, accumulate, special, seed) {}

  Product(Matrix &a, asparse_dtype c_dtype, Layout layout, bool accumulate, Special special, uint64_t seed)
      : a_(a), at_(layout), accumulate_(accumulate), result_(c_dtype),
        b_(size_of(a.k, layout.ldb) * asparse_dtype_size(a.dtype)), before_(size_of(a.m, layout.ldc) + kCanary) {
    const double specials[3] = {INFINITY, -INFINITY, NAN};
    const int64_t b_elements = static_cast<int64_t>(size_of(a.k, at_.ldb));
#pragma omp parallel for
    for (int64_t i = 0; i < b_elements; i++) {
      Random random{asparse_mix64(seed) + 2 * static_cast<uint64_t>(i)};
      bool special_here = special == Special::kSome && random.below(40) == 0;
      asparse_store(a.dtype, b_.data(), i, special_here ? specials[i % 3] : random.value());
    }
    /* beta = 0 must overwrite NaN; what is accumulated to must be a number. */
    for (double &x : before_) x = NAN;
    if (!accumulate) return;
#pragma omp parallel for
    for (int64_t i = 0; i < a.m; i++) {
      Random random{asparse_mix64(~seed) + static_cast<uint64_t>(i * at_.n)};
      for (int64_t j = 0; j < at_.n; j++) before_[at_.offset + i * at_.ldc + j] = (int)(128 * random.value()) / 128.0;
    }
  }

  /* multiply(d_b, d_c) enqueues the product. Returns the number of wrong elements, and says where. */
  template <typename Multiply> int check(const char *what, Multiply multiply, int repeats = 1) {
    size_t element = asparse_dtype_size(result_);
    std::vector<char> poisoned(before_.size() * element), first(poisoned.size()), c(poisoned.size());
    asparse_convert_values(result_, poisoned.data(), ASPARSE_FP64, before_.data(), (int64_t)before_.size());
    Buffer d_b = upload(b_);
    int wrong = 0;
    for (int r = 0; r < repeats; r++) {
      Buffer d_c = upload(poisoned);
      CUDA_OK(
          multiply(d_b.as<char>() + at_.offset * asparse_dtype_size(a_.dtype), d_c.as<char>() + at_.offset * element));
      CUDA_OK(cudaDeviceSynchronize());
      d_c.read(c.data());
      if (r == 0) first = c;
      else if (std::memcmp(first.data(), c.data(), c.size())) wrong++;
    }
    if (wrong) std::printf("  not bitwise the same from run to run\n");
    wrong += canaries(poisoned, first) + values(first);
    if (wrong) {
      std::printf("FAIL %s: %s, n %lld ldb %lld ldc %lld offset %lld%s: %d wrong\n", what, a_.name.c_str(),
                  (long long)at_.n, (long long)at_.ldb, (long long)at_.ldc, (long long)at_.offset,
                  accumulate_ ? ", accumulate" : "", wrong);
    }
    return wrong;
  }

private:
  static constexpr size_t kCanary = 64;            /* elements after C */
  static constexpr int64_t kReferenceColumns = 64; /* a thread's at a time */

  size_t size_of(int64_t rows, int64_t ld) const {
    return static_cast<size_t>(at_.offset + (rows > 0 ? (rows - 1) * ld + at_.n : 0));
  }

  /* Everything of C outside m × n still holds its poison. */
  int canaries(const std::vector<char> &poisoned, const std::vector<char> &c) const {
    size_t element = asparse_dtype_size(result_);
    int wrong = 0;
#pragma omp parallel for reduction(+ : wrong)
    for (int64_t i = 0; i < static_cast<int64_t>(before_.size()); i++) {
      int64_t in = i - at_.offset;
      bool inside = in >= 0 && in / at_.ldc < a_.m && in % at_.ldc < at_.n;
      if (!inside && std::memcmp(&poisoned[i * element], &c[i * element], element)) wrong++;
    }
    if (wrong) std::printf("  %d elements written outside C\n", wrong);
    return wrong;
  }

  int values(const std::vector<char> &c) {
    int wrong = 0;
    if (reference_.empty()) {
      reference_.resize(a_.m * at_.n);
      size_.resize(a_.m * at_.n);
#pragma omp parallel for collapse(2) schedule(dynamic) /* a long row is cut, too */
      for (int64_t i = 0; i < a_.m; i++)
        for (int64_t j = 0; j < at_.n; j += kReferenceColumns) multiply_row(i, j);
    }
#pragma omp parallel for reduction(+ : wrong)
    for (int64_t i = 0; i < a_.m; i++) wrong += row(c, i);
    return wrong;
  }

  /* From column first on. */
  void multiply_row(int64_t i, int64_t first) {
    long double *sum = &reference_[i * at_.n], *size = &size_[i * at_.n];
    const int64_t end = std::min(first + kReferenceColumns, at_.n);
    for (int64_t e = a_.row_ptr[i]; e < a_.row_ptr[i + 1]; e++) {
      double x = asparse_load(a_.dtype, a_.values.data(), e);
      for (int64_t j = first; j < end; j++) {
        long double y = asparse_load(a_.dtype, b_.data(), at_.offset + a_.col_idx[e] * at_.ldb + j);
        sum[j] += x * y;
        size[j] += std::fabs(x * y);
      }
    }
  }

  int row(const std::vector<char> &c, int64_t i) const {
    int wrong = 0;
    for (int64_t j = 0; j < at_.n; j++) wrong += !close(c, i, j, reference_[i * at_.n + j], size_[i * at_.n + j]);
    return wrong;
  }

  /* |c - ref| ≤ 2·q·u·Σ|a||b| + u·(|c₀| + |ref|) (Higham, Accuracy and Stability, ch. 3; tensor cores truncate:
   * u = 2^-23), with the rounding of a bf16 result on top; and the same Inf or NaN where the reference has one. */
  bool close(const std::vector<char> &c, int64_t i, int64_t j, long double ref, long double size) const {
    int64_t at = at_.offset + i * at_.ldc + j;
    long double u = result_ == ASPARSE_FP64 ? 0x1p-53L : 0x1p-23L, old = accumulate_ ? before_[at] : 0;
    long double q = (long double)(a_.row_ptr[i + 1] - a_.row_ptr[i]), got = asparse_load(result_, c.data(), at);
    long double bound = 2 * q * u * size + u * (std::fabs(old) + std::fabs(ref + old)) * accumulate_;
    if (result_ == ASPARSE_BF16) bound += 0x1p-8L * (std::fabs(ref + old) + bound);
    bool good = std::isnan(ref)   ? std::isnan(got)
                : std::isinf(ref) ? got == ref
                                  : std::fabs(got - (ref + old)) <= bound;
    if (!good) {
#pragma omp critical
      if (reported_++ < 3)
        std::printf("  (%lld, %lld): %.9Lg, expected %.9Lg\n", (long long)i, (long long)j, got, ref + old);
    }
    return good;
  }

  Matrix &a_;
  Layout at_;
  bool accumulate_;
  asparse_dtype result_;
  std::vector<long double> reference_, size_; /* [m × n] A·B and |A|·|B|, once a check needed them */
  std::vector<char> b_;                       /* offset, then [k × n] of a's dtype with ld ldb */
  std::vector<double> before_;                /* offset, then C before, then canaries */
  mutable int reported_ = 0;
};

/* Aligned and misaligned layouts, each n of the list. */
inline std::vector<Layout> layouts(const std::vector<int64_t> &columns) {
  std::vector<Layout> all;
  for (int64_t n : columns) {
    all.push_back({n, n, n, 0});
    all.push_back({n, (n + 7) / 8 * 8 + 8, (n + 7) / 8 * 8 + 8, 0});
  }
  all.push_back({64, 67, 65, 0});
  all.push_back({64, 64, 64, 1});
  all.push_back({40, 48, 41, 3});
  return all;
}

/* Shapes that no tile divides, empty rows, one long row, scattered and clustered columns. */
inline std::vector<Matrix> awkward_matrices(uint64_t seed) {
  std::vector<Matrix> all;
  all.push_back(uniform(1, 1, 1, seed));
  all.push_back(uniform(37, 5, 0, seed));
  all.push_back(uniform(129, 1, 0.6, seed + 1));
  all.push_back(uniform(300, 211, 9, seed + 2));
  all.push_back(uniform(1001, 3000, 0.7, seed + 3));
  all.push_back(grid(7, 5, 3, 3, false));
  all.push_back(rmat(9, 8, seed + 4));
  all.push_back(dense_row(83, 5003, 41, seed + 5));
  return all;
}

#endif
