/* Warp-level PTX the register-gather kernels use. */
#ifndef ASPARSE_MMA_CUH
#define ASPARSE_MMA_CUH

#include <cstdint>

/* d += a·b: a 16 × 16 row-major, b 16 × 8 column-major, bf16; d 16 × 8, fp32.
 * PTX ISA 9.7.14.5.8, "Matrix fragments for mma.m16n8k16": lane = 4·g + t holds
 *   a[0] (g, 2t‥2t+1)  a[1] (g+8, 2t‥2t+1)  a[2] (g, 2t+8‥2t+9)  a[3] (g+8, 2t+8‥2t+9)
 *   b.x (2t‥2t+1, g)   b.y (2t+8‥2t+9, g)   d[0..1] (g, 2t‥2t+1)  d[2..3] (g+8, 2t‥2t+1) */
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint2 b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

/* (low half of x, low half of y) and (high half of x, high half of y). */
__device__ __forceinline__ uint32_t pair_low(uint32_t x, uint32_t y) { return __byte_perm(x, y, 0x5410); }
__device__ __forceinline__ uint32_t pair_high(uint32_t x, uint32_t y) { return __byte_perm(x, y, 0x7632); }

#endif
