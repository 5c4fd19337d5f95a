/* What the kernels with bf16 operands share: exact widening, one rounding to the type of C, 16-byte stores. */
#ifndef ASPARSE_RESULT_CUH
#define ASPARSE_RESULT_CUH

#include <cstdint>

#include <cuda_bf16.h>

__device__ __forceinline__ float bf16_low(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float bf16_high(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

/* x0 in the low half, x1 in the high one, each rounded to nearest even. */
__device__ __forceinline__ uint32_t bf16_pair(float x0, float x1) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x1), "f"(x0));
  return pair;
}

/* out[0 … 7] = x (+= x when accumulate), out 16-byte aligned. New values are stored as first to leave L2: nothing
 * reads C again, B is worth keeping. */
__device__ __forceinline__ void store_eight(float *out, const float (&x)[8], bool accumulate) {
  float4 *to = reinterpret_cast<float4 *>(out);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    float4 y = make_float4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
    if (accumulate) {
      const float4 old = to[i];
      y = make_float4(old.x + y.x, old.y + y.y, old.z + y.z, old.w + y.w);
    }
    __stcs(to + i, y);
  }
}

__device__ __forceinline__ void store_eight(__nv_bfloat16 *out, const float (&x)[8], bool accumulate) {
  uint4 *to = reinterpret_cast<uint4 *>(out);
  float y[8];
#pragma unroll
  for (int i = 0; i < 8; i++) y[i] = x[i];
  if (accumulate) {
    const uint4 old = *to;
    const uint32_t pairs[4] = {old.x, old.y, old.z, old.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      y[2 * i] += bf16_low(pairs[i]);
      y[2 * i + 1] += bf16_high(pairs[i]);
    }
  }
  __stcs(to, make_uint4(bf16_pair(y[0], y[1]), bf16_pair(y[2], y[3]), bf16_pair(y[4], y[5]), bf16_pair(y[6], y[7])));
}

__device__ __forceinline__ void store_one(float *out, float x, bool accumulate) { *out = accumulate ? *out + x : x; }
__device__ __forceinline__ void store_one(double *out, double x, bool accumulate) { *out = accumulate ? *out + x : x; }
__device__ __forceinline__ void store_one(__nv_bfloat16 *out, float x, bool accumulate) {
  *out = __float2bfloat16_rn(accumulate ? __bfloat162float(*out) + x : x);
}

#endif
