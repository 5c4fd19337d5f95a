#include "kernels/device_shard.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

asparse_status asparse_device_kernel_find(const char *name, const asparse_device_kernel **kernel) {
  char names[512] = "";
  for (int i = 0; asparse_device_kernels[i]; i++) {
    if (strcmp(asparse_device_kernels[i]->name, name) == 0) {
      *kernel = asparse_device_kernels[i];
      return ASPARSE_OK;
    }
    size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", asparse_device_kernels[i]->name);
  }
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "there is no GPU kernel '%s'; there are %s", name, names);
}

bool asparse_device_kernel_takes(const asparse_device_kernel *kernel, const asparse_shard *a) {
  if (kernel->format != a->format) return false;
  if (kernel->bf16_only && asparse_shard_dtype(a) != ASPARSE_BF16) return false;
  if (kernel->clustered != (a->wcsr && a->wcsr->row_map)) return false;
  for (int i = 0; kernel->units[i]; i++) {
    if (kernel->units[i] == asparse_shard_row_unit(a)) return true;
  }
  return false;
}

asparse_status asparse_device_shard_malloc(asparse_device_shard *out, size_t bytes, const char *what, void **d) {
  if (out->n_arrays == ASPARSE_DEVICE_ARRAYS)
    return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "a shard on the GPU has at most %d arrays", ASPARSE_DEVICE_ARRAYS);
  PASS(asparse_device_malloc(out->device, bytes, what, d));
  out->arrays[out->n_arrays++] = *d;
  out->bytes += (int64_t)bytes;
  return ASPARSE_OK;
}

asparse_status asparse_device_shard_upload(asparse_device_shard *out, const void *h, size_t bytes, const char *what,
                                           void **d) {
  PASS(asparse_device_shard_malloc(out, bytes, what, d));
  return asparse_device_upload(out->device, *d, h, bytes);
}

asparse_status asparse_device_shard_create(asparse_device *device, const asparse_device_kernel *kernel,
                                           const asparse_shard *a, int64_t n, asparse_device_shard **out) {
  asparse_status status = ASPARSE_OK;
  asparse_device_shard *shard = NULL;
  TRY_THAT(asparse_device_kernel_takes(kernel, a), ASPARSE_ERR_USAGE,
           "GPU kernel %s does not take a shard in %s, unit %d, %s", kernel->name, asparse_format_name(a->format),
           asparse_shard_row_unit(a), asparse_dtype_name(asparse_shard_dtype(a)));
  ALLOC_ZERO(shard, 1);
  shard->kernel = kernel;
  shard->device = device;
  shard->m = asparse_shard_rows(a);
  shard->k = asparse_shard_columns(a);
  shard->dtype = asparse_shard_dtype(a);
  shard->n = n;
  TRY(asparse_device_use(device));
  TRY(kernel->upload(a, shard));
  *out = shard;
  shard = NULL;
cleanup:
  asparse_device_shard_destroy(&shard);
  return status;
}

void asparse_device_shard_destroy(asparse_device_shard **a) {
  if (!a || !*a) return;
  for (int i = 0; i < (*a)->n_arrays; i++) asparse_device_free((*a)->arrays[i]);
  FREE(*a);
}

asparse_status asparse_device_shard_multiply(const asparse_device_shard *a, const asparse_device_product *product,
                                             cudaStream_t stream) {
  asparse_dtype result = asparse_dtype_result(a->dtype);
  bool c_fits = product->c_dtype == result || (a->dtype == ASPARSE_BF16 && product->c_dtype == ASPARSE_BF16);
  if (product->n < 0 || product->n > a->n || product->ldb < product->n || product->ldc < product->n || !c_fits)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE,
                        "GPU kernel %s made for %lld columns cannot multiply %lld (ldb %lld, ldc %lld, C in %s)",
                        a->kernel->name, (long long)a->n, (long long)product->n, (long long)product->ldb,
                        (long long)product->ldc, asparse_dtype_name(product->c_dtype));
  cudaError_t error = a->kernel->multiply(a, product, stream);
  if (error != cudaSuccess) return asparse_cuda_fail(error, a->kernel->name, __FILE__, __LINE__);
  return ASPARSE_OK;
}
