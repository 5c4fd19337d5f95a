/* BCSR on the GPU: the rungs of the ladder as rows of the table, over cuda_bcsr.h. */
#include "kernels/device_kernels.h"

static asparse_status upload_groups(const asparse_bcsr_groups *groups, asparse_device_shard *out) {
  asparse_bcsr_groups *to = &out->as.bcsr.groups;
  to->n_groups = groups->n_groups;
  to->n_steps = groups->n_steps;
  PASS_UPLOAD(out, to->block_rows, groups->block_rows, (int64_t)groups->n_groups * groups->rows);
  PASS_UPLOAD(out, to->step_ptr, groups->step_ptr, groups->n_groups + INT64_C(1));
  PASS_UPLOAD(out, to->steps, groups->steps, groups->n_steps);
  to->rows = groups->rows;
  return ASPARSE_OK;
}

static asparse_status upload(const asparse_shard *a, asparse_device_shard *out) {
  asparse_status status = ASPARSE_OK;
  asparse_bcsr_groups *groups = NULL;
  const asparse_bcsr *bcsr = a->bcsr;
  const int64_t block = ASPARSE_CUDA_BLOCK, n_blocks = bcsr->block_row_ptr[bcsr->n_block_rows];
  asparse_cuda_bcsr *to = &out->as.bcsr;
  *to = (asparse_cuda_bcsr){.m = bcsr->m, .k = bcsr->k, .n_block_rows = bcsr->n_block_rows, .n_blocks = n_blocks};
  PASS_UPLOAD(out, to->block_row_ptr, bcsr->block_row_ptr, bcsr->n_block_rows + INT64_C(1));
  PASS_UPLOAD(out, to->block_col_idx, bcsr->block_col_idx, n_blocks);
  PASS_UPLOAD(out, to->entry_mask, bcsr->entry_mask, n_blocks * block);
  PASS_UPLOAD(out, to->blocks, (const uint16_t *)bcsr->blocks, n_blocks * block * block);
  TRY(asparse_bcsr_groups_build(bcsr, ASPARSE_BCSR_GROUP_ROWS, &groups));
  TRY(upload_groups(groups, out));
cleanup:
  asparse_bcsr_groups_destroy(&groups);
  return status;
}

/* The copy engine needs rows of B that start on 16 bytes; other operands take the threads' copies. */
static bool tma_can_read(const asparse_device_product *p) { return p->ldb % 8 == 0 && (uintptr_t)p->b % 16 == 0; }

static cudaError_t run(const asparse_bcsr_variant *step, const asparse_device_shard *a, const asparse_device_product *p,
                       cudaStream_t stream) {
  const asparse_cuda_dense_pair bc = {.n = p->n,
                                      .b = p->b,
                                      .ldb = p->ldb,
                                      .c = p->c,
                                      .ldc = p->ldc,
                                      .c_dtype = p->c_dtype,
                                      .accumulate = p->accumulate};
  if (!step) return asparse_bcsr_multiply(&a->as.bcsr, &bc, stream);
  if (step->needs_aligned_b && !tma_can_read(p)) return asparse_bcsr_wgmma(&a->as.bcsr, &bc, stream);
  return step->multiply(&a->as.bcsr, &bc, stream);
}

/* A launcher and its row. */
#define ROW(id, kernel_name, picked, step)                                                                             \
  static cudaError_t id(const asparse_device_shard *a, const asparse_device_product *p, cudaStream_t stream) {         \
    return run((step), a, p, stream);                                                                                  \
  }                                                                                                                    \
  const asparse_device_kernel asparse_device_bcsr_##id = {.name = kernel_name,                                         \
                                                          .format = ASPARSE_FORMAT_BCSR,                               \
                                                          .units = {ASPARSE_CUDA_BLOCK},                               \
                                                          .automatic = picked,                                         \
                                                          .bf16_only = true,                                           \
                                                          .upload = upload,                                            \
                                                          .multiply = id};

ROW(chosen, "bcsr", true, NULL)
ROW(scalar, "bcsr-scalar", false, &asparse_bcsr_ladder[0])
ROW(wgmma, "bcsr-wgmma", false, &asparse_bcsr_ladder[1])
ROW(tma, "bcsr-tma", false, &asparse_bcsr_ladder[2])
ROW(pipeline, "bcsr-pipeline", false, &asparse_bcsr_ladder[3])
ROW(multicast, "bcsr-multicast", false, &asparse_bcsr_ladder[4])
ROW(persistent, "bcsr-persistent", false, &asparse_bcsr_ladder[5])
ROW(grouped, "bcsr-grouped", false, &asparse_bcsr_ladder[6])
