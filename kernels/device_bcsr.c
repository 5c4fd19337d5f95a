/* BCSR on the GPU: the rungs of the ladder as rows of the table, over cuda_bcsr.h. */
#include "kernels/device_kernels.h"

static asparse_status upload(const asparse_shard *a, asparse_device_shard *out) {
  const asparse_bcsr *bcsr = a->bcsr;
  const int64_t n_blocks = bcsr->block_row_ptr[bcsr->n_block_rows];
  asparse_cuda_bcsr *to = &out->as.bcsr;
  *to = (asparse_cuda_bcsr){.m = bcsr->m, .k = bcsr->k, .n_block_rows = bcsr->n_block_rows, .n_blocks = n_blocks};
  PASS_UPLOAD(out, to->block_row_ptr, bcsr->block_row_ptr, bcsr->n_block_rows + INT64_C(1));
  PASS_UPLOAD(out, to->block_col_idx, bcsr->block_col_idx, n_blocks);
  PASS_UPLOAD(out, to->blocks, (const uint16_t *)bcsr->blocks, n_blocks * ASPARSE_CUDA_BLOCK * ASPARSE_CUDA_BLOCK);
  return ASPARSE_OK;
}

static asparse_cuda_dense_pair operands(const asparse_device_product *p) {
  return (asparse_cuda_dense_pair){.n = p->n, .b = p->b, .ldb = p->ldb, .c = p->c, .ldc = p->ldc};
}

static cudaError_t scalar(const asparse_device_shard *a, const asparse_device_product *p, cudaStream_t stream) {
  const asparse_cuda_dense_pair bc = operands(p);
  return asparse_bcsr_scalar(&a->as.bcsr, &bc, stream);
}

static cudaError_t wgmma(const asparse_device_shard *a, const asparse_device_product *p, cudaStream_t stream) {
  const asparse_cuda_dense_pair bc = operands(p);
  return asparse_bcsr_wgmma(&a->as.bcsr, &bc, stream);
}

/* The copy engine needs rows of B that start on 16 bytes; other operands take the threads' copies. */
static bool tma_can_read(const asparse_device_product *p) { return p->ldb % 8 == 0 && (uintptr_t)p->b % 16 == 0; }

static cudaError_t tma(const asparse_device_shard *a, const asparse_device_product *p, cudaStream_t stream) {
  if (!tma_can_read(p)) return wgmma(a, p, stream);
  const asparse_cuda_dense_pair bc = operands(p);
  return asparse_bcsr_tma(&a->as.bcsr, &bc, stream);
}

static cudaError_t pipeline(const asparse_device_shard *a, const asparse_device_product *p, cudaStream_t stream) {
  if (!tma_can_read(p)) return wgmma(a, p, stream);
  const asparse_cuda_dense_pair bc = operands(p);
  return asparse_bcsr_pipeline(&a->as.bcsr, &bc, asparse_bcsr_pipeline_choose(&a->as.bcsr, p->n), stream);
}

static cudaError_t persistent(const asparse_device_shard *a, const asparse_device_product *p, cudaStream_t stream) {
  if (!tma_can_read(p)) return wgmma(a, p, stream);
  const asparse_cuda_dense_pair bc = operands(p);
  return asparse_bcsr_persistent(&a->as.bcsr, &bc, stream);
}

#define ROW(kernel_name, picked, launcher)                                                                             \
  {                                                                                                                    \
    .name = kernel_name, .format = ASPARSE_FORMAT_BCSR, .units = {ASPARSE_CUDA_BLOCK}, .automatic = picked,            \
    .bf16_only = true, .upload = upload, .multiply = launcher                                                          \
  }

const asparse_device_kernel asparse_device_bcsr_scalar = ROW("bcsr-scalar", false, scalar);
const asparse_device_kernel asparse_device_bcsr_wgmma = ROW("bcsr-wgmma", false, wgmma);
const asparse_device_kernel asparse_device_bcsr_tma = ROW("bcsr-tma", false, tma);
const asparse_device_kernel asparse_device_bcsr_pipeline = ROW("bcsr-pipeline", true, pipeline);
const asparse_device_kernel asparse_device_bcsr_persistent = ROW("bcsr-persistent", false, persistent);
