/* CSR on CUDA cores: a warp computes one row × 32 vectors of columns, a lane one vector (16 bytes of B, or one
 * element where B or C is not aligned for that). Entries are broadcast reads; no shuffle, no atomics.
 * The first CTAs of the grid take one long row each, shared by their warps; the others take kWarps rows. */
#include "kernels/cuda_csr.h"

#include <type_traits>

#include <cuda_bf16.h>

namespace {

constexpr int kWarps = 8;
constexpr int kUnroll = 4; /* gathered rows in flight per lane; 8 takes up to twice the time on short rows (H200) */

template <typename T> struct Problem {
  using Sum = typename std::conditional<std::is_same<T, double>::value, double, float>::type;
  int32_t m;
  int64_t n;
  const int64_t *row_ptr; /* [m + 1] */
  const int32_t *col_idx; /* [row_ptr[m]] */
  const T *values;        /* [row_ptr[m]] */
  const T *b;             /* [k × n] */
  int64_t ldb;
  Sum *c; /* [m × n] */
  int64_t ldc;
  bool accumulate;
  int32_t n_long_rows;
  const int32_t *long_rows; /* [n_long_rows] */
};

template <typename T, int V> struct alignas(sizeof(T) * V) Vector { T x[V]; };

template <typename T, int V> __device__ __forceinline__ Vector<T, V> load(const T *at) {
  Vector<T, V> v;
  if constexpr (sizeof v == 16) {
    *reinterpret_cast<uint4 *>(&v) = __ldg(reinterpret_cast<const uint4 *>(at));
  } else {
    static_assert(V == 1);
    v.x[0] = __ldg(at);
  }
  return v;
}

__device__ __forceinline__ double widen(double x) { return x; }
__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

/* sum[v] += Σ values[e]·B(col_idx[e], col + v) over count ≤ kUnroll entries from e on, in order. */
template <typename T, int V, bool kWhole>
__device__ __forceinline__ void add_some(const Problem<T> &p, int64_t e, int count, int64_t col,
                                         typename Problem<T>::Sum (&sum)[V]) {
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
template <typename T, int V>
__device__ __forceinline__ void add_entries(const Problem<T> &p, int64_t begin, int64_t end, int64_t col,
                                            typename Problem<T>::Sum (&sum)[V]) {
  int64_t e = begin;
  for (; e + kUnroll <= end; e += kUnroll) add_some<T, V, true>(p, e, kUnroll, col, sum);
  if (e < end) add_some<T, V, false>(p, e, static_cast<int>(end - e), col, sum);
}

/* Results of a lane, in pieces of 16 bytes. */
template <typename T, int V>
__device__ __forceinline__ void store(const Problem<T> &p, int32_t row, int64_t col,
                                      const typename Problem<T>::Sum (&sum)[V]) {
  using Sum = typename Problem<T>::Sum;
  constexpr int kPiece = V == 1 ? 1 : 16 / sizeof(Sum);
  Sum *out = p.c + row * p.ldc + col;
#pragma unroll
  for (int i = 0; i < V; i += kPiece) {
    Vector<Sum, kPiece> x;
    if (p.accumulate) x = *reinterpret_cast<const Vector<Sum, kPiece> *>(out + i);
#pragma unroll
    for (int j = 0; j < kPiece; j++) x.x[j] = p.accumulate ? x.x[j] + sum[i + j] : sum[i + j];
    *reinterpret_cast<Vector<Sum, kPiece> *>(out + i) = x;
  }
}

/* A long row by all warps of the CTA, each a segment; the segments are added in order. */
template <typename T, int V>
__device__ __forceinline__ void multiply_long_row(const Problem<T> &p, int32_t row, int64_t col, int lane, int warp) {
  using Sum = typename Problem<T>::Sum;
  __shared__ Sum partial[kWarps][V][32]; /* [segment][vector element][lane] */
  const int64_t begin = __ldg(p.row_ptr + row), length = __ldg(p.row_ptr + row + 1) - begin;
  Sum sum[V] = {};
  if (col < p.n) add_entries<T, V>(p, begin + length * warp / kWarps, begin + length * (warp + 1) / kWarps, col, sum);
#pragma unroll
  for (int v = 0; v < V; v++) partial[warp][v][lane] = sum[v];
  __syncthreads();
  if (warp > 0 || col >= p.n) return;
  for (int w = 1; w < kWarps; w++) {
#pragma unroll
    for (int v = 0; v < V; v++) sum[v] += partial[w][v][lane];
  }
  store<T, V>(p, row, col, sum);
}

template <typename T, int V> __global__ void __launch_bounds__(32 * kWarps) csr_multiply(const Problem<T> p) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t col = (static_cast<int64_t>(blockIdx.y) * 32 + lane) * V; /* whole vectors: V divides n */
  const int32_t block = blockIdx.x;
  if (block < p.n_long_rows) {
    multiply_long_row<T, V>(p, __ldg(p.long_rows + block), col, lane, warp);
    return;
  }
  const int64_t row = static_cast<int64_t>(block - p.n_long_rows) * kWarps + warp;
  if (row >= p.m || col >= p.n) return;
  const int64_t begin = __ldg(p.row_ptr + row), end = __ldg(p.row_ptr + row + 1);
  if (p.n_long_rows > 0 && end - begin > ASPARSE_CUDA_CSR_LONG_ROW) return;
  typename Problem<T>::Sum sum[V] = {};
  add_entries<T, V>(p, begin, end, col, sum);
  store<T, V>(p, static_cast<int32_t>(row), col, sum);
}

bool aligned_to_16(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

template <typename T>
cudaError_t launch(const asparse_cuda_csr *a, int64_t n, const void *d_b, int64_t ldb, void *d_c, int64_t ldc,
                   bool accumulate, cudaStream_t stream) {
  using Sum = typename Problem<T>::Sum;
  constexpr int V = 16 / sizeof(T);
  Problem<T> p = {};
  p.m = a->m;
  p.n = n;
  p.row_ptr = a->row_ptr;
  p.col_idx = a->col_idx;
  p.values = static_cast<const T *>(a->values);
  p.b = static_cast<const T *>(d_b);
  p.ldb = ldb;
  p.c = static_cast<Sum *>(d_c);
  p.ldc = ldc;
  p.accumulate = accumulate;
  p.n_long_rows = a->n_long_rows;
  p.long_rows = a->long_rows;
  const bool vector = n % V == 0 && ldb % V == 0 && ldc % (16 / static_cast<int64_t>(sizeof(Sum))) == 0 &&
                      aligned_to_16(d_b) && aligned_to_16(d_c);
  const int64_t lane_columns = vector ? V : 1;
  const dim3 grid(a->n_long_rows + ((a->m - 1) / kWarps + 1), static_cast<unsigned>((n - 1) / (32 * lane_columns) + 1));
  if (vector) csr_multiply<T, V><<<grid, 32 * kWarps, 0, stream>>>(p);
  else csr_multiply<T, 1><<<grid, 32 * kWarps, 0, stream>>>(p);
  return cudaGetLastError();
}

} // namespace

int32_t asparse_cuda_csr_long_rows(int32_t m, const int64_t *row_ptr, int32_t *long_rows) {
  int32_t n = 0;
  for (int32_t i = 0; i < m; i++) {
    if (row_ptr[i + 1] - row_ptr[i] <= ASPARSE_CUDA_CSR_LONG_ROW) continue;
    if (long_rows) long_rows[n] = i;
    n++;
  }
  return n;
}

cudaError_t asparse_cuda_csr_multiply(const asparse_cuda_csr *a, int64_t n, const void *d_b, int64_t ldb, void *d_c,
                                      int64_t ldc, bool accumulate, cudaStream_t stream) {
  const int64_t most_columns = INT64_C(65535) * 32; /* grid.y with one column a lane */
  const bool valid = a->m >= 0 && n >= 0 && n <= most_columns && ldb >= n && ldc >= n && a->n_long_rows >= 0 &&
                     a->n_long_rows <= a->m &&
                     (a->dtype == ASPARSE_FP64 || a->dtype == ASPARSE_FP32 || a->dtype == ASPARSE_BF16);
  if (!valid) return cudaErrorInvalidValue;
  if (a->m == 0 || n == 0) return cudaSuccess;
  return a->dtype == ASPARSE_FP64   ? launch<double>(a, n, d_b, ldb, d_c, ldc, accumulate, stream)
         : a->dtype == ASPARSE_FP32 ? launch<float>(a, n, d_b, ldb, d_c, ldc, accumulate, stream)
                                    : launch<__nv_bfloat16>(a, n, d_b, ldb, d_c, ldc, accumulate, stream);
}
