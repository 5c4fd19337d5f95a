/* Element types: sizes, names, rounding. Local. */
#ifndef ASPARSE_DTYPE_H
#define ASPARSE_DTYPE_H

#include <string.h>

#include "asparse_types.h"

static inline size_t asparse_dtype_size(asparse_dtype dtype) {
  return dtype == ASPARSE_FP64 ? 8 : dtype == ASPARSE_FP32 ? 4 : 2;
}

/* The type C has when A and B are of dtype: bf16 accumulates into fp32. */
static inline asparse_dtype asparse_dtype_result(asparse_dtype dtype) {
  return dtype == ASPARSE_FP64 ? ASPARSE_FP64 : ASPARSE_FP32;
}

static inline const char *asparse_dtype_name(asparse_dtype dtype) {
  return dtype == ASPARSE_FP64 ? "fp64" : dtype == ASPARSE_FP32 ? "fp32" : "bf16";
}

/* fp32 to bf16, round to nearest even as the GPU's cvt.rn.bf16 does; NaN stays NaN (quiet). */
static inline uint16_t asparse_bf16_from_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x0040u);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float asparse_float_from_bf16(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float y;
  memcpy(&y, &bits, sizeof y);
  return y;
}

/* Element i of an array of dtype, exactly. */
static inline double asparse_load(asparse_dtype dtype, const void *array, int64_t i) {
  if (dtype == ASPARSE_FP64) return ((const double *)array)[i];
  if (dtype == ASPARSE_FP32) return ((const float *)array)[i];
  return asparse_float_from_bf16(((const uint16_t *)array)[i]);
}

/* Rounds once, to nearest even. fp64 to bf16 goes through fp32 rounded to odd, so that it rounds once too. */
void asparse_store(asparse_dtype dtype, void *array, int64_t i, double x);

/* to[i] = from[i], rounded to nearest even; the arrays do not overlap. Threaded. */
void asparse_convert_values(asparse_dtype to_dtype, void *to, asparse_dtype from_dtype, const void *from,
                            int64_t count);

#endif
