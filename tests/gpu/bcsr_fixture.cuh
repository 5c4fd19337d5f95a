/* Random block-sparse matrices for the GPU tests: built on the host, copied to the device, checked in fp64. */
#ifndef BCSR_FIXTURE_H
#define BCSR_FIXTURE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "kernels/cuda_bcsr.h"

#define CUDA(call)                                                                                                     \
  do {                                                                                                                 \
    cudaError_t error_ = (call);                                                                                       \
    if (error_ != cudaSuccess) {                                                                                       \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));                       \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

struct random_stream {
  uint64_t state;
  uint64_t next() { /* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) */
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
};

/* A bf16 value in (-2, -2^-7] or [2^-7, 2), all mantissas equally likely; and its value. */
static inline uint16_t random_bf16(random_stream &random) {
  const uint64_t bits = random.next();
  return static_cast<uint16_t>((bits & 0x8000) | (120 + bits % 8) << 7 | (bits >> 32 & 0x7f));
}
static inline float bf16_value(uint16_t x) {
  const uint32_t bits = static_cast<uint32_t>(x) << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T> static inline T *to_device(const std::vector<T> &host) {
  T *device = nullptr;
  CUDA(cudaMalloc(&device, (host.size() + 1) * sizeof(T)));
  CUDA(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

struct host_bcsr {
  int32_t m, k;
  std::vector<int64_t> block_row_ptr; /* [⌈m / 64⌉ + 1] */
  std::vector<int32_t> block_col_idx; /* [blocks] */
  std::vector<uint16_t> blocks;       /* [blocks · 64 · 64] bf16, zero outside m × k */
};

/* Every block is there with probability density, and is dense. */
static inline host_bcsr random_bcsr(random_stream &random, int32_t m, int32_t k, double density) {
  host_bcsr a = {m, k, {0}, {}, {}};
  for (int64_t block_row = 0; block_row * 64 < m; block_row++) {
    for (int32_t block_col = 0; block_col * 64 < k; block_col++) {
      if (random.uniform() >= density) continue;
      a.block_col_idx.push_back(block_col);
      for (int i = 0; i < 64 * 64; i++) {
        const bool inside = block_row * 64 + i / 64 < m && block_col * 64 + i % 64 < k;
        a.blocks.push_back(inside ? random_bf16(random) : 0);
      }
    }
    a.block_row_ptr.push_back(static_cast<int64_t>(a.block_col_idx.size()));
  }
  return a;
}

static inline asparse_cuda_bcsr bcsr_to_device(const host_bcsr &a) {
  return {a.m,
          a.k,
          (a.m + 63) / 64,
          static_cast<int64_t>(a.block_col_idx.size()),
          to_device(a.block_row_ptr),
          to_device(a.block_col_idx),
          to_device(a.blocks)};
}

static inline void bcsr_free(asparse_cuda_bcsr &a) {
  CUDA(cudaFree(const_cast<int64_t *>(a.block_row_ptr)));
  CUDA(cudaFree(const_cast<int32_t *>(a.block_col_idx)));
  CUDA(cudaFree(const_cast<uint16_t *>(a.blocks)));
}

/* Row i of A·B in fp64 and its bound 2·q·2^-23·Σ|a||b| for q entries (tensor cores truncate, so u = 2^-23; Higham,
 * Accuracy and Stability, ch. 3), each [n], overwritten. */
static inline void reference_row(const host_bcsr &a, int64_t i, const std::vector<uint16_t> &b, int64_t n, int64_t ldb,
                                 double *sum, double *bound) {
  int64_t entries = 0;
  for (int64_t j = 0; j < n; j++) sum[j] = bound[j] = 0.0;
  for (int64_t block = a.block_row_ptr[i / 64]; block < a.block_row_ptr[i / 64 + 1]; block++)
    for (int64_t c = 0; c < 64; c++) {
      const int64_t row = int64_t{a.block_col_idx[block]} * 64 + c;
      if (row >= a.k) break;
      const double value = bf16_value(a.blocks[(block * 64 + i % 64) * 64 + c]);
      entries++;
      for (int64_t j = 0; j < n; j++) {
        const double product = value * bf16_value(b[row * ldb + j]);
        sum[j] += product;
        bound[j] += fabs(product);
      }
    }
  for (int64_t j = 0; j < n; j++) bound[j] *= 2.0 * static_cast<double>(entries) * 0x1p-23;
}

/* Largest |c - sum| / bound. Infinite for NaN, and for anything but 0 where the bound is 0. */
static inline double row_error(int64_t n, const float *c, const double *sum, const double *bound) {
  double worst = 0.0;
  for (int64_t j = 0; j < n; j++) {
    const double error = fabs(c[j] - sum[j]);
    if (!(error <= bound[j])) return INFINITY;
    if (bound[j] > 0.0) worst = fmax(worst, error / bound[j]);
  }
  return worst;
}

/* The steps of the ladder under one signature. */
struct bcsr_variant {
  char name[32];
  bool needs_aligned_b; /* ldb a multiple of 8 */
  int config;           /* of the pipeline; -1: chosen; -2: not the pipeline */
  cudaError_t (*step)(const asparse_cuda_bcsr *, const asparse_cuda_dense_pair *, cudaStream_t);
  cudaError_t run(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) const {
    if (step) return step(a, bc, stream);
    const asparse_bcsr_pipeline_config wanted =
        config >= 0 ? asparse_bcsr_pipeline_compiled(config) : asparse_bcsr_pipeline_choose(a, bc->n);
    return asparse_bcsr_pipeline(a, bc, wanted, stream);
  }
};

static inline std::vector<bcsr_variant> bcsr_variants() {
  std::vector<bcsr_variant> variants = {{"scalar", false, -2, asparse_bcsr_scalar},
                                        {"wgmma", false, -2, asparse_bcsr_wgmma},
                                        {"tma", true, -2, asparse_bcsr_tma},
                                        {"persistent", true, -2, asparse_bcsr_persistent},
                                        {"pipeline", true, -1, nullptr}};
  for (int i = 0; i < ASPARSE_BCSR_PIPELINE_CONFIGS; i++) {
    const asparse_bcsr_pipeline_config config = asparse_bcsr_pipeline_compiled(i);
    bcsr_variant variant = {"", true, i, nullptr};
    snprintf(variant.name, sizeof variant.name, "pipeline %dx%d", config.tile_columns, config.stages);
    variants.push_back(variant);
  }
  return variants;
}

#endif
