/* CSR on CUDA cores: a group of 1, 2, 4 … 32 lanes computes one row × as many vectors of columns, a lane one vector (16
 * bytes of B, or one element where B or C is not aligned for that). Entries are broadcast reads; no shuffle, no
 * atomics. The first CTAs of the grid take some columns of one long row each, shared by groups of 8 lanes; the others
 * take a row a group. */
#include "kernels/cuda_csr.h"
#include "kernels/launch.cuh"
#include "kernels/result.cuh"
#include "kernels/sm90.cuh"

#include <algorithm>
#include <type_traits>

namespace {

constexpr int kWarps = 4;     /* 8 take 3-18 % longer at n ≥ 256, up to 20 % less at 64 (H200) */
constexpr int kLongLanes = 8; /* of a segment of a long row: few, so that a CTA takes many segments */
constexpr int kUnroll = 4;    /* gathered rows in flight per lane; 8 takes up to twice the time on short rows (H200) */

/* T: type of A and B, C: of the result. */
template <typename T, typename C> struct Problem {
  using Sum = typename std::conditional<std::is_same<T, double>::value, double, float>::type;
  int32_t m;
  int64_t n;
  const int64_t *row_ptr; /* [m + 1] */
  const int32_t *col_idx; /* [row_ptr[m]] */
  const T *values;        /* [row_ptr[m]] */
  const T *b;             /* [k × n] */
  int64_t ldb;
  C *c; /* [m × n] */
  int64_t ldc;
  bool accumulate;
  int32_t long_row, n_long_rows;
  const int32_t *long_rows; /* [n_long_rows] */
  int32_t n_rows;           /* that are gone through: m, or listed */
  const int32_t *rows;      /* [n_rows], NULL: 0, 1, … */
};

template <typename T, int V> struct alignas(sizeof(T) * V) Vector { T x[V]; };

/* Of B, by an ordinary load: see sm90::wait_for_previous. */
template <typename T, int V> __device__ __forceinline__ Vector<T, V> load(const T *at) {
  Vector<T, V> v;
  if constexpr (sizeof v == 16) {
    *reinterpret_cast<uint4 *>(&v) = *reinterpret_cast<const uint4 *>(at);
  } else {
    static_assert(V == 1);
    v.x[0] = *at;
  }
  return v;
}

__device__ __forceinline__ double widen(double x) { return x; }
__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename C, typename Sum> __device__ __forceinline__ C narrow(Sum x) {
  if constexpr (std::is_same<C, Sum>::value) return x;
  else return __float2bfloat16_rn(x);
}

/* sum[v] += Σ values[e]·B(col_idx[e], col + v) over count ≤ kUnroll entries from e on, in order. */
template <int V, bool kWhole, typename T, typename C>
__device__ __forceinline__ void add_some(const Problem<T, C> &p, int64_t e, int count, int64_t col,
                                         typename Problem<T, C>::Sum (&sum)[V]) {
  Vector<T, V> b[kUnroll];
  T a[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; i++) {
    if (kWhole || i < count) {
      a[i] = __ldg(p.values + e + i);
      b[i] = load<T, V>(p.b + __ldg(p.col_idx + e + i) * p.ldb + col);
    }
  }
#pragma unroll
  for (int i = 0; i < kUnroll; i++) {
    if (kWhole || i < count) {
#pragma unroll
      for (int v = 0; v < V; v++) sum[v] = fma(widen(a[i]), widen(b[i].x[v]), sum[v]);
    }
  }
}

/* The same over entries begin ≤ e < end. */
template <int V, typename T, typename C>
__device__ __forceinline__ void add_entries(const Problem<T, C> &p, int64_t begin, int64_t end, int64_t col,
                                            typename Problem<T, C>::Sum (&sum)[V]) {
  int64_t e = begin;
  for (; e + kUnroll <= end; e += kUnroll) add_some<V, true>(p, e, kUnroll, col, sum);
  if (e < end) add_some<V, false>(p, e, static_cast<int>(end - e), col, sum);
}

/* Results of a lane, in pieces of 16 bytes. */
template <int V, typename T, typename C>
__device__ __forceinline__ void store(const Problem<T, C> &p, int32_t row, int64_t col,
                                      const typename Problem<T, C>::Sum (&sum)[V]) {
  C *out = p.c + row * p.ldc + col;
  if constexpr (V == 8) {
    store_eight(out, sum, p.accumulate);
  } else {
    constexpr int kPiece = V == 1 ? 1 : 16 / sizeof(C);
#pragma unroll
    for (int i = 0; i < V; i += kPiece) {
      Vector<C, kPiece> x;
      if (p.accumulate) x = *reinterpret_cast<const Vector<C, kPiece> *>(out + i);
#pragma unroll
      for (int j = 0; j < kPiece; j++) x.x[j] = narrow<C>(p.accumulate ? widen(x.x[j]) + sum[i + j] : sum[i + j]);
      *reinterpret_cast<Vector<C, kPiece> *>(out + i) = x;
    }
  }
}

/* kLongLanes · V columns of a long row by the CTA: each group of lanes takes a segment, then each thread a column, and
 * adds its segments in order. */
template <int V, typename T, typename C>
__device__ __forceinline__ void multiply_long_row(const Problem<T, C> &p, int32_t row, int64_t first_col) {
  using Sum = typename Problem<T, C>::Sum;
  constexpr int kGroups = 32 / kLongLanes * kWarps, kColumns = kLongLanes * V;
  static_assert(kColumns <= 32 * kWarps);
  __shared__ Vector<Sum, V> partial[kGroups][kLongLanes];
  const int lane = threadIdx.x % kLongLanes, group = threadIdx.x / kLongLanes;
  const int64_t begin = p.row_ptr[row], length = p.row_ptr[row + 1] - begin;
  sm90::wait_for_previous();
  Vector<Sum, V> sum = {};
  if (first_col + lane * V < p.n) {
    add_entries<V>(p, begin + length * group / kGroups, begin + length * (group + 1) / kGroups, first_col + lane * V,
                   sum.x);
  }
  sm90::let_next_begin();
  partial[group][lane] = sum;
  __syncthreads();
  const int64_t col = first_col + threadIdx.x;
  if (threadIdx.x >= kColumns || col >= p.n) return;
  Sum total = 0;
#pragma unroll
  for (int g = 0; g < kGroups; g++) total += partial[g][threadIdx.x / V].x[threadIdx.x % V];
  store_one(p.c + row * p.ldc + col, total, p.accumulate);
}

/* CTAs of a long row, for the columns that a group of lanes takes elsewhere. */
template <int kLanes> constexpr int kPieces = kLanes > kLongLanes ? kLanes / kLongLanes : 1;

template <typename T, typename C, int V, int kLanes>
__global__ void __launch_bounds__(32 * kWarps) csr_multiply(const Problem<T, C> p) {
  constexpr int kGroups = 32 / kLanes * kWarps;
  const int64_t first_col = static_cast<int64_t>(blockIdx.y) * kLanes * V;
  const int64_t block = static_cast<int64_t>(blockIdx.x) - static_cast<int64_t>(p.n_long_rows) * kPieces<kLanes>;
  if (block < 0) {
    const int32_t row = __ldg(p.long_rows + blockIdx.x / kPieces<kLanes>);
    multiply_long_row<V>(p, row, first_col + blockIdx.x % kPieces<kLanes> * kLongLanes * V);
    return;
  }
  const int64_t index = block * kGroups + threadIdx.x / kLanes;
  const int64_t col = first_col + threadIdx.x % kLanes * V; /* whole vectors: V divides n */
  if (index >= p.n_rows || col >= p.n) return;
  const int64_t row = p.rows ? __ldg(p.rows + index) : index;
  const int64_t begin = p.row_ptr[row], end = p.row_ptr[row + 1];
  sm90::wait_for_previous();
  if (p.n_long_rows > 0 && end - begin > p.long_row) return;
  if (p.accumulate && begin == end) return;
  typename Problem<T, C>::Sum sum[V] = {};
  add_entries<V>(p, begin, end, col, sum);
  sm90::let_next_begin();
  store<V>(p, static_cast<int32_t>(row), col, sum);
}

template <int V, int kLanes, typename T, typename C> cudaError_t launch(const Problem<T, C> &p, cudaStream_t stream) {
  constexpr int kGroups = 32 / kLanes * kWarps, kColumns = kLanes * V; /* of a CTA */
  const int64_t blocks = static_cast<int64_t>(p.n_long_rows) * kPieces<kLanes> + (p.n_rows - 1) / kGroups + 1;
  if (blocks > INT32_MAX) return cudaErrorInvalidValue;
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>((p.n - 1) / kColumns + 1));
  return launch_overlapped(csr_multiply<T, C, V, kLanes>, grid, 32 * kWarps, 0, stream, p);
}

