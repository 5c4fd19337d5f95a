/* The CUDA backend: everything is enqueued on the device's stream. */
#include "base/memory.h"
#include "kernels/backends.h"
#include "kernels/cuda_pack.h"
#include "kernels/device_shard.h"

static asparse_status cuda_open(asparse_engine *engine, int ordinal) {
  return asparse_device_open(ordinal, &engine->device);
}

static void cuda_close(asparse_engine *engine) { asparse_device_close(&engine->device); }

static const char *cuda_device_name(const asparse_engine *engine) { return engine->device->name; }

static const char *cuda_device_id(const asparse_engine *engine) { return engine->device->bus_id; }

static cudaStream_t stream_of(const asparse_engine *engine, asparse_queue queue) {
  return queue == ASPARSE_QUEUE_EXCHANGE ? engine->device->exchange_stream : engine->device->stream;
}

static void *cuda_stream(const asparse_engine *engine, asparse_queue queue) { return stream_of(engine, queue); }

static asparse_status byte_count(int64_t count, size_t size, const char *what, size_t *bytes) {
  if (count < 0 || __builtin_mul_overflow((size_t)count, size, bytes))
    return ASPARSE_FAIL(ASPARSE_ERR_MEMORY, "%s: %lld times %zu bytes exceed 64-bit sizes", what, (long long)count,
                        size);
  return ASPARSE_OK;
}

static asparse_status cuda_allocate(asparse_engine *engine, int64_t count, size_t size, const char *what,
                                    void **pointer) {
  size_t bytes = 0;
  PASS(byte_count(count, size, what, &bytes));
  PASS(asparse_device_use(engine->device));
  return asparse_device_malloc(engine->device, bytes, what, pointer);
}

static asparse_status cuda_copy_in(asparse_engine *engine, void *to, size_t to_pitch, const void *from_host,
                                   size_t from_pitch, size_t width, size_t rows) {
  PASS(asparse_device_use(engine->device));
  PASS(asparse_device_upload_rows(engine->device, to, to_pitch, from_host, from_pitch, width, rows));
  return asparse_device_wait(engine->device);
}

static asparse_status cuda_copy_out(asparse_engine *engine, void *to_host, size_t to_pitch, const void *from,
                                    size_t from_pitch, size_t width, size_t rows) {
  PASS(asparse_device_use(engine->device));
  return asparse_device_download_rows(engine->device, to_host, to_pitch, from, from_pitch, width, rows);
}

static asparse_status cuda_prepare(asparse_engine *engine, const asparse_shard *a, const char *kernel_name, int64_t n,
                                   asparse_dtype c_dtype, asparse_operator *out) {
  const asparse_device_kernel *kernel = NULL;
  *out = (asparse_operator){.shard = a, .c_dtype = c_dtype};
  PASS(asparse_device_kernel_find(kernel_name, &kernel));
  return asparse_device_shard_create(engine->device, kernel, a, n, &out->on_device);
}

static int64_t cuda_operator_bytes(const asparse_operator *a) { return a->on_device ? a->on_device->bytes : 0; }

static void cuda_discard(asparse_operator *a) {
  asparse_device_shard_destroy(&a->on_device);
  *a = (asparse_operator){0};
}

static asparse_status cuda_multiply(asparse_engine *engine, const asparse_operator *a, int64_t unit_begin,
                                    int64_t unit_end, int64_t n, const void *b, int64_t ldb, void *c, int64_t ldc,
                                    bool accumulate) {
  const asparse_device_product product = {
      .n = n, .b = b, .ldb = ldb, .c = c, .ldc = ldc, .c_dtype = a->c_dtype, .accumulate = accumulate};
  (void)unit_end;
  if (unit_begin != 0) return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "a GPU multiplies all units of a shard at once");
  return asparse_device_shard_multiply(a->on_device, &product, engine->device->stream);
}

static asparse_status cuda_pack(asparse_engine *engine, asparse_queue queue, asparse_dtype dtype, int64_t n_rows,
                                const int32_t *rows, int64_t n, const void *b, int64_t ldb, void *packed) {
  PASS_CUDA(asparse_cuda_pack(dtype, n_rows, rows, n, b, ldb, packed, stream_of(engine, queue)));
  return ASPARSE_OK;
}

