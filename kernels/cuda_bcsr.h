/* C = A·B on one Hopper GPU (sm_90a), A in 64 × 64 blocks. bf16 A and B, fp32 accumulation, fp32 C.
 *
 * Every launcher only enqueues on the stream: it allocates nothing, waits for nothing and can be captured into a
 * CUDA graph. C is overwritten (beta = 0, also over NaN). Blocks are multiplied in full, so B must be finite in the
 * rows that stored blocks touch; other rows of B are not read. A row of C is summed in block order: the result does
 * not depend on timing. Errors: cudaErrorInvalidValue for shapes that cannot be used, cudaErrorMisalignedAddress for
 * pointers or leading dimensions that are not aligned as said below, otherwise the error of the launch. */
#ifndef ASPARSE_CUDA_BCSR_H
#define ASPARSE_CUDA_BCSR_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ASPARSE_CUDA_BLOCK = 64 }; /* rows and columns of a block */

/* As asparse_bcsr with block_size 64 and dtype bf16, arrays on the device; borrowed. */
typedef struct asparse_cuda_bcsr {
  int32_t m, k;
  int32_t n_block_rows;         /* ⌈m / 64⌉ */
  int64_t n_blocks;             /* at most 2^25 - 1 */
  const int64_t *block_row_ptr; /* [n_block_rows + 1] */
  const int32_t *block_col_idx; /* [n_blocks], 0 … ⌈k / 64⌉ - 1 */
  const uint16_t *blocks;       /* [n_blocks · 64 · 64] bf16, row-major in a block, aligned to 16 bytes */
} asparse_cuda_bcsr;

/* The operands of one multiplication, on the device. */
typedef struct asparse_cuda_dense_pair {
  int64_t n;
  const uint16_t *b; /* [k × n] bf16, row-major */
  int64_t ldb;       /* ≥ n */
  float *c;          /* [m × n], row-major */
  int64_t ldc;       /* ≥ n */
} asparse_cuda_dense_pair;

/* The ladder: each step adds one technique to the step before. */

/* CUDA cores, tiles in shared memory. Any alignment. */
cudaError_t asparse_bcsr_scalar(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream);

/* + WGMMA: threads copy A and B into swizzled shared memory, tensor cores multiply. Any alignment of B. */
cudaError_t asparse_bcsr_wgmma(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream);

/* + TMA: the copy engine fills shared memory. b aligned to 16 bytes, ldb a multiple of 8. */
cudaError_t asparse_bcsr_tma(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream);

/* + warp specialisation: a producer fills a ring of stages, two consumer warpgroups multiply and store C through the
 * copy engine when c is aligned to 16 bytes and ldc is a multiple of 4. b and ldb as above. */
typedef struct asparse_bcsr_pipeline_config {
  int32_t tile_columns; /* of C per CTA: 128, 256, 384 or 512 */
  int32_t stages;       /* of the ring */
} asparse_bcsr_pipeline_config;

/* The pairs that are compiled, i in 0 … ASPARSE_BCSR_PIPELINE_CONFIGS - 1. Pure. */
enum { ASPARSE_BCSR_PIPELINE_CONFIGS = 8 };
asparse_bcsr_pipeline_config asparse_bcsr_pipeline_compiled(int i);

/* The tile with the least padding of n columns; among equals by blocks per block row (see the definition). Pure. */
asparse_bcsr_pipeline_config asparse_bcsr_pipeline_choose(const asparse_cuda_bcsr *a, int64_t n);

cudaError_t asparse_bcsr_pipeline(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc,
                                  asparse_bcsr_pipeline_config config, cudaStream_t stream);

/* Option: the pipeline (tile of 256 columns, 4 stages) with persistent CTAs. */
cudaError_t asparse_bcsr_persistent(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
