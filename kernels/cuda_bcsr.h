/* C = A·B or C += A·B on one Hopper GPU (sm_90a), A in 64 × 64 blocks. bf16 A and B, fp32 accumulation, C in fp32 or
 * bf16.
 *
 * Every launcher only enqueues on the stream: it allocates nothing, waits for nothing and can be captured into a
 * CUDA graph. Without accumulate C is overwritten, also over NaN. Only rows of B that stored blocks touch are read.
 * Blocks are multiplied in full; where a zero that is mere padding meets Inf or NaN of B, the element is computed again
 * from stored entries, so that the result is what CSR arithmetic gives. The order of a row's sum is fixed by the matrix
 * and n: the result does not depend on timing. C is rounded once, after adding what was there.
 * Errors: cudaErrorInvalidValue for shapes and types that cannot be used, cudaErrorMisalignedAddress for pointers or
 * leading dimensions that are not aligned as said below, otherwise the error of the launch. */
#ifndef ASPARSE_CUDA_BCSR_H
#define ASPARSE_CUDA_BCSR_H

#include <cuda_runtime_api.h>

#include "kernels/bcsr_groups.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ASPARSE_CUDA_BLOCK = 64 };     /* rows and columns of a block */
enum { ASPARSE_BCSR_GROUP_ROWS = 2 }; /* block rows of the groups to build; tiles of 3 spill */

/* As asparse_bcsr with block_size 64 and dtype bf16, arrays on the device; borrowed. */
typedef struct asparse_cuda_bcsr {
  int32_t m, k;
  int32_t n_block_rows;         /* ⌈m / 64⌉ */
  int64_t n_blocks;             /* at most 2^25 - 1 */
  const int64_t *block_row_ptr; /* [n_block_rows + 1] */
  const int32_t *block_col_idx; /* [n_blocks], 0 … ⌈k / 64⌉ - 1, increasing in each block row */
  const uint64_t *entry_mask;   /* [n_blocks · 64], bit c set: A stores (row, c) of the block */
  const uint16_t *blocks;       /* [n_blocks · 64 · 64] bf16, row-major in a block, aligned to 16 bytes */
  asparse_bcsr_groups groups;   /* arrays on the device, steps aligned to 16 bytes; rows 0: none */
} asparse_cuda_bcsr;

/* The operands of one multiplication, on the device. */
typedef struct asparse_cuda_dense_pair {
  int64_t n;
  const uint16_t *b;     /* [k × n] bf16, row-major */
  int64_t ldb;           /* ≥ n */
  void *c;               /* [m × n] of c_dtype, row-major, aligned to an element */
  int64_t ldc;           /* ≥ n */
  asparse_dtype c_dtype; /* fp32 or bf16 */
  bool accumulate;       /* C += A·B */
} asparse_cuda_dense_pair;

typedef cudaError_t asparse_bcsr_launcher(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc,
                                          cudaStream_t stream);

/* Whatever is fastest for these operands. Any alignment. */
asparse_bcsr_launcher asparse_bcsr_multiply;

/* The ladder: each step adds one technique to the step before. */

/* CUDA cores, tiles in shared memory. Any alignment. */
asparse_bcsr_launcher asparse_bcsr_scalar;

/* + WGMMA: threads copy A and B into swizzled shared memory, tensor cores multiply. Any alignment. */
asparse_bcsr_launcher asparse_bcsr_wgmma;

/* + TMA: the copy engine fills shared memory. b aligned to 16 bytes, ldb a multiple of 8. */
asparse_bcsr_launcher asparse_bcsr_tma;

/* + warp specialisation: a producer warp fills a ring of stages, consumer warpgroups multiply and store. b and ldb as
 * above. C passes through the copy engine when its rows are whole multiples of 16 bytes and it is not bf16 that is
 * accumulated to. The options may be combined as far as they are compiled. */
typedef struct asparse_bcsr_pipeline_config {
  int32_t tile_rows;    /* block rows of a tile, which share slices of B: 1, or rows of a's groups */
  int32_t tile_columns; /* of C per CTA */
  int32_t stages;       /* of the ring */
  int32_t cluster;      /* CTAs, neighbours along the columns, that share a block of A by multicast */
  int32_t shares;       /* CTAs of a cluster that take some blocks of a tile each, where tiles are too few; else 1 */
  bool persistent;      /* as many CTAs as fit; the next tile is loaded while the last one is stored */
} asparse_bcsr_pipeline_config;

/* The configurations that are compiled, i in 0 … ASPARSE_BCSR_PIPELINE_CONFIGS - 1. Pure. */
enum { ASPARSE_BCSR_PIPELINE_CONFIGS = 12 };
asparse_bcsr_pipeline_config asparse_bcsr_pipeline_compiled(int i);

/* A good configuration for n columns of C (see the definition). Pure. */
asparse_bcsr_pipeline_config asparse_bcsr_pipeline_choose(const asparse_cuda_bcsr *a, int64_t n);

/* cudaErrorInvalidValue where config is not compiled or a has no such groups. */
cudaError_t asparse_bcsr_pipeline(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc,
                                  asparse_bcsr_pipeline_config config, cudaStream_t stream);

/* The steps and options by name, for benchmarks and tests. */
typedef struct asparse_bcsr_variant {
  const char *name;     /* "scalar", "wgmma", "tma", "pipeline", "multicast", "persistent", "grouped" */
  bool needs_aligned_b; /* b to 16 bytes, ldb a multiple of 8 */
  bool needs_groups;    /* of ASPARSE_BCSR_GROUP_ROWS */
  asparse_bcsr_launcher *multiply;
} asparse_bcsr_variant;

enum { ASPARSE_BCSR_STEPS = 7 };
extern const asparse_bcsr_variant asparse_bcsr_ladder[ASPARSE_BCSR_STEPS];

#ifdef __cplusplus
}
#endif
#endif
