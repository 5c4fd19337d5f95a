/* The host backend. */
#include "kernels/backends.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernels/host_kernels.h"

/* C beyond this many bytes is written past the caches, which would not hold it: 1.4 times as fast for a
 * Laplacian at n = 64 (54 MB of C), 1.1–1.2 for a graph, within noise of 1 for most FEM. The threshold
 * itself, two second-level caches, was not tuned. */
enum { STREAM_BYTES = 4 << 20 };

/* Bytes below which waking the other threads is not worth it; not tuned. */
enum { PARALLEL_PACK_BYTES = 256 << 10 };

int64_t asparse_shard_units(const asparse_shard *a) {
  return a->csr ? a->csr->m : a->wcsr ? a->wcsr->n_windows : a->bcsr->n_block_rows;
}

static bool may_stream(const void *c, int64_t ldc_bytes, int64_t rows) {
  return (uintptr_t)c % 64 == 0 && ldc_bytes % 64 == 0 && rows > STREAM_BYTES / ldc_bytes;
}

static asparse_status host_multiply(asparse_engine *engine, const asparse_operator *operator, int64_t unit_begin,
                                    int64_t unit_end, int64_t n, const void *b, int64_t ldb, void *c, int64_t ldc,
                                    bool accumulate) {
  const asparse_shard *a = operator->shard;
  (void)engine;
  const asparse_host_isa_kernels *isa;
  PASS(asparse_host_kernels_get(&isa));
  if (unit_begin < 0 || unit_begin > unit_end || unit_end > asparse_shard_units(a))
    return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "units %lld … %lld of a shard of %lld", (long long)unit_begin,
                        (long long)unit_end, (long long)asparse_shard_units(a));
  if (n < 0 || ldb < n || ldc < n)
    return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "%lld columns do not fit leading dimensions %lld of B and %lld of C",
                        (long long)n, (long long)ldb, (long long)ldc);
  if (n == 0 || unit_begin == unit_end) return ASPARSE_OK;
  const asparse_dtype dtype = asparse_shard_dtype(a);
  asparse_product p = {.a = a,
                       .n = n,
                       .b = b,
                       .ldb = ldb * (int64_t)asparse_dtype_size(dtype),
                       .c = c,
                       .ldc = ldc * (int64_t)asparse_dtype_size(asparse_dtype_result(dtype)),
                       .accumulate = accumulate};
  p.stream = may_stream(c, p.ldc, asparse_shard_rows(a));
  if (a->csr) {
    asparse_host_schedule(&p, isa->csr, a->csr->row_ptr, 1, unit_begin, unit_end);
  } else if (a->wcsr) {
    asparse_host_schedule(&p, isa->wcsr, a->wcsr->window_row_ptr, a->wcsr->window_height, unit_begin, unit_end);
  } else {
    const int64_t r = a->bcsr->block_size;
    asparse_host_schedule(&p, isa->bcsr, a->bcsr->block_row_ptr, r * r, unit_begin, unit_end);
  }
  return ASPARSE_OK;
}

static asparse_status host_pack(asparse_engine *engine, asparse_queue queue, asparse_dtype dtype, int64_t n_rows,
                                const int32_t *rows, int64_t n, const void *b, int64_t ldb, void *packed) {
  const int64_t size = (int64_t)asparse_dtype_size(dtype), row_bytes = n * size;
  (void)engine, (void)queue;
#pragma omp parallel for schedule(static) if (n_rows * row_bytes > PARALLEL_PACK_BYTES)
  for (int64_t i = 0; i < n_rows; i++)
    memcpy((char *)packed + i * row_bytes, (const char *)b + (rows ? rows[i] : i) * ldb * size, (size_t)row_bytes);
  return ASPARSE_OK;
}

static asparse_status host_open(asparse_engine *engine, int ordinal) {
  const asparse_host_isa_kernels *isa;
  (void)engine, (void)ordinal;
  return asparse_host_kernels_get(&isa);
}

static void host_close(asparse_engine *engine) { (void)engine; }

static const char *host_no_device(const asparse_engine *engine) {
  (void)engine;
  return NULL;
}

static void *host_stream(const asparse_engine *engine, asparse_queue queue) {
  (void)engine, (void)queue;
  return NULL;
}

