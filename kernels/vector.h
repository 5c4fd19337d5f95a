/* SIMD lanes for the host kernels: one register of accumulators, for three instruction sets.
 *
 * A kernel source is compiled once per instruction set. `vec` is a register's worth of bits; every
 * operation takes the element type as a compile-time constant, so that one source serves fp64, fp32
 * and bf16 (bf16 is widened to fp32 on loading, exactly).
 *
 * Rounding: avx512 and avx2 use fused multiply-add for every product. The baseline fuses only where
 * the target has such an instruction; the sources are compiled with -ffp-contract=off, so that all
 * paths of one instruction set round alike, tails included. */
#ifndef ASPARSE_VECTOR_H
#define ASPARSE_VECTOR_H

#include "base/dtype.h"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

/* TILE_ROWS × TILE_VECTORS accumulators, TILE_VECTORS rows of B and one element of A fill the
 * registers (32 of avx512, 16 of the others). STRIP_VECTORS: accumulators of a CSR row. */
#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, STRIP_VECTORS = 8, TILE_ROWS = 8, TILE_VECTORS = 2 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32, STRIP_VECTORS = 8, TILE_ROWS = 4, TILE_VECTORS = 3 };
#else
enum { VECTOR_BYTES = 16, STRIP_VECTORS = 8, TILE_ROWS = 4, TILE_VECTORS = 2 };
#endif

typedef float vec __attribute__((vector_size(VECTOR_BYTES)));
typedef double vec_fp64 __attribute__((vector_size(VECTOR_BYTES)));

/* Elements of the result type (double or float) in a vec. */
INLINE int64_t vec_lanes(asparse_dtype dtype) { return VECTOR_BYTES / (dtype == ASPARSE_FP64 ? 8 : 4); }

INLINE vec vec_zero(void) { return (vec){0}; }

#if defined(__AVX512F__)

INLINE vec vec_load(asparse_dtype dtype, const void *p) {
  if (dtype == ASPARSE_FP64) return (vec)_mm512_loadu_pd(p);
  if (dtype == ASPARSE_FP32) return (vec)_mm512_loadu_ps(p);
  return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16);
}

/* The first count lanes, 1 ≤ count ≤ lanes; the others are 0 and their memory is not touched. */
INLINE vec vec_load_tail(asparse_dtype dtype, const void *p, int64_t count) {
  uint32_t mask = (1u << count) - 1;
  if (dtype == ASPARSE_FP64) return (vec)_mm512_maskz_loadu_pd((__mmask8)mask, p);
  if (dtype == ASPARSE_FP32) return (vec)_mm512_maskz_loadu_ps((__mmask16)mask, p);
  return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16((__mmask16)mask, p)), 16);
}

INLINE vec vec_broadcast(asparse_dtype dtype, const void *p) {
  if (dtype == ASPARSE_FP64) return (vec)_mm512_set1_pd(*(const double *)p);
  if (dtype == ASPARSE_FP32) return (vec)_mm512_set1_ps(*(const float *)p);
  return (vec)_mm512_set1_epi32((int)((uint32_t) * (const uint16_t *)p << 16));
}

/* a·b + c */
INLINE vec vec_fma(asparse_dtype dtype, vec a, vec b, vec c) {
  if (dtype == ASPARSE_FP64) return (vec)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
  return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

INLINE void vec_store(asparse_dtype dtype, void *p, vec x) {
  if (dtype == ASPARSE_FP64) _mm512_storeu_pd(p, (__m512d)x);
  else _mm512_storeu_ps(p, (__m512)x);
}

INLINE void vec_store_tail(asparse_dtype dtype, void *p, vec x, int64_t count) {
  uint32_t mask = (1u << count) - 1;
  if (dtype == ASPARSE_FP64) _mm512_mask_storeu_pd(p, (__mmask8)mask, (__m512d)x);
  else _mm512_mask_storeu_ps(p, (__mmask16)mask, (__m512)x);
}

/* Past the caches; p aligned to VECTOR_BYTES. */
INLINE void vec_stream(void *p, vec x) { _mm512_stream_ps(p, (__m512)x); }

INLINE bool vec_any_nan(asparse_dtype dtype, vec x) {
  if (dtype == ASPARSE_FP64) return _mm512_cmp_pd_mask((__m512d)x, (__m512d)x, _CMP_UNORD_Q) != 0;
  return _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q) != 0;
}

#elif defined(__AVX2__)

INLINE vec vec_load(asparse_dtype dtype, const void *p) {
  if (dtype == ASPARSE_FP64) return (vec)_mm256_loadu_pd(p);
  if (dtype == ASPARSE_FP32) return (vec)_mm256_loadu_ps(p);
  return (vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16);
}

