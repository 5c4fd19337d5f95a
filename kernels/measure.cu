#include "kernels/measure.h"

#include <cuda_bf16.h>

namespace {

constexpr int kThreads = 256;

__device__ uint64_t mix64(uint64_t x) { /* asparse_mix64 */
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

__device__ void store(double *to, double x) { *to = x; }
__device__ void store(float *to, double x) { *to = static_cast<float>(x); }
/* Through fp32 rounded to odd, so that x is rounded once. */
__device__ void store(__nv_bfloat16 *to, double x) {
  float y = __double2float_rz(x);
  if (static_cast<double>(y) != x) y = __uint_as_float(__float_as_uint(y) | 1u);
  *to = __float2bfloat16_rn(y);
}

__device__ double widen(double x) { return x; }
__device__ double widen(float x) { return x; }
__device__ double widen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T> __global__ void fill_random(int64_t count, int64_t n, uint64_t seed, T *b) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const uint64_t row = i / n, col = i % n, bits = mix64(mix64(seed ^ mix64(row)) ^ col);
    store(b + i, static_cast<double>(static_cast<int64_t>(bits >> 11)) * 0x1p-52 - 1.0);
  }
}

/* A CTA computes one row × 128 columns: its 8 warps share the entries, a lane holds 4 columns. */
constexpr int kSegments = kThreads / 32, kLaneColumns = 4, kCtaColumns = 32 * kLaneColumns;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    reference(const asparse_cuda_csr a, int64_t n, const T *b, double *sum, double *size) {
  __shared__ double partial[kSegments][2 * kLaneColumns][32];
  const int lane = threadIdx.x % 32, segment = threadIdx.x / 32;
  const int64_t row = blockIdx.x, first = static_cast<int64_t>(blockIdx.y) * kCtaColumns + lane;
  const T *values = static_cast<const T *>(a.values);
  double s[kLaneColumns] = {}, t[kLaneColumns] = {};
  for (int64_t e = a.row_ptr[row] + segment; e < a.row_ptr[row + 1]; e += kSegments) {
    const double x = widen(values[e]);
    const T *b_row = b + a.col_idx[e] * n;
#pragma unroll
    for (int v = 0; v < kLaneColumns; v++) {
      const double product = first + 32 * v < n ? x * widen(b_row[first + 32 * v]) : 0.0; /* fp64: rounded */
      s[v] += product;
      t[v] += fabs(product);
    }
  }
#pragma unroll
  for (int v = 0; v < kLaneColumns; v++) {
    partial[segment][v][lane] = s[v];
    partial[segment][kLaneColumns + v][lane] = t[v];
  }
  __syncthreads();
  if (segment >= kLaneColumns || first + 32 * segment >= n) return; /* warp v adds up column v of each lane */
  double whole_sum = 0, whole_size = 0;
  for (int w = 0; w < kSegments; w++) {
    whole_sum += partial[w][segment][lane];
    whole_size += partial[w][kLaneColumns + segment][lane];
  }
  sum[row * n + first + 32 * segment] = whole_sum;
  size[row * n + first + 32 * segment] = whole_size;
}

struct Bound {
  double roundoff, of_result, smallest;
};

__device__ double error_of(double c, double exact, double size, double q, const Bound &bound) {
  if (isnan(exact)) return isnan(c) ? 0 : INFINITY;
  if (isinf(exact)) return c == exact ? 0 : INFINITY;
  const double gamma = q * bound.roundoff < 1 ? q * bound.roundoff / (1 - q * bound.roundoff) : INFINITY;
  const double most = (q > 0 ? gamma * size : 0) + bound.of_result * fabs(exact) + (q + 1) * bound.smallest;
  const double error = fabs(c - exact) / most;
  return isnan(error) ? INFINITY : error;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) compare(const int64_t *row_ptr, int64_t m, int64_t n, const T *c,
                                                    const double *sum, const double *size, Bound bound, double *worst) {
  double own = 0;
  for (int64_t i = blockIdx.x; i < m; i += gridDim.x) {
    const double q = static_cast<double>(row_ptr[i + 1] - row_ptr[i]);
    for (int64_t j = threadIdx.x; j < n; j += kThreads)
      own = fmax(own, error_of(widen(c[i * n + j]), sum[i * n + j], size[i * n + j], q, bound));
  }
  for (int offset = 16; offset > 0; offset /= 2) own = fmax(own, __shfl_xor_sync(~0u, own, offset));
  /* Numbers that are not negative order like their bits. */
  if (threadIdx.x % 32 == 0)
    atomicMax(reinterpret_cast<unsigned long long *>(worst),
              static_cast<unsigned long long>(__double_as_longlong(own)));
}

