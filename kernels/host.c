/* The host backend. */
#include "kernels/host.h"

#include <string.h>

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

static asparse_status host_multiply(const asparse_shard *a, int64_t unit_begin, int64_t unit_end, int64_t n,
                                    const void *b, int64_t ldb, void *c, int64_t ldc, bool accumulate) {
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

static asparse_status host_pack(asparse_dtype dtype, int64_t n_rows, const int32_t *rows, int64_t n, const void *b,
                                int64_t ldb, void *packed) {
  const int64_t size = (int64_t)asparse_dtype_size(dtype), row_bytes = n * size;
#pragma omp parallel for schedule(static) if (n_rows * row_bytes > PARALLEL_PACK_BYTES)
  for (int64_t i = 0; i < n_rows; i++)
    memcpy((char *)packed + i * row_bytes, (const char *)b + (rows ? rows[i] : i) * ldb * size, (size_t)row_bytes);
  return ASPARSE_OK;
}

const asparse_backend asparse_host_backend = {"host", host_multiply, host_pack};
