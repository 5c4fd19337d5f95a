/* The host as an engine: the kernels of the host backend, timed by the wall clock. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/dense.h"
#include "programs/bench_engine.h"

typedef struct host_engine {
  bench_engine base; /* first */
  asparse_engine *host;
  asparse_host_rates rates;
  int64_t seed;
  const asparse_local_csr *a; /* loaded; borrowed */
  asparse_dense *b, *c;
  double *sum, *size; /* [m × n] A·B and |A||B| in fp64 */
} host_engine;

static host_engine *host_of(bench_engine *engine) { return (host_engine *)engine; }

static void unload(bench_engine *engine) {
  host_engine *h = host_of(engine);
  asparse_dense_destroy(&h->b);
  asparse_dense_destroy(&h->c);
  FREE(h->sum);
  FREE(h->size);
  h->a = NULL;
}

static void close_engine(bench_engine *engine) {
  unload(engine);
  asparse_engine_close(&host_of(engine)->host);
}

static asparse_status load(bench_engine *engine, const asparse_local_csr *a, int64_t n) {
  (void)n; /* operands are allocated for each n */
  host_of(engine)->a = a;
  return ASPARSE_OK;
}

/* A and B read once, C written once, or all arithmetic at its peak, whichever is longer. */
static double least_seconds(const asparse_profile *p, const asparse_host_rates *rates) {
  const double element = (double)asparse_dtype_size(p->dtype), nnz = (double)p->nnz, n = (double)p->n;
  const double result = (double)asparse_dtype_size(asparse_dtype_result(p->dtype));
  const double bytes = nnz * (4 + element) + (double)p->k * n * element + (double)p->m * n * result;
  return fmax(bytes / rates->bytes_per_second, 2 * nnz * n / rates->flops_per_second[p->dtype]);
}

static asparse_status predict(bench_engine *engine, const asparse_profile *profile, bench_prediction *prediction) {
  const host_engine *h = host_of(engine);
  prediction->least_seconds = least_seconds(profile, &h->rates);
  prediction->chosen =
      asparse_choose(profile, &h->rates, ASPARSE_FORMAT_AUTO, 0, prediction->candidates, &prediction->n_candidates);
  return ASPARSE_OK;
}

/* Nothing is copied: what is prepared is the shard itself. */
static asparse_status prepare(bench_engine *engine, const bench_kernel *kernel, const asparse_shard *a, int64_t n,
                              void **prepared) {
  (void)engine, (void)kernel, (void)n;
  *prepared = (void *)a;
  return ASPARSE_OK;
}

static void release(bench_engine *engine, void *prepared) { (void)engine, (void)prepared; }

static void reference_row(host_engine *h, int64_t i) {
  const int64_t n = h->b->n;
  double *sum = h->sum + i * n, *size = h->size + i * n;
  memset(sum, 0, (size_t)n * sizeof *sum);
  memset(size, 0, (size_t)n * sizeof *size);
  for (int64_t e = h->a->row_ptr[i]; e < h->a->row_ptr[i + 1]; e++) {
    const double value = asparse_load(h->a->dtype, h->a->values, e);
    for (int64_t j = 0; j < n; j++) {
      const double product = value * asparse_load(h->b->dtype, h->b->values, h->a->col_idx[e] * n + j);
      sum[j] += product;
      size[j] += fabs(product);
    }
  }
}

static asparse_status operands(bench_engine *engine, int64_t n) {
  asparse_status status = ASPARSE_OK;
  host_engine *h = host_of(engine);
  const asparse_local_csr *a = h->a;
  unload(engine);
  h->a = a;
  TRY(asparse_dense_create(&h->b, a->k, n, a->dtype));
  TRY(asparse_dense_create(&h->c, a->m, n, asparse_dtype_result(a->dtype)));
  ALLOC(h->sum, a->m * n);
  ALLOC(h->size, a->m * n);
  asparse_dense_fill_random(h->b, (uint64_t)h->seed, 0, NULL);
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < a->m; i++) reference_row(h, i);
cleanup:
  return status;
}

static asparse_status ready(bench_engine *engine, void *prepared, double *seconds) {
  (void)engine, (void)prepared;
  *seconds = 0;
  return ASPARSE_OK;
}

static asparse_status multiply(host_engine *h, const asparse_shard *a) {
  const asparse_operator operator= {.shard = a, .c_dtype = h->c->dtype};
  return h->host->backend->multiply(h->host, &operator, 0, asparse_shard_units(a), h->b->n, h->b->values, h->b->ld,
                                    h->c->values, h->c->ld, false);
}