__global__ void __launch_bounds__(kThreads) read_through(const uint4 *d, size_t count) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  uint32_t all = 0;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const uint4 x = __ldcg(d + i);
    all |= x.x | x.y | x.z | x.w;
  }
  asm volatile("" ::"r"(all)); /* the loads stay */
}

unsigned ctas(int64_t work) {
  const int64_t wanted = (work + kThreads - 1) / kThreads, most = 1 << 16;
  return static_cast<unsigned>(wanted < most ? wanted : most);
}

} // namespace

cudaError_t asparse_cuda_fill_random(asparse_dtype dtype, int64_t k, int64_t n, uint64_t seed, void *d_b,
                                     cudaStream_t stream) {
  const int64_t count = k * n;
  if (count == 0) return cudaSuccess;
  if (dtype == ASPARSE_FP64)
    fill_random<<<ctas(count), kThreads, 0, stream>>>(count, n, seed, static_cast<double *>(d_b));
  else if (dtype == ASPARSE_FP32)
    fill_random<<<ctas(count), kThreads, 0, stream>>>(count, n, seed, static_cast<float *>(d_b));
  else fill_random<<<ctas(count), kThreads, 0, stream>>>(count, n, seed, static_cast<__nv_bfloat16 *>(d_b));
  return cudaGetLastError();
}

cudaError_t asparse_cuda_reference(const asparse_cuda_csr *a, int64_t n, const void *d_b, double *d_sum, double *d_size,
                                   cudaStream_t stream) {
  if (a->m == 0 || n == 0) return cudaSuccess;
  if ((n - 1) / kCtaColumns >= 65535) return cudaErrorInvalidValue;
  const dim3 grid(a->m, static_cast<unsigned>((n - 1) / kCtaColumns + 1));
  if (a->dtype == ASPARSE_FP64)
    reference<<<grid, kThreads, 0, stream>>>(*a, n, static_cast<const double *>(d_b), d_sum, d_size);
  else if (a->dtype == ASPARSE_FP32)
    reference<<<grid, kThreads, 0, stream>>>(*a, n, static_cast<const float *>(d_b), d_sum, d_size);
  else reference<<<grid, kThreads, 0, stream>>>(*a, n, static_cast<const __nv_bfloat16 *>(d_b), d_sum, d_size);
  return cudaGetLastError();
}

cudaError_t asparse_cuda_compare(const asparse_cuda_csr *a, int64_t n, asparse_dtype c_dtype, const void *d_c,
                                 const double *d_sum, const double *d_size, double *d_worst, cudaStream_t stream) {
  const bool wide = a->dtype == ASPARSE_FP64;
  const Bound bound = {wide ? 0x1p-52 : 0x1p-23, c_dtype == ASPARSE_BF16 ? 0x1p-8 : 0, wide ? 0x1p-1022 : 0x1p-126};
  const cudaError_t error = cudaMemsetAsync(d_worst, 0, sizeof *d_worst, stream);
  if (error != cudaSuccess || a->m == 0 || n == 0) return error;
  const unsigned grid = ctas(static_cast<int64_t>(a->m) * kThreads);
  if (c_dtype == ASPARSE_FP64)
    compare<<<grid, kThreads, 0, stream>>>(a->row_ptr, a->m, n, static_cast<const double *>(d_c), d_sum, d_size, bound,
                                           d_worst);
  else if (c_dtype == ASPARSE_FP32)
    compare<<<grid, kThreads, 0, stream>>>(a->row_ptr, a->m, n, static_cast<const float *>(d_c), d_sum, d_size, bound,
                                           d_worst);
  else
    compare<<<grid, kThreads, 0, stream>>>(a->row_ptr, a->m, n, static_cast<const __nv_bfloat16 *>(d_c), d_sum, d_size,
                                           bound, d_worst);
  return cudaGetLastError();
}

cudaError_t asparse_cuda_read_through(const void *d, size_t bytes, cudaStream_t stream) {
  read_through<<<ctas(static_cast<int64_t>(bytes / sizeof(uint4) / 8)), kThreads, 0, stream>>>(
      static_cast<const uint4 *>(d), bytes / sizeof(uint4));
  return cudaGetLastError();
}