/* As many lanes as B has vectors, so that none is idle where B is narrow. */
template <int V, typename T, typename C> cudaError_t launch(const Problem<T, C> &p, cudaStream_t stream) {
  const int64_t vectors = (p.n - 1) / V + 1;
  if (vectors > 16) return launch<V, 32>(p, stream);
  if (vectors > 8) return launch<V, 16>(p, stream);
  if (vectors > 4) return launch<V, 8>(p, stream);
  if (vectors > 2) return launch<V, 4>(p, stream);
  return vectors > 1 ? launch<V, 2>(p, stream) : launch<V, 1>(p, stream);
}

bool aligned_to_16(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

template <typename T, typename C>
cudaError_t multiply(const asparse_cuda_csr *a, int64_t n, const void *d_b, int64_t ldb, void *d_c, int64_t ldc,
                     bool accumulate, cudaStream_t stream) {
  constexpr int V = 16 / sizeof(T);
  Problem<T, C> p = {};
  p.m = a->m;
  p.n = n;
  p.row_ptr = a->row_ptr;
  p.col_idx = a->col_idx;
  p.values = static_cast<const T *>(a->values);
  p.b = static_cast<const T *>(d_b);
  p.ldb = ldb;
  p.c = static_cast<C *>(d_c);
  p.ldc = ldc;
  p.accumulate = accumulate;
  p.long_row = a->long_row;
  p.n_long_rows = a->n_long_rows;
  p.long_rows = a->long_rows;
  p.rows = accumulate ? a->used_rows : nullptr;
  p.n_rows = p.rows ? a->n_used_rows : a->m;
  const bool vector = n % V == 0 && ldb % V == 0 && ldc % (16 / static_cast<int64_t>(sizeof(C))) == 0 &&
                      aligned_to_16(d_b) && aligned_to_16(d_c);
  return vector ? launch<V>(p, stream) : launch<1>(p, stream);
}

} // namespace