/* Largest error of row i over its bound, as asparse_cuda_compare defines it. */
static double row_error(const host_engine *h, int64_t i) {
  const bool wide = h->a->dtype == ASPARSE_FP64;
  const double q = (double)(h->a->row_ptr[i + 1] - h->a->row_ptr[i]), u = wide ? 0x1p-52 : 0x1p-23;
  const double gamma = q * u < 1 ? q * u / (1 - q * u) : INFINITY, least = (q + 1) * (wide ? 0x1p-1022 : 0x1p-126);
  double worst = 0;
  for (int64_t at = i * h->c->n; at < (i + 1) * h->c->n; at++) {
    const double c = asparse_load(h->c->dtype, h->c->values, at), exact = h->sum[at];
    double error = fabs(c - exact) / ((q > 0 ? gamma * h->size[at] : 0) + least);
    if (isnan(exact) ? isnan(c) : c == exact) error = 0;
    else if (isnan(error)) error = INFINITY;
    worst = fmax(worst, error);
  }
  return worst;
}

static asparse_status check(bench_engine *engine, void *prepared, double *max_error) {
  host_engine *h = host_of(engine);
  double worst = 0;
  memset(h->c->values, 0xff, (size_t)(h->c->m * h->c->ld) * asparse_dtype_size(h->c->dtype));
  PASS(multiply(h, prepared));
#pragma omp parallel for schedule(static) reduction(max : worst)
  for (int64_t i = 0; i < h->a->m; i++) worst = fmax(worst, row_error(h, i));
  *max_error = worst;
  return ASPARSE_OK;
}

static asparse_status arm(bench_engine *engine, void *const *prepared, const int *launches, int count,
                          const char **method) {
  (void)engine, (void)prepared, (void)launches, (void)count;
  *method = "wall clock";
  return ASPARSE_OK;
}

static asparse_status sample(bench_engine *engine, void *prepared, int launches, double *seconds) {
  const double start = asparse_seconds();
  for (int i = 0; i < launches; i++) PASS(multiply(host_of(engine), prepared));
  *seconds = (asparse_seconds() - start) / launches;
  return ASPARSE_OK;
}

static const bench_engine_functions functions = {.close = close_engine,
                                                 .predict = predict,
                                                 .load = load,
                                                 .unload = unload,
                                                 .prepare = prepare,
                                                 .release = release,
                                                 .operands = operands,
                                                 .ready = ready,
                                                 .check = check,
                                                 .arm = arm,
                                                 .sample = sample};

static void add_kernels(bench_engine *engine, asparse_format format, const int32_t *units) {
  for (int i = 0; units[i]; i++)
    engine->kernels[engine->n_kernels++] =
        (bench_kernel){.name = asparse_format_name(format), .format = format, .unit = units[i], .automatic = true};
}

asparse_status bench_host_open(const bench_options *options, bench_engine **out) {
  asparse_status status = ASPARSE_OK;
  host_engine *h = NULL;
  bench_engine *opened = NULL;
  TRY_THAT(!options->flush_l2, ASPARSE_ERR_USAGE, "--flush-l2 needs a GPU");
  TRY_THAT(!options->bf16_result, ASPARSE_ERR_USAGE, "--result bf16 needs a GPU");
  ALLOC_ZERO(h, 1);
  opened = &h->base;
  h->base.functions = &functions;
  h->base.backend = "host";
  h->base.own_precision = true;
  h->seed = options->seed;
  TRY(asparse_engine_open(ASPARSE_BACKEND_HOST, 0, &h->host));
  TRY(asparse_host_rates_get(&h->rates));
  snprintf(h->base.device, sizeof h->base.device, "host, %s, %d threads", asparse_host_isa(), omp_get_max_threads());
  snprintf(h->base.libraries, sizeof h->base.libraries, "none");
  add_kernels(&h->base, ASPARSE_FORMAT_CSR, (const int32_t[]){1, 0});
  add_kernels(&h->base, ASPARSE_FORMAT_WCSR, (const int32_t[]){8, 16, 32, 64, 0});
  add_kernels(&h->base, ASPARSE_FORMAT_BCSR, (const int32_t[]){16, 32, 64, 0});
  *out = opened;
  opened = NULL;
cleanup:
  bench_engine_close(&opened);
  return status;
}
