#include "kernels/host.h"
#include "kernels/host_kernels.h"

asparse_status asparse_backend_get(asparse_backend_kind kind, const asparse_backend **backend) {
  const asparse_host_isa_kernels *isa;
  if (kind == ASPARSE_BACKEND_CUDA)
    return ASPARSE_FAIL(ASPARSE_ERR_DEVICE, "this build has no CUDA kernels; use the host backend");
  PASS(asparse_host_kernels_get(&isa));
  *backend = &asparse_host_backend;
  return ASPARSE_OK;
}