int32_t asparse_cuda_csr_long_row(int32_t m, const int64_t *row_ptr) {
  const int64_t several_means = m > 0 ? 4 * row_ptr[m] / m : 0;
  return static_cast<int32_t>(std::min(std::max(several_means, int64_t{128}), int64_t{INT32_MAX}));
}

int32_t asparse_cuda_csr_long_rows(int32_t m, const int64_t *row_ptr, int32_t long_row, int32_t *long_rows) {
  int32_t n = 0;
  for (int32_t i = 0; i < m; i++) {
    if (row_ptr[i + 1] - row_ptr[i] <= long_row) continue;
    if (long_rows) long_rows[n] = i;
    n++;
  }
  return n;
}

cudaError_t asparse_cuda_csr_multiply(const asparse_cuda_csr *a, int64_t n, const void *d_b, int64_t ldb,
                                      asparse_dtype c_dtype, void *d_c, int64_t ldc, bool accumulate,
                                      cudaStream_t stream) {
  const int64_t most_columns = INT64_C(65535) * 32; /* grid.y with one column a lane */
  const bool valid = a->n_used_rows >= 0 && a->n_used_rows <= a->m && a->m >= 0 && n >= 0 && n <= most_columns &&
                     ldb >= n && ldc >= n && a->n_long_rows >= 0 && a->n_long_rows <= a->m;
  if (!valid) return cudaErrorInvalidValue;
  const bool nothing = a->m == 0 || n == 0;
  if (a->dtype == ASPARSE_FP64 && c_dtype == ASPARSE_FP64)
    return nothing ? cudaSuccess : multiply<double, double>(a, n, d_b, ldb, d_c, ldc, accumulate, stream);
  if (a->dtype == ASPARSE_FP32 && c_dtype == ASPARSE_FP32)
    return nothing ? cudaSuccess : multiply<float, float>(a, n, d_b, ldb, d_c, ldc, accumulate, stream);
  if (a->dtype == ASPARSE_BF16 && c_dtype == ASPARSE_FP32)
    return nothing ? cudaSuccess : multiply<__nv_bfloat16, float>(a, n, d_b, ldb, d_c, ldc, accumulate, stream);
  if (a->dtype == ASPARSE_BF16 && c_dtype == ASPARSE_BF16)
    return nothing ? cudaSuccess : multiply<__nv_bfloat16, __nv_bfloat16>(a, n, d_b, ldb, d_c, ldc, accumulate, stream);
  return cudaErrorInvalidValue;
}
