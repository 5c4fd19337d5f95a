/* CSR with B resident in shared memory on the GPU: the row of the table, over cuda_sell.h. */
#include "kernels/device_kernels.h"

static int64_t longest_row(const asparse_local_csr *csr) {
  int64_t longest = 0;
  for (int32_t i = 0; i < csr->m; i++) {
    if (csr->row_ptr[i + 1] - csr->row_ptr[i] > longest) longest = csr->row_ptr[i + 1] - csr->row_ptr[i];
  }
  return longest;
}

static asparse_status upload_sell(const asparse_sell *sell, int32_t row_groups, asparse_device_shard *out) {
  const int64_t n_loaded = sell->n_stored + INT64_C(2) * sell->height * ASPARSE_SELL_QUAD;
  asparse_cuda_sell *to = &out->as.sell;
  *to = (asparse_cuda_sell){.m = sell->m,
                            .k = sell->k,
                            .columns = sell->columns,
                            .height = sell->height,
                            .n_slices = sell->n_slices,
                            .row_groups = row_groups};
  PASS_UPLOAD(out, to->slices, sell->slices, sell->n_slices);
  PASS_UPLOAD(out, to->rows, sell->rows, (int64_t)sell->n_slices * sell->height);
  PASS_UPLOAD(out, to->entries, sell->entries, n_loaded);
  return ASPARSE_OK;
}

static asparse_status upload(const asparse_shard *a, asparse_device_shard *out) {
  asparse_status status = ASPARSE_OK;
  asparse_sell *sell = NULL;
  const asparse_sell_profile profile = {a->csr->m, a->csr->k, a->csr->row_ptr[a->csr->m], longest_row(a->csr)};
  const asparse_sell_config config = asparse_sell_choose(&profile, out->n, out->device->multiprocessors);
  TRY_THAT(config.columns > 0, ASPARSE_ERR_USAGE,
           "GPU kernel csr-resident keeps columns of B in shared memory, which holds %d rows; this shard has %d "
           "columns: use another kernel or more ranks",
           asparse_sell_most_k(8), a->csr->k);
  TRY(asparse_sell_build(a->csr, config.columns, config.most_steps, &sell));
  TRY(upload_sell(sell, config.row_groups, out));
cleanup:
  asparse_sell_destroy(&sell);
  return status;
}

static cudaError_t multiply(const asparse_device_shard *a, const asparse_device_product *p, cudaStream_t stream) {
  return asparse_cuda_sell_multiply(&a->as.sell, p->n, p->b, p->ldb, p->c_dtype, p->c, p->ldc, p->accumulate, stream);
}

const asparse_device_kernel asparse_device_csr_resident = {.name = "csr-resident",
                                                           .format = ASPARSE_FORMAT_CSR,
                                                           .units = {1},
                                                           .automatic = true,
                                                           .bf16_only = true,
                                                           .upload = upload,
                                                           .multiply = multiply};
