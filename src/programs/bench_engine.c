#include "programs/bench_engine.h"

#include <stdio.h>

#include "base/memory.h"

/* Where kernels for GPUs are part of the build, bench_cuda.c has this function. */
#if !ASPARSE_HAVE_DEVICE
asparse_status bench_cuda_open(const bench_options *options, bench_engine **engine) {
  (void)options;
  *engine = NULL;
  return ASPARSE_FAIL(ASPARSE_ERR_DEVICE, "this build has no CUDA kernels; use --backend host");
}
#endif

asparse_status bench_engine_open(const bench_options *options, bench_engine **engine) {
  if (options->backend == ASPARSE_BACKEND_HOST) return bench_host_open(options, engine);
  asparse_status status = bench_cuda_open(options, engine);
  if (status != ASPARSE_ERR_DEVICE || options->backend == ASPARSE_BACKEND_CUDA) return status;
#if ASPARSE_HAVE_DEVICE
  fprintf(stderr, "asparse_bench: note: timing on the host: %s\n", asparse_error_message());
#endif
  asparse_error_clear();
  return bench_host_open(options, engine);
}

void bench_engine_close(bench_engine **engine) {
  if (!engine || !*engine) return;
  (*engine)->functions->close(*engine);
  FREE(*engine);
}
