/* WCSR on the GPU: the rows of the table, over cuda_wcsr.h and cuda_wcsr_atomics.h. */
#include "kernels/cuda_wcsr_atomics.h"
#include "kernels/device_kernels.h"

static asparse_status upload_windows(const asparse_wcsr *wcsr, asparse_device_shard *out) {
  const int64_t n_columns = wcsr->window_row_ptr[wcsr->n_windows];
  asparse_cuda_wcsr *to = &out->as.wcsr;
  *to = (asparse_cuda_wcsr){
      .m = wcsr->m, .k = wcsr->k, .window_height = wcsr->window_height, .n_tiles = n_columns / ASPARSE_TILE_COLUMNS};
  PASS_UPLOAD(out, to->window_col_idx, wcsr->window_col_idx, n_columns);
  PASS_UPLOAD(out, to->row_mask, wcsr->row_mask, n_columns);
  PASS_UPLOAD(out, to->values, (const uint16_t *)wcsr->values, n_columns * wcsr->window_height);
  if (wcsr->row_map) PASS_UPLOAD(out, to->row_map, wcsr->row_map, wcsr->m);
  return ASPARSE_OK;
}

static asparse_status upload_groups(const asparse_wcsr_groups *groups, asparse_device_shard *out) {
  asparse_cuda_wcsr *to = &out->as.wcsr;
  const size_t counters = (size_t)groups->n_splits * (size_t)((out->n + 63) / 64) * sizeof *to->arrived;
  void *arrived = NULL;
  to->groups = *groups;
  PASS_UPLOAD(out, to->groups.shares, groups->shares, groups->n_groups * (int64_t)ASPARSE_WCSR_WARPS);
  PASS_UPLOAD(out, to->groups.splits, groups->splits, groups->n_splits);
  PASS_UPLOAD(out, to->groups.slot_split, groups->slot_split, groups->n_slots);
  PASS(asparse_device_shard_malloc(out, counters, "counters of split windows", &arrived));
  if (arrived) PASS_CUDA(cudaMemsetAsync(arrived, 0, counters, out->device->stream));
  to->arrived = arrived;
  return asparse_device_shard_malloc(out, asparse_cuda_wcsr_workspace(to, out->n), "workspace of split windows",
                                     &out->workspace);
}

static asparse_status upload_gather(const asparse_shard *a, asparse_device_shard *out) {
  asparse_status status = ASPARSE_OK;
  asparse_wcsr_groups *groups = NULL;
  TRY(upload_windows(a->wcsr, out));
  TRY(asparse_wcsr_groups_build(a->wcsr, asparse_wcsr_limits_for(out->as.wcsr.n_tiles, a->wcsr->window_height, out->n),
                                &groups));
  TRY(upload_groups(groups, out));
cleanup:
  asparse_wcsr_groups_destroy(&groups);
  return status;
}

static asparse_status upload_tasks(const asparse_wcsr_work *work, asparse_device_shard *out) {
  asparse_cuda_wcsr *to = &out->as.wcsr;
  to->work = *work;
  PASS_UPLOAD(out, to->work.tasks, work->tasks, work->n_tasks);
  PASS_UPLOAD(out, to->work.splits, work->splits, work->n_splits);
  return ASPARSE_OK;
}

static asparse_status upload_atomics(const asparse_shard *a, asparse_device_shard *out) {
  asparse_status status = ASPARSE_OK;
  asparse_wcsr_work *work = NULL;
  TRY(upload_windows(a->wcsr, out));
  TRY(asparse_wcsr_work_build(a->wcsr, ASPARSE_CUDA_WCSR_TILES_PER_TASK, &work));
  TRY(upload_tasks(work, out));
cleanup:
  asparse_wcsr_work_destroy(&work);
  return status;
}

static cudaError_t gather(const asparse_device_shard *a, const asparse_device_product *p, cudaStream_t stream) {
  return asparse_cuda_wcsr_multiply(&a->as.wcsr, p->n, p->b, p->ldb, p->c_dtype, p->c, p->ldc, p->accumulate,
                                    a->workspace, stream);
}

static cudaError_t atomics(const asparse_device_shard *a, const asparse_device_product *p, cudaStream_t stream) {
  if (p->c_dtype != ASPARSE_FP32) return cudaErrorNotSupported;
  return asparse_cuda_wcsr_atomics_multiply(&a->as.wcsr, p->n, p->b, p->ldb, p->c, p->ldc, p->accumulate, 0, stream);
}

const asparse_device_kernel asparse_device_wcsr_gather = {.name = "wcsr-gather",
                                                          .format = ASPARSE_FORMAT_WCSR,
                                                          .units = {8, 16, 32, 64},
                                                          .automatic = true,
                                                          .bf16_only = true,
                                                          .upload = upload_gather,
                                                          .multiply = gather};

/* The same over rows that were brought together by the columns they share. */
const asparse_device_kernel asparse_device_wcsr_clustered = {.name = "wcsr-clustered",
                                                             .format = ASPARSE_FORMAT_WCSR,
                                                             .units = {8, 16, 32, 64},
                                                             .automatic = true,
                                                             .clustered = true,
                                                             .bf16_only = true,
                                                             .upload = upload_gather,
                                                             .multiply = gather};

/* The published method. Not bitwise the same from run to run where windows are split; C in fp32 only. */
const asparse_device_kernel asparse_device_wcsr_atomics = {.name = "wcsr-atomics",
                                                           .format = ASPARSE_FORMAT_WCSR,
                                                           .units = {64},
                                                           .automatic = false,
                                                           .bf16_only = true,
                                                           .upload = upload_atomics,
                                                           .multiply = atomics};