/* All ones in the first count lanes. */
INLINE __m256i lane_mask(asparse_dtype dtype, int64_t count) {
  if (dtype == ASPARSE_FP64) return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE vec vec_load_tail(asparse_dtype dtype, const void *p, int64_t count) {
  if (dtype == ASPARSE_FP64) return (vec)_mm256_maskload_pd(p, lane_mask(dtype, count));
  if (dtype == ASPARSE_FP32) return (vec)_mm256_maskload_ps(p, lane_mask(dtype, count));
  uint16_t lanes[8] = {0};
  for (int64_t l = 0; l < count; l++) lanes[l] = ((const uint16_t *)p)[l];
  return vec_load(ASPARSE_BF16, lanes);
}

INLINE vec vec_broadcast(asparse_dtype dtype, const void *p) {
  if (dtype == ASPARSE_FP64) return (vec)_mm256_set1_pd(*(const double *)p);
  if (dtype == ASPARSE_FP32) return (vec)_mm256_set1_ps(*(const float *)p);
  return (vec)_mm256_set1_epi32((int)((uint32_t) * (const uint16_t *)p << 16));
}

INLINE vec vec_fma(asparse_dtype dtype, vec a, vec b, vec c) {
  if (dtype == ASPARSE_FP64) return (vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
  return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

INLINE void vec_store(asparse_dtype dtype, void *p, vec x) {
  if (dtype == ASPARSE_FP64) _mm256_storeu_pd(p, (__m256d)x);
  else _mm256_storeu_ps(p, (__m256)x);
}

INLINE void vec_store_tail(asparse_dtype dtype, void *p, vec x, int64_t count) {
  if (dtype == ASPARSE_FP64) _mm256_maskstore_pd(p, lane_mask(dtype, count), (__m256d)x);
  else _mm256_maskstore_ps(p, lane_mask(dtype, count), (__m256)x);
}

INLINE void vec_stream(void *p, vec x) { _mm256_stream_ps(p, (__m256)x); }

INLINE bool vec_any_nan(asparse_dtype dtype, vec x) {
  if (dtype == ASPARSE_FP64) return _mm256_movemask_pd(_mm256_cmp_pd((__m256d)x, (__m256d)x, _CMP_UNORD_Q)) != 0;
  return _mm256_movemask_ps(_mm256_cmp_ps((__m256)x, (__m256)x, _CMP_UNORD_Q)) != 0;
}

#else /* any processor: the compiler's generic vectors */

INLINE vec vec_load_tail(asparse_dtype dtype, const void *p, int64_t count) {
  vec x = {0};
  if (dtype == ASPARSE_BF16) {
    for (int64_t l = 0; l < count; l++) x[l] = asparse_float_from_bf16(((const uint16_t *)p)[l]);
  } else {
    memcpy(&x, p, (size_t)count * asparse_dtype_size(dtype));
  }
  return x;
}

INLINE vec vec_load(asparse_dtype dtype, const void *p) {
  vec x;
  if (dtype == ASPARSE_BF16) {
    for (int l = 0; l < VECTOR_BYTES / 4; l++) x[l] = asparse_float_from_bf16(((const uint16_t *)p)[l]);
  } else {
    memcpy(&x, p, sizeof x);
  }
  return x;
}

INLINE vec vec_broadcast(asparse_dtype dtype, const void *p) {
  if (dtype == ASPARSE_FP64) return (vec)(*(const double *)p - (vec_fp64){0});
  return (dtype == ASPARSE_FP32 ? *(const float *)p : asparse_float_from_bf16(*(const uint16_t *)p)) - (vec){0};
}

INLINE vec vec_fma(asparse_dtype dtype, vec a, vec b, vec c) {
#ifdef __FP_FAST_FMA
  if (dtype == ASPARSE_FP64) {
    vec_fp64 x = (vec_fp64)a, y = (vec_fp64)b, z = (vec_fp64)c;
    for (int64_t l = 0; l < vec_lanes(dtype); l++) z[l] = __builtin_fma(x[l], y[l], z[l]);
    return (vec)z;
  }
  for (int64_t l = 0; l < vec_lanes(dtype); l++) c[l] = __builtin_fmaf(a[l], b[l], c[l]);
  return c;
#else
  if (dtype == ASPARSE_FP64) return (vec)((vec_fp64)a * (vec_fp64)b + (vec_fp64)c);
  return a * b + c;
#endif
}

INLINE void vec_store(asparse_dtype dtype, void *p, vec x) {
  (void)dtype;
  memcpy(p, &x, sizeof x);
}

INLINE void vec_store_tail(asparse_dtype dtype, void *p, vec x, int64_t count) {
  memcpy(p, &x, (size_t)count * (dtype == ASPARSE_FP64 ? 8 : 4));
}

INLINE void vec_stream(void *p, vec x) { memcpy(p, &x, sizeof x); }

INLINE bool vec_any_nan(asparse_dtype dtype, vec x) {
  bool any = false;
  for (int64_t l = 0; l < vec_lanes(dtype); l++)
    any = any || (dtype == ASPARSE_FP64 ? ((vec_fp64)x)[l] != ((vec_fp64)x)[l] : x[l] != x[l]);
  return any;
}

#endif

INLINE vec vec_add(asparse_dtype dtype, vec a, vec b) {
  return dtype == ASPARSE_FP64 ? (vec)((vec_fp64)a + (vec_fp64)b) : a + b;
}

#endif
