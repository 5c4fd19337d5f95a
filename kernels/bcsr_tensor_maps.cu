#include "kernels/bcsr_tensor_maps.h"

#include <cudaTypedefs.h>

/* The driver's cuTensorMapEncodeTiled, looked up once; null when the driver has none. */
static PFN_cuTensorMapEncodeTiled_v12000 encode_function() {
  static const PFN_cuTensorMapEncodeTiled_v12000 function = [] {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) found = nullptr;
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(found);
  }();
  return function;
}

bool asparse_tma_can_address(const void *base, int64_t rows, int64_t columns, int64_t pitch_bytes) {
  return reinterpret_cast<uintptr_t>(base) % 16 == 0 && pitch_bytes % 16 == 0 && pitch_bytes < int64_t{1} << 40 &&
         rows >= 1 && rows <= INT32_MAX && columns >= 1 && columns <= INT32_MAX;
}

/* A row-major matrix in boxes of box_rows rows, each as wide as the swizzle. */
static cudaError_t encode(CUtensorMap *map, CUtensorMapDataType type, const void *base, int64_t rows, int64_t columns,
                          int64_t pitch_bytes, uint32_t box_rows, uint32_t box_columns,
                          CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B) {
  if (!encode_function()) return cudaErrorSymbolNotFound;
  cuuint64_t size[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  cuuint64_t pitch[1] = {static_cast<cuuint64_t>(pitch_bytes)};
  cuuint32_t box[2] = {box_columns, box_rows};
  cuuint32_t step[2] = {1, 1};
  CUresult result =
      encode_function()(map, type, 2, const_cast<void *>(base), size, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                        swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t asparse_bcsr_map_blocks(CUtensorMap *map, const asparse_cuda_bcsr *a, uint32_t box_rows) {
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, a->blocks, a->n_blocks * ASPARSE_CUDA_BLOCK, ASPARSE_CUDA_BLOCK,
                ASPARSE_CUDA_BLOCK * int64_t{sizeof(uint16_t)}, box_rows, 64);
}

cudaError_t asparse_bcsr_map_b(CUtensorMap *map, int64_t k, const asparse_cuda_dense_pair *bc) {
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, bc->b, k, bc->n, bc->ldb * int64_t{sizeof(uint16_t)},
                ASPARSE_CUDA_BLOCK, 64);
}

cudaError_t asparse_bcsr_map_c(CUtensorMap *map, int64_t m, const asparse_cuda_dense_pair *bc) {
  if (bc->c_dtype == ASPARSE_BF16)
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, bc->c, m, bc->n, bc->ldc * int64_t{sizeof(uint16_t)},
                  ASPARSE_CUDA_BLOCK, 64);
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, bc->c, m, bc->n, bc->ldc * int64_t{sizeof(float)},
                ASPARSE_CUDA_BLOCK, 32);
}

cudaError_t asparse_wcsr_map_values(CUtensorMap *map, const uint16_t *values, int64_t n_tiles) {
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, values, n_tiles * 64, 16, 16 * int64_t{sizeof(uint16_t)}, 4 * 64,
                16, CU_TENSOR_MAP_SWIZZLE_32B);
}