static asparse_status cuda_pin(asparse_engine *engine, int64_t count, size_t size, const char *what, void **pointer) {
  size_t bytes = 0;
  *pointer = NULL;
  PASS(byte_count(count, size, what, &bytes));
  if (bytes == 0) return ASPARSE_OK;
  PASS(asparse_device_use(engine->device));
  const cudaError_t error = cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) cudaGetLastError(); /* out of memory is not sticky */
  if (error == cudaErrorMemoryAllocation)
    return ASPARSE_FAIL(ASPARSE_ERR_MEMORY, "%s: cannot pin %.3f GB of host memory (ulimit -l, cgroup)", what,
                        (double)bytes * 1e-9);
  PASS_CUDA(error);
  return ASPARSE_OK;
}

static void cuda_unpin(void *pointer) {
  if (pointer) cudaFreeHost(pointer);
}

static asparse_status cuda_copy(asparse_engine *engine, asparse_queue queue, void *to, const void *from, size_t bytes) {
  if (bytes > 0) PASS_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(engine, queue)));
  return ASPARSE_OK;
}

static cudaEvent_t event_of(asparse_event *event) { return (cudaEvent_t)event; }

static asparse_status cuda_event_create(asparse_engine *engine, asparse_event **event) {
  cudaEvent_t made = NULL;
  PASS(asparse_device_use(engine->device));
  PASS_CUDA(cudaEventCreate(&made));
  *event = (asparse_event *)made;
  return ASPARSE_OK;
}

static void cuda_event_destroy(asparse_event *event) {
  if (event) cudaEventDestroy(event_of(event));
}

static asparse_status cuda_record(asparse_engine *engine, asparse_queue queue, asparse_event *event) {
  PASS_CUDA(cudaEventRecord(event_of(event), stream_of(engine, queue)));
  return ASPARSE_OK;
}

static asparse_status cuda_after(asparse_engine *engine, asparse_queue queue, asparse_event *event) {
  PASS_CUDA(cudaStreamWaitEvent(stream_of(engine, queue), event_of(event), 0));
  return ASPARSE_OK;
}

static asparse_status cuda_reached(asparse_engine *engine, asparse_event *event, bool *reached) {
  (void)engine;
  const cudaError_t error = cudaEventQuery(event_of(event));
  *reached = error == cudaSuccess;
  if (error != cudaErrorNotReady) PASS_CUDA(error);
  return ASPARSE_OK;
}

static asparse_status cuda_elapsed(asparse_engine *engine, asparse_event *from, asparse_event *to, double *seconds) {
  float milliseconds = 0;
  (void)engine;
  PASS_CUDA(cudaEventSynchronize(event_of(from)));
  PASS_CUDA(cudaEventSynchronize(event_of(to)));
  PASS_CUDA(cudaEventElapsedTime(&milliseconds, event_of(from), event_of(to)));
  *seconds = 1e-3 * milliseconds;
  return ASPARSE_OK;
}

static asparse_status cuda_mark(asparse_engine *engine, int i) { return asparse_device_mark(engine->device, i); }

static asparse_status cuda_between(asparse_engine *engine, int i, int j, double *seconds) {
  return asparse_device_between(engine->device, i, j, seconds);
}

static asparse_status cuda_wait(asparse_engine *engine) { return asparse_device_wait(engine->device); }

const asparse_backend asparse_cuda_backend = {.name = "cuda",
                                              .space = ASPARSE_SPACE_DEVICE,
                                              .open = cuda_open,
                                              .close = cuda_close,
                                              .device_name = cuda_device_name,
                                              .device_id = cuda_device_id,
                                              .stream = cuda_stream,
                                              .allocate = cuda_allocate,
                                              .release = asparse_device_free,
                                              .copy_in = cuda_copy_in,
                                              .copy_out = cuda_copy_out,
                                              .prepare = cuda_prepare,
                                              .discard = cuda_discard,
                                              .operator_bytes = cuda_operator_bytes,
                                              .multiply = cuda_multiply,
                                              .pack = cuda_pack,
                                              .pin = cuda_pin,
                                              .unpin = cuda_unpin,
                                              .copy = cuda_copy,
                                              .event_create = cuda_event_create,
                                              .event_destroy = cuda_event_destroy,
                                              .record = cuda_record,
                                              .after = cuda_after,
                                              .reached = cuda_reached,
                                              .elapsed = cuda_elapsed,
                                              .mark = cuda_mark,
                                              .between = cuda_between,
                                              .wait = cuda_wait};
