/* TMA descriptors (tensor maps) of the BCSR kernels and of WCSR windows. Encoding is host arithmetic: no allocation, no
 * device call. cuTensorMapEncodeTiled is looked up in the driver at run time, so that nothing links libcuda. */
#ifndef ASPARSE_BCSR_TENSOR_MAPS_H
#define ASPARSE_BCSR_TENSOR_MAPS_H

#include <cuda.h>

#include "kernels/cuda_bcsr.h"

/* Whether the copy engine can address the matrix: base aligned to 16 bytes, row pitch a multiple of 16 bytes below
 * 2^40, rows and columns at most 2^31 - 1 (the coordinates are int32). */
bool asparse_tma_can_address(const void *base, int64_t rows, int64_t columns, int64_t pitch_bytes);

/* blocks as [n_blocks · 64 × 64] bf16, box of box_rows × 64, 128-byte swizzle. n_blocks ≥ 1. */
cudaError_t asparse_bcsr_map_blocks(CUtensorMap *map, const asparse_cuda_bcsr *a, uint32_t box_rows);
/* B [k × n] bf16, box 64 rows × 64 columns, 128-byte swizzle; zeros outside. */
cudaError_t asparse_bcsr_map_b(CUtensorMap *map, int64_t k, const asparse_cuda_dense_pair *bc);
/* C [m × n] of c_dtype, box 64 rows × 128 bytes, 128-byte swizzle. */
cudaError_t asparse_bcsr_map_c(CUtensorMap *map, int64_t m, const asparse_cuda_dense_pair *bc);

/* WCSR values of 64-row windows, [n_tiles · 64 × 16] bf16, box of 4 tiles, 32-byte swizzle. n_tiles ≥ 1. */
cudaError_t asparse_wcsr_map_values(CUtensorMap *map, const uint16_t *values, int64_t n_tiles);

#endif
