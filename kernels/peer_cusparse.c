/* cuSPARSE: the generic cusparseSpMM on CSR (three algorithms), BSR and Blocked-ELL; row-major B and C. */
#include <cusparse.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/peer_rows.h"

/* What the library does not take is no failure of the run. */
static asparse_status fail(cusparseStatus_t error, const char *call, int line) {
  asparse_status code = ASPARSE_ERR_DEVICE;
  if (error == CUSPARSE_STATUS_NOT_SUPPORTED || error == CUSPARSE_STATUS_INVALID_VALUE ||
      error == CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED || error == CUSPARSE_STATUS_ARCH_MISMATCH)
    code = ASPARSE_ERR_USAGE;
  if (error == CUSPARSE_STATUS_ALLOC_FAILED || error == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES)
    code = ASPARSE_ERR_MEMORY;
  return asparse_fail(code, __FILE__, line, "cuSPARSE: %s in %.40s", cusparseGetErrorString(error), call);
}

#define PASS_CUSPARSE(call)                                                                                            \
  do {                                                                                                                 \
    cusparseStatus_t error_ = (call);                                                                                  \
    if (error_ != CUSPARSE_STATUS_SUCCESS) return fail(error_, #call, __LINE__);                                       \
  } while (0)

asparse_status asparse_peer_cusparse_open(asparse_peer_handles *handles) {
  cusparseHandle_t handle = NULL;
  PASS_CUSPARSE(cusparseCreate(&handle));
  handles->cusparse = handle;
  PASS_CUSPARSE(cusparseSetStream(handle, handles->device->stream));
  return ASPARSE_OK;
}

void asparse_peer_cusparse_close(asparse_peer_handles *handles) {
  if (handles->cusparse) cusparseDestroy(handles->cusparse);
}

static cudaDataType type_of(asparse_dtype dtype) {
  return dtype == ASPARSE_FP64 ? CUDA_R_64F : dtype == ASPARSE_FP32 ? CUDA_R_32F : CUDA_R_16BF;
}

/* ---- A ---------------------------------------------------------------------------------------- */

/* Pointers as 32-bit integers, the library's faster form. */
static asparse_status upload_pointers(const int64_t *ptr, int64_t count, asparse_peer_matrix *out, void **d) {
  asparse_status status = ASPARSE_OK;
  int32_t *narrow = NULL;
  TRY_THAT(ptr[count - 1] <= INT32_MAX, ASPARSE_ERR_USAGE, "%lld entries exceed 32-bit pointers",
           (long long)ptr[count - 1]);
  ALLOC(narrow, count);
  for (int64_t i = 0; i < count; i++) narrow[i] = (int32_t)ptr[i];
  TRY(asparse_peer_upload(out, narrow, (size_t)count * sizeof *narrow, "pointers", d));
cleanup:
  asparse_free(narrow);
  return status;
}

static int64_t csr_bytes(const asparse_shard *a) { return asparse_local_csr_bytes(a->csr); }

static asparse_status csr_upload(const asparse_shard *a, asparse_peer_matrix *out) {
  const asparse_local_csr *csr = a->csr;
  const int64_t nnz = csr->row_ptr[csr->m];
  void *row_ptr = NULL, *col_idx = NULL, *values = NULL;
  cusparseSpMatDescr_t desc = NULL;
  out->m = csr->m;
  out->k = csr->k;
  PASS(upload_pointers(csr->row_ptr, csr->m + INT64_C(1), out, &row_ptr));
  PASS(asparse_peer_upload(out, csr->col_idx, (size_t)nnz * sizeof *csr->col_idx, "columns", &col_idx));
  PASS(asparse_peer_upload(out, csr->values, (size_t)nnz * asparse_dtype_size(csr->dtype), "values", &values));
  PASS_CUSPARSE(cusparseCreateCsr(&desc, out->m, out->k, nnz, row_ptr, col_idx, values, CUSPARSE_INDEX_32I,
                                  CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type_of(csr->dtype)));
  out->a_desc = desc;
  return ASPARSE_OK;
}

static size_t block_bytes(const asparse_bcsr *a) {
  return (size_t)a->block_size * (size_t)a->block_size * asparse_dtype_size(a->dtype);
}

static int32_t block_columns(const asparse_bcsr *a) {
  return (int32_t)((a->k + INT64_C(0) + a->block_size - 1) / a->block_size);
}

static int64_t bsr_bytes(const asparse_shard *a) {
  return a->bcsr->block_row_ptr[a->bcsr->n_block_rows] * ((int64_t)block_bytes(a->bcsr) + 4);
}

static asparse_status bsr_upload(const asparse_shard *a, asparse_peer_matrix *out) {
  const asparse_bcsr *bcsr = a->bcsr;
  const int64_t n_blocks = bcsr->block_row_ptr[bcsr->n_block_rows], r = bcsr->block_size;
  void *row_ptr = NULL, *col_idx = NULL, *blocks = NULL;
  cusparseSpMatDescr_t desc = NULL;
  out->m = bcsr->n_block_rows * r;
  out->k = block_columns(bcsr) * r;
  PASS(upload_pointers(bcsr->block_row_ptr, bcsr->n_block_rows + INT64_C(1), out, &row_ptr));
  PASS(asparse_peer_upload(out, bcsr->block_col_idx, (size_t)n_blocks * sizeof *bcsr->block_col_idx, "block columns",
                           &col_idx));
  PASS(asparse_peer_upload(out, bcsr->blocks, (size_t)n_blocks * block_bytes(bcsr), "blocks", &blocks));
  PASS_CUSPARSE(cusparseCreateBsr(&desc, bcsr->n_block_rows, block_columns(bcsr), n_blocks, r, r, row_ptr, col_idx,
                                  blocks, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                  type_of(bcsr->dtype), CUSPARSE_ORDER_ROW));
  out->a_desc = desc;
  return ASPARSE_OK;
}

/* Blocked-ELL pads every block row to the longest one. */
static int64_t ell_width(const asparse_bcsr *a) {
  int64_t width = 0;
  for (int32_t i = 0; i < a->n_block_rows; i++) {
    const int64_t count = a->block_row_ptr[i + 1] - a->block_row_ptr[i];
    if (count > width) width = count;
  }
  return width;
}

static int64_t ell_bytes(const asparse_shard *a) {
  return ell_width(a->bcsr) * a->bcsr->n_block_rows * ((int64_t)block_bytes(a->bcsr) + 4);
}

/* The blocks of BSR, moved to their places on the device; column -1 marks the padding. */
static asparse_status ell_values(const asparse_bcsr *a, int64_t width, asparse_peer_matrix *out, void **values) {
  asparse_status status = ASPARSE_OK;
  asparse_device *device = out->handles->device;
  const size_t bytes = (size_t)(width * a->n_block_rows) * block_bytes(a), pointers = (size_t)a->n_block_rows + 1;
  const size_t blocks_bytes = (size_t)a->block_row_ptr[a->n_block_rows] * block_bytes(a);
  void *d_ptr = NULL, *d_blocks = NULL;
  TRY(asparse_peer_malloc(out, bytes, "Blocked-ELL", values));
  TRY(asparse_device_malloc(device, pointers * sizeof *a->block_row_ptr, "block pointers", &d_ptr));
  TRY(asparse_device_malloc(device, blocks_bytes, "blocks", &d_blocks));
  TRY(asparse_device_upload(device, d_ptr, a->block_row_ptr, pointers * sizeof *a->block_row_ptr));
  TRY(asparse_device_upload(device, d_blocks, a->blocks, blocks_bytes));
  TRY_CUDA(cudaMemsetAsync(*values, 0, bytes, device->stream));
  TRY_CUDA(asparse_cuda_bsr_to_ell(asparse_dtype_size(a->dtype), a->block_size, a->n_block_rows, width, d_ptr, d_blocks,
                                   *values, device->stream));
  TRY(asparse_device_wait(device));
cleanup:
  asparse_device_free(d_ptr);
  asparse_device_free(d_blocks);
  return status;
}

static asparse_status ell_upload(const asparse_shard *a, asparse_peer_matrix *out) {
  asparse_status status = ASPARSE_OK;
  const asparse_bcsr *bcsr = a->bcsr;
  const int64_t width = ell_width(bcsr), r = bcsr->block_size;
  int32_t *columns = NULL;
  void *d_columns = NULL, *values = NULL;
  cusparseSpMatDescr_t desc = NULL;
  TRY_THAT(width > 0, ASPARSE_ERR_USAGE, "no entries");
  /* Measured with cuSPARSE 12.6 on an H200: errors are a thousand times what fp32 sums can have. */
  TRY_THAT(bcsr->dtype != ASPARSE_FP32, ASPARSE_ERR_USAGE, "the library multiplies Blocked-ELL in less than fp32");
  out->m = bcsr->n_block_rows * r;
  out->k = block_columns(bcsr) * r;
  ALLOC(columns, width * bcsr->n_block_rows);
  memset(columns, 0xff, (size_t)(width * bcsr->n_block_rows) * sizeof *columns);
  for (int32_t i = 0; i < bcsr->n_block_rows; i++) {
    const int64_t first = bcsr->block_row_ptr[i], count = bcsr->block_row_ptr[i + 1] - first;
    if (count > 0) memcpy(columns + i * width, bcsr->block_col_idx + first, (size_t)count * sizeof *columns);
  }
  TRY(asparse_peer_upload(out, columns, (size_t)(width * bcsr->n_block_rows) * sizeof *columns, "block columns",
                          &d_columns));
  TRY(ell_values(bcsr, width, out, &values));
  const cusparseStatus_t error =
      cusparseCreateBlockedEll(&desc, out->m, out->k, r, width * r, d_columns, values, CUSPARSE_INDEX_32I,
                               CUSPARSE_INDEX_BASE_ZERO, type_of(bcsr->dtype));
  if (error != CUSPARSE_STATUS_SUCCESS) TRY(fail(error, "cusparseCreateBlockedEll", __LINE__));
  out->a_desc = desc;
cleanup:
  asparse_free(columns);
  return status;
}

/* ---- the product ------------------------------------------------------------------------------ */

static const float one32 = 1, zero32 = 0;
static const double one64 = 1, zero64 = 0;
static const void *one(asparse_dtype dtype) { return dtype == ASPARSE_FP64 ? (const void *)&one64 : &one32; }
static const void *zero(asparse_dtype dtype) { return dtype == ASPARSE_FP64 ? (const void *)&zero64 : &zero32; }
static cudaDataType compute_type(asparse_dtype dtype) { return type_of(asparse_dtype_result(dtype)); }

static void release_product(asparse_peer_matrix *a) {
  if (a->b_desc) cusparseDestroyDnMat(a->b_desc);
  if (a->c_desc) cusparseDestroyDnMat(a->c_desc);
  asparse_device_free(a->workspace);
  a->b_desc = a->c_desc = a->workspace = NULL;
}

static void release(asparse_peer_matrix *a) {
  release_product(a);
  if (a->a_desc) cusparseDestroySpMat(a->a_desc);
}

static asparse_status prepare(asparse_peer_matrix *a) {
  const asparse_peer_product *p = &a->product;
  const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
  const cusparseSpMMAlg_t algorithm = (cusparseSpMMAlg_t)a->peer->algorithm;
  cusparseDnMatDescr_t desc = NULL;
  size_t bytes = 0;
  release_product(a);
  PASS_CUSPARSE(cusparseCreateDnMat(&desc, a->k, p->n, p->n, (void *)p->b, type_of(a->dtype), CUSPARSE_ORDER_ROW));
  a->b_desc = desc;
  PASS_CUSPARSE(cusparseCreateDnMat(&desc, a->m, p->n, p->n, p->c, type_of(p->c_dtype), CUSPARSE_ORDER_ROW));
  a->c_desc = desc;
  PASS_CUSPARSE(cusparseSpMM_bufferSize(a->handles->cusparse, plain, plain, one(a->dtype), a->a_desc, a->b_desc,
                                        zero(a->dtype), a->c_desc, compute_type(a->dtype), algorithm, &bytes));
  PASS(asparse_device_malloc(a->handles->device, bytes, "cuSPARSE's workspace", &a->workspace));
  PASS_CUSPARSE(cusparseSpMM_preprocess(a->handles->cusparse, plain, plain, one(a->dtype), a->a_desc, a->b_desc,
                                        zero(a->dtype), a->c_desc, compute_type(a->dtype), algorithm, a->workspace));
  return ASPARSE_OK;
}

static asparse_status multiply(const asparse_peer_matrix *a) {
  const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
  PASS_CUSPARSE(cusparseSpMM(a->handles->cusparse, plain, plain, one(a->dtype), a->a_desc, a->b_desc, zero(a->dtype),
                             a->c_desc, compute_type(a->dtype), (cusparseSpMMAlg_t)a->peer->algorithm, a->workspace));
  return ASPARSE_OK;
}

#define ROW(peer_name, shard_format, block, number, kind)                                                              \
  {                                                                                                                    \
    .name = peer_name, .is_cusparse = true, .format = shard_format, .unit = block, .algorithm = number,                \
    .stored_bytes = kind##_bytes, .upload = kind##_upload, .prepare = prepare, .multiply = multiply,                   \
    .release = release                                                                                                 \
  }

const asparse_peer asparse_peer_cusparse_csr_1 =
    ROW("cusparse-csr-1", ASPARSE_FORMAT_CSR, 1, CUSPARSE_SPMM_CSR_ALG1, csr);
const asparse_peer asparse_peer_cusparse_csr_2 =
    ROW("cusparse-csr-2", ASPARSE_FORMAT_CSR, 1, CUSPARSE_SPMM_CSR_ALG2, csr);
const asparse_peer asparse_peer_cusparse_csr_3 =
    ROW("cusparse-csr-3", ASPARSE_FORMAT_CSR, 1, CUSPARSE_SPMM_CSR_ALG3, csr);
const asparse_peer asparse_peer_cusparse_bsr_16 =
    ROW("cusparse-bsr", ASPARSE_FORMAT_BCSR, 16, CUSPARSE_SPMM_BSR_ALG1, bsr);
const asparse_peer asparse_peer_cusparse_bsr_32 =
    ROW("cusparse-bsr", ASPARSE_FORMAT_BCSR, 32, CUSPARSE_SPMM_BSR_ALG1, bsr);
const asparse_peer asparse_peer_cusparse_bsr_64 =
    ROW("cusparse-bsr", ASPARSE_FORMAT_BCSR, 64, CUSPARSE_SPMM_BSR_ALG1, bsr);
const asparse_peer asparse_peer_cusparse_ell_16 =
    ROW("cusparse-ell", ASPARSE_FORMAT_BCSR, 16, CUSPARSE_SPMM_BLOCKED_ELL_ALG1, ell);
const asparse_peer asparse_peer_cusparse_ell_32 =
    ROW("cusparse-ell", ASPARSE_FORMAT_BCSR, 32, CUSPARSE_SPMM_BLOCKED_ELL_ALG1, ell);
const asparse_peer asparse_peer_cusparse_ell_64 =
    ROW("cusparse-ell", ASPARSE_FORMAT_BCSR, 64, CUSPARSE_SPMM_BLOCKED_ELL_ALG1, ell);
