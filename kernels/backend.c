#include "asparse_config.h"
#include "base/memory.h"
#include "kernels/backends.h"

#if ASPARSE_HAVE_CUDA
static const asparse_backend *const cuda = &asparse_cuda_backend;
#else
static const asparse_backend *const cuda = NULL;
#endif

static asparse_status open_with(const asparse_backend *backend, int ordinal, asparse_engine **out) {
  asparse_status status = ASPARSE_OK;
  asparse_engine *engine = NULL;
  ALLOC_ZERO(engine, 1);
  engine->backend = backend;
  TRY(backend->open(engine, ordinal));
  *out = engine;
  engine = NULL;
cleanup:
  asparse_free(engine);
  return status;
}

asparse_status asparse_engine_open(asparse_backend_kind kind, int ordinal, asparse_engine **engine) {
  if (kind == ASPARSE_BACKEND_CUDA && !cuda)
    return ASPARSE_FAIL(ASPARSE_ERR_DEVICE,
                        "this build has no CUDA kernels; use --backend host, or build where nvcc is "
                        "installed");
  if (kind == ASPARSE_BACKEND_AUTO && cuda) {
    if (open_with(cuda, ordinal, engine) == ASPARSE_OK) return ASPARSE_OK;
    asparse_error_clear();
  }
  return open_with(kind == ASPARSE_BACKEND_CUDA ? cuda : &asparse_host_backend, ordinal, engine);
}

void asparse_engine_close(asparse_engine **engine) {
  if (!engine || !*engine) return;
  (*engine)->backend->close(*engine);
  FREE(*engine);
}
