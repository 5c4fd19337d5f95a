/* What one thread of this machine does per second, measured on small problems. */
#include <omp.h>
#include <string.h>
#include <time.h>

#include "base/dense.h"
#include "kernels/host_kernels.h"
#include "kernels/kernels.h"

/* A copy larger than the second-level cache; a CSR matrix of which 32 neighbouring rows share their
 * columns, so that rows of B come from the first-level cache. */
enum {
  COPY_BYTES = 8 << 20,
  ROWS = 256,
  ROW_ENTRIES = 32,
  COLUMN_STRIDE = 8,
  INNER = ROW_ENTRIES * COLUMN_STRIDE,
  REPEATS = 16
};

/* One core of the machine the cost model was fitted on, for a clock that stands still. */
static const asparse_host_rates fallback = {1, 2e10, {4e10, 8e10, 5e10}};

/* Processor time of this thread. */
static double seconds(void) {
  struct timespec now = {0};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double faster(double best, double work, double elapsed) {
  return elapsed > 0 && work / elapsed > best ? work / elapsed : best;
}

/* Bytes read and written per second, 0 when the clock stood still. */
static asparse_status measure_streaming(double *rate) {
  asparse_status status = ASPARSE_OK;
  char *from = NULL, *to = NULL;
  ALLOC_ZERO(from, COPY_BYTES);
  ALLOC_ZERO(to, COPY_BYTES);
  *rate = 0;
  for (int r = 0; r < REPEATS / 4; r++) {
    const double start = seconds();
    memcpy(r % 2 == 0 ? to : from, r % 2 == 0 ? from : to, COPY_BYTES);
    *rate = faster(*rate, 2.0 * COPY_BYTES, seconds() - start);
  }
cleanup:
  asparse_free(from);
  asparse_free(to);
  return status;
}

static void fill_pattern(asparse_local_csr *a) {
  for (int64_t i = 0; i < ROWS; i++) {
    for (int64_t e = 0; e < ROW_ENTRIES; e++) {
      a->col_idx[i * ROW_ENTRIES + e] = (int32_t)(e * COLUMN_STRIDE + i * COLUMN_STRIDE / ROWS);
      asparse_store(a->dtype, a->values, i * ROW_ENTRIES + e, 1.0);
    }
    a->row_ptr[i + 1] = (i + 1) * ROW_ENTRIES;
  }
}

static asparse_status measure_flops(const asparse_host_isa_kernels *isa, asparse_dtype dtype, double *rate) {
  asparse_status status = ASPARSE_OK;
  asparse_local_csr *a = NULL;
  asparse_dense *b = NULL, *c = NULL;
  TRY(asparse_local_csr_create(&a, ROWS, INNER, ROWS * ROW_ENTRIES, dtype));
  TRY(asparse_dense_create(&b, INNER, ASPARSE_RATE_COLUMNS, dtype));
  TRY(asparse_dense_create(&c, ROWS, ASPARSE_RATE_COLUMNS, asparse_dtype_result(dtype)));
  fill_pattern(a);
  asparse_dense_fill_random(b, 1, 0, NULL);
  const asparse_shard shard = {.format = ASPARSE_FORMAT_CSR, .csr = a};
  const asparse_product product = {.a = &shard,
                                   .n = ASPARSE_RATE_COLUMNS,
                                   .b = b->values,
                                   .ldb = b->ld * (int64_t)asparse_dtype_size(dtype),
                                   .c = c->values,
                                   .ldc = c->ld * (int64_t)asparse_dtype_size(c->dtype)};
  *rate = 0;
  for (int r = 0; r < REPEATS; r++) {
    const double start = seconds();
    isa->csr(&product, 0, ROWS, 0, ASPARSE_RATE_COLUMNS);
    *rate = faster(*rate, 2.0 * ROWS * ROW_ENTRIES * ASPARSE_RATE_COLUMNS, seconds() - start);
  }
cleanup:
  asparse_local_csr_destroy(&a);
  asparse_dense_destroy(&b);
  asparse_dense_destroy(&c);
  return status;
}

static asparse_status measure(asparse_host_rates *rates) {
  const asparse_host_isa_kernels *isa;
  PASS(asparse_host_kernels_get(&isa));
  const int threads = omp_get_max_threads();
  double rate;
  PASS(measure_streaming(&rate));
  rates->threads = threads;
  rates->bytes_per_second = threads * (rate > 0 ? rate : fallback.bytes_per_second);
  for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) {
    PASS(measure_flops(isa, (asparse_dtype)dtype, &rate));
    rates->flops_per_second[dtype] = threads * (rate > 0 ? rate : fallback.flops_per_second[dtype]);
  }
  return ASPARSE_OK;
}

asparse_status asparse_host_rates_get(asparse_host_rates *rates) {
  static asparse_host_rates measured;
  static bool is_measured;
  asparse_status status = ASPARSE_OK;
#pragma omp critical(asparse_host_rates)
  if (!is_measured) {
    status = measure(&measured);
    is_measured = status == ASPARSE_OK;
  }
  if (status == ASPARSE_OK) *rates = measured;
  return status;
}
