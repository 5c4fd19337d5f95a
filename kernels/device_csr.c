/* CSR on the GPU: the row of the table, over cuda_csr.h. */
#include "base/memory.h"
#include "kernels/device_kernels.h"

static asparse_status upload_long_rows(const asparse_local_csr *csr, asparse_device_shard *out) {
  asparse_status status = ASPARSE_OK;
  const int32_t long_row = asparse_cuda_csr_long_row(csr->m, csr->row_ptr);
  int32_t n = asparse_cuda_csr_long_rows(csr->m, csr->row_ptr, long_row, NULL), *rows = NULL;
  void *d = NULL;
  ALLOC(rows, n);
  asparse_cuda_csr_long_rows(csr->m, csr->row_ptr, long_row, rows);
  TRY(asparse_device_shard_upload(out, rows, (size_t)n * sizeof *rows, "long rows", &d));
  out->as.csr.long_row = long_row;
  out->as.csr.n_long_rows = n;
  out->as.csr.long_rows = d;
cleanup:
  asparse_free(rows);
  return status;
}

/* Where most rows are empty: those that are not. */
static asparse_status upload_used_rows(const asparse_local_csr *csr, asparse_device_shard *out) {
  asparse_status status = ASPARSE_OK;
  int32_t n = 0, *rows = NULL;
  void *d = NULL;
  for (int32_t i = 0; i < csr->m; i++) n += csr->row_ptr[i] < csr->row_ptr[i + 1];
  if (n == 0 || n >= csr->m / 2) return ASPARSE_OK;
  ALLOC(rows, n);
  n = 0;
  for (int32_t i = 0; i < csr->m; i++)
    if (csr->row_ptr[i] < csr->row_ptr[i + 1]) rows[n++] = i;
  TRY(asparse_device_shard_upload(out, rows, (size_t)n * sizeof *rows, "rows with entries", &d));
  out->as.csr.n_used_rows = n;
  out->as.csr.used_rows = d;
cleanup:
  asparse_free(rows);
  return status;
}

static asparse_status upload(const asparse_shard *a, asparse_device_shard *out) {
  const asparse_local_csr *csr = a->csr;
  const int64_t nnz = csr->row_ptr[csr->m];
  void *values = NULL;
  out->as.csr = (asparse_cuda_csr){.m = csr->m, .k = csr->k, .dtype = csr->dtype};
  PASS_UPLOAD(out, out->as.csr.row_ptr, csr->row_ptr, csr->m + INT64_C(1));
  PASS_UPLOAD(out, out->as.csr.col_idx, csr->col_idx, nnz);
  PASS(asparse_device_shard_upload(out, csr->values, (size_t)nnz * asparse_dtype_size(csr->dtype), "values", &values));
  out->as.csr.values = values;
  PASS(upload_long_rows(csr, out));
  return upload_used_rows(csr, out);
}

static cudaError_t multiply(const asparse_device_shard *a, const asparse_device_product *p, cudaStream_t stream) {
  return asparse_cuda_csr_multiply(&a->as.csr, p->n, p->b, p->ldb, p->c_dtype, p->c, p->ldc, p->accumulate, stream);
}

const asparse_device_kernel asparse_device_csr = {.name = "csr",
                                                  .format = ASPARSE_FORMAT_CSR,
                                                  .units = {1},
                                                  .automatic = true,
                                                  .upload = upload,
                                                  .multiply = multiply};
