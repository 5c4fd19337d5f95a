/* cuBLAS: A as a dense matrix, zeros and all. */
#include <cublas_v2.h>

#include "base/memory.h"
#include "kernels/peer_rows.h"

/* The size NVIDIA recommends for Hopper; given here, so that a captured product allocates nothing. */
static const size_t WORKSPACE_BYTES = 32 << 20;

static asparse_status fail(cublasStatus_t error, const char *call, int line) {
  asparse_status code = error == CUBLAS_STATUS_NOT_SUPPORTED || error == CUBLAS_STATUS_INVALID_VALUE ? ASPARSE_ERR_USAGE
                        : error == CUBLAS_STATUS_ALLOC_FAILED ? ASPARSE_ERR_MEMORY
                                                              : ASPARSE_ERR_DEVICE;
  return asparse_fail(code, __FILE__, line, "cuBLAS: %s in %.40s", cublasGetStatusString(error), call);
}

#define PASS_CUBLAS(call)                                                                                              \
  do {                                                                                                                 \
    cublasStatus_t error_ = (call);                                                                                    \
    if (error_ != CUBLAS_STATUS_SUCCESS) return fail(error_, #call, __LINE__);                                         \
  } while (0)

asparse_status asparse_peer_cublas_open(asparse_peer_handles *handles) {
  cublasHandle_t handle = NULL;
  PASS_CUBLAS(cublasCreate(&handle));
  handles->cublas = handle;
  PASS(asparse_device_malloc(handles->device, WORKSPACE_BYTES, "cuBLAS's workspace", &handles->cublas_workspace));
  PASS_CUBLAS(cublasSetStream(handle, handles->device->stream));
  PASS_CUBLAS(cublasSetWorkspace(handle, handles->cublas_workspace, WORKSPACE_BYTES));
  return ASPARSE_OK;
}

void asparse_peer_cublas_close(asparse_peer_handles *handles) {
  if (handles->cublas) cublasDestroy(handles->cublas);
  asparse_device_free(handles->cublas_workspace);
}

/* Rows of A padded so that they start on a multiple of 16 bytes. */
static int64_t padded(int64_t k) { return (k + ASPARSE_PEER_ROWS - 1) / ASPARSE_PEER_ROWS * ASPARSE_PEER_ROWS; }

static int64_t stored_bytes(const asparse_shard *a) {
  return a->csr->m * padded(a->csr->k) * (int64_t)asparse_dtype_size(a->csr->dtype);
}

/* Zeros, then the entries from CSR arrays that are there for the time being. */
static asparse_status upload(const asparse_shard *a, asparse_peer_matrix *out) {
  asparse_status status = ASPARSE_OK;
  const asparse_local_csr *csr = a->csr;
  asparse_device *device = out->handles->device;
  const size_t size = asparse_dtype_size(csr->dtype), nnz = (size_t)csr->row_ptr[csr->m];
  int32_t *row_ptr = NULL;
  void *dense = NULL, *d_row_ptr = NULL, *d_col_idx = NULL, *d_values = NULL;
  out->m = csr->m;
  out->k = padded(csr->k);
  TRY_THAT(nnz <= INT32_MAX, ASPARSE_ERR_USAGE, "%zu entries exceed 32-bit pointers", nnz);
  TRY_THAT(csr->m > 0 && csr->k > 0, ASPARSE_ERR_USAGE, "an empty matrix");
  ALLOC(row_ptr, csr->m + INT64_C(1));
  for (int32_t i = 0; i <= csr->m; i++) row_ptr[i] = (int32_t)csr->row_ptr[i];
  TRY(asparse_peer_malloc(out, (size_t)stored_bytes(a), "dense A", &dense));
  TRY(asparse_device_malloc(device, ((size_t)csr->m + 1) * sizeof *row_ptr, "pointers", &d_row_ptr));
  TRY(asparse_device_malloc(device, nnz * sizeof *csr->col_idx, "columns", &d_col_idx));
  TRY(asparse_device_malloc(device, nnz * size, "values", &d_values));
  TRY(asparse_device_upload(device, d_row_ptr, row_ptr, ((size_t)csr->m + 1) * sizeof *row_ptr));
  TRY(asparse_device_upload(device, d_col_idx, csr->col_idx, nnz * sizeof *csr->col_idx));
  TRY(asparse_device_upload(device, d_values, csr->values, nnz * size));
  TRY_CUDA(cudaMemsetAsync(dense, 0, (size_t)stored_bytes(a), device->stream));
  TRY_CUDA(asparse_cuda_csr_to_dense(size, csr->m, d_row_ptr, d_col_idx, d_values, out->k, dense, device->stream));
  TRY(asparse_device_wait(device));
cleanup:
  asparse_free(row_ptr);
  asparse_device_free(d_row_ptr);
  asparse_device_free(d_col_idx);
  asparse_device_free(d_values);
  return status;
}

static asparse_status prepare(asparse_peer_matrix *a) {
  if (a->product.n > INT32_MAX || a->k > INT32_MAX)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "sizes exceed cuBLAS's 32-bit integers");
  return ASPARSE_OK;
}

static cudaDataType type_of(asparse_dtype dtype) {
  return dtype == ASPARSE_FP64 ? CUDA_R_64F : dtype == ASPARSE_FP32 ? CUDA_R_32F : CUDA_R_16BF;
}

/* Cᵀ = Bᵀ·Aᵀ, column-major. */
static asparse_status multiply(const asparse_peer_matrix *a) {
  static const float one32 = 1, zero32 = 0;
  static const double one64 = 1, zero64 = 0;
  const asparse_peer_product *p = &a->product;
  const bool wide = a->dtype == ASPARSE_FP64;
  const int n = (int)p->n, k = (int)a->k;
  const void *one = wide ? (const void *)&one64 : &one32, *zero = wide ? (const void *)&zero64 : &zero32;
  PASS_CUBLAS(cublasGemmEx(a->handles->cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, (int)a->m, k, one, p->b, type_of(a->dtype),
                           n, a->arrays[0], type_of(a->dtype), k, zero, p->c, type_of(p->c_dtype), n,
                           wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  return ASPARSE_OK;
}

static void release(asparse_peer_matrix *a) { (void)a; }

const asparse_peer asparse_peer_cublas_dense = {.name = "cublas-dense",
                                                .format = ASPARSE_FORMAT_CSR,
                                                .unit = 1,
                                                .stored_bytes = stored_bytes,
                                                .upload = upload,
                                                .prepare = prepare,
                                                .multiply = multiply,
                                                .release = release};
