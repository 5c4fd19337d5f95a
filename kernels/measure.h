/* What a benchmark on a GPU needs beside the kernels: operands, a reference to check against, a cold cache.
 * Everything is enqueued on the stream and waits for nothing. */
#ifndef ASPARSE_MEASURE_H
#define ASPARSE_MEASURE_H

#include "kernels/cuda_csr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* d_b [k × n] of dtype = asparse_dense_fill_random with that seed, bit for bit. */
cudaError_t asparse_cuda_fill_random(asparse_dtype dtype, int64_t k, int64_t n, uint64_t seed, void *d_b,
                                     cudaStream_t stream);

/* d_sum = A·B and d_size = |A|·|B|, both [m × n], by plain loops in fp64.
 *   d_b: [k × n] of a's dtype, ld n. */
cudaError_t asparse_cuda_reference(const asparse_cuda_csr *a, int64_t n, const void *d_b, double *d_sum, double *d_size,
                                   cudaStream_t stream);

/* *d_worst = largest |C - A·B| / bound over all elements; infinite where one of them is NaN or Inf and the other is not
 * the same. With q entries in a row and γ = q·u/(1 - q·u) (Higham, Accuracy and Stability, ch. 3):
 *   bound = γ·|A||B|, u = 2^-23 since tensor cores truncate (fp64: 2^-52, the reference rounds as well),
 *   + 2^-8·|A·B| when C is bf16, + (q + 1) times the smallest normal number, below which products may vanish.
 *   d_c: [m × n] of c_dtype, ld n. */
cudaError_t asparse_cuda_compare(const asparse_cuda_csr *a, int64_t n, asparse_dtype c_dtype, const void *d_c,
                                 const double *d_sum, const double *d_size, double *d_worst, cudaStream_t stream);

/* Reads d [bytes], so that a buffer larger than the L2 cache leaves nothing else in it, and nothing to write back. */
cudaError_t asparse_cuda_read_through(const void *d, size_t bytes, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