static asparse_status host_allocate(asparse_engine *engine, int64_t count, size_t size, const char *what,
                                    void **pointer) {
  (void)engine;
  *pointer = asparse_malloc(count, size, what);
  return *pointer ? ASPARSE_OK : ASPARSE_ERR_MEMORY;
}

static asparse_status host_copy(asparse_engine *engine, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                size_t width, size_t rows) {
  (void)engine;
  for (size_t i = 0; i < rows; i++) memcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
  return ASPARSE_OK;
}

static asparse_status host_prepare(asparse_engine *engine, const asparse_shard *a, const char *kernel, int64_t n,
                                   asparse_dtype c_dtype, asparse_operator *out) {
  (void)engine, (void)n;
  if (kernel)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "kernel %s runs on a GPU; on the host a format has one kernel", kernel);
  if (a->wcsr && a->wcsr->row_map)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "rows that were brought together are multiplied on a GPU only");
  if (c_dtype != asparse_dtype_result(asparse_shard_dtype(a)))
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "C in %s from A and B in %s needs a GPU; the host gives %s",
                        asparse_dtype_name(c_dtype), asparse_dtype_name(asparse_shard_dtype(a)),
                        asparse_dtype_name(asparse_dtype_result(asparse_shard_dtype(a))));
  *out = (asparse_operator){.shard = a, .c_dtype = c_dtype};
  return ASPARSE_OK;
}

static void host_discard(asparse_operator *a) { *a = (asparse_operator){0}; }

static int64_t host_operator_bytes(const asparse_operator *a) {
  (void)a;
  return 0;
}

static asparse_status host_mark(asparse_engine *engine, int i) {
  engine->marks[i] = asparse_seconds();
  return ASPARSE_OK;
}

static asparse_status host_between(asparse_engine *engine, int i, int j, double *seconds) {
  *seconds = engine->marks[j] - engine->marks[i];
  return ASPARSE_OK;
}

static asparse_status host_queue_copy(asparse_engine *engine, asparse_queue queue, void *to, const void *from,
                                      size_t bytes) {
  (void)engine, (void)queue;
  if (bytes > 0) memcpy(to, from, bytes);
  return ASPARSE_OK;
}

struct asparse_event {
  double seconds;
};

static asparse_status host_event_create(asparse_engine *engine, asparse_event **event) {
  (void)engine;
  *event = asparse_calloc(1, sizeof **event, "event");
  return *event ? ASPARSE_OK : ASPARSE_ERR_MEMORY;
}

static void host_event_destroy(asparse_event *event) { asparse_free(event); }

static asparse_status host_record(asparse_engine *engine, asparse_queue queue, asparse_event *event) {
  (void)engine, (void)queue;
  event->seconds = asparse_seconds();
  return ASPARSE_OK;
}

static asparse_status host_after(asparse_engine *engine, asparse_queue queue, asparse_event *event) {
  (void)engine, (void)queue, (void)event;
  return ASPARSE_OK;
}

static asparse_status host_reached(asparse_engine *engine, asparse_event *event, bool *reached) {
  (void)engine, (void)event;
  *reached = true;
  return ASPARSE_OK;
}

static asparse_status host_elapsed(asparse_engine *engine, asparse_event *from, asparse_event *to, double *seconds) {
  (void)engine;
  *seconds = to->seconds - from->seconds;
  return ASPARSE_OK;
}

static asparse_status host_wait(asparse_engine *engine) {
  (void)engine;
  return ASPARSE_OK;
}

const asparse_backend asparse_host_backend = {.name = "host",
                                              .space = ASPARSE_SPACE_HOST,
                                              .open = host_open,
                                              .close = host_close,
                                              .device_name = host_no_device,
                                              .device_id = host_no_device,
                                              .stream = host_stream,
                                              .allocate = host_allocate,
                                              .release = asparse_free,
                                              .copy_in = host_copy,
                                              .copy_out = host_copy,
                                              .prepare = host_prepare,
                                              .discard = host_discard,
                                              .operator_bytes = host_operator_bytes,
                                              .multiply = host_multiply,
                                              .pack = host_pack,
                                              .pin = host_allocate,
                                              .unpin = asparse_free,
                                              .copy = host_queue_copy,
                                              .event_create = host_event_create,
                                              .event_destroy = host_event_destroy,
                                              .record = host_record,
                                              .after = host_after,
                                              .reached = host_reached,
                                              .elapsed = host_elapsed,
                                              .mark = host_mark,
                                              .between = host_between,
                                              .wait = host_wait};
