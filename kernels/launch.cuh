/* Launches that overlap: a kernel may begin while the one before it in the stream ends (programmatic dependent launch).
 * It reads its part of A meanwhile, which no kernel writes, and touches B and C after sm90::wait_for_previous. */
#ifndef ASPARSE_LAUNCH_CUH
#define ASPARSE_LAUNCH_CUH

#include <cuda_runtime.h>

static inline cudaLaunchAttribute may_begin_early() {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  return attribute;
}

template <typename Problem>
cudaError_t launch_overlapped(void (*kernel)(Problem), dim3 grid, dim3 threads, int shared_bytes, cudaStream_t stream,
                              const Problem &problem) {
  cudaLaunchAttribute early = may_begin_early();
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = threads;
  config.dynamicSmemBytes = static_cast<size_t>(shared_bytes);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, problem);
}

#endif
