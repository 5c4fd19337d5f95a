/* A GPU as an engine: the table of device kernels and the vendor libraries, timed by events. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/dense.h"
#include "kernels/device_kernels.h"
#include "kernels/measure.h"
#include "kernels/peers.h"
#include "programs/bench_engine.h"

/* Rows and columns of the device's reference that are computed again on the host, in long double. */
enum { SPOT_ROWS = 6, SPOT_COLUMNS = 8, SPOT_ENTRIES = 1 << 16 };

/* Read to empty the L2 cache (60 MB on an H200) in multiples of its size. */
enum { FLUSH_CACHES = 3 };

typedef struct cuda_engine {
  bench_engine base; /* first */
  const bench_options *options;
  asparse_device *device;
  asparse_peer_handles *handles;
  cudaEvent_t start, stop;
  void *flush; /* NULL: caches stay warm */
  size_t flush_bytes;
  /* Of the matrix that is loaded; arrays are on the device. */
  const asparse_local_csr *a; /* borrowed */
  asparse_device_shard *csr;  /* for the reference */
  int64_t n_most, n;          /* columns there is room for; of the product at hand */
  asparse_dtype c_dtype;
  void *b, *c;                /* [k × n], [m × n], rows rounded up to ASPARSE_PEER_ROWS, ld n */
  size_t b_bytes, c_bytes;    /* for n_most */
  double *sum, *size, *worst; /* [m × n] A·B and |A||B|; [1] */
} cuda_engine;

typedef struct cuda_prepared {
  asparse_device_shard *shard; /* of a kernel, */
  asparse_peer_matrix *peer;   /* or of a library */
  cudaGraphExec_t graph;       /* NULL: launches */
} cuda_prepared;

static cuda_engine *cuda_of(bench_engine *engine) { return (cuda_engine *)engine; }

static int64_t padded(int64_t rows) { return (rows + ASPARSE_PEER_ROWS - 1) / ASPARSE_PEER_ROWS * ASPARSE_PEER_ROWS; }

/* ---- matrices and operands --------------------------------------------------------------------------- */

static void unload(bench_engine *engine) {
  cuda_engine *g = cuda_of(engine);
  asparse_device_shard_destroy(&g->csr);
  void *const arrays[] = {g->b, g->c, g->sum, g->size};
  for (int i = 0; i < 4; i++) asparse_device_free(arrays[i]);
  g->b = g->c = NULL;
  g->sum = g->size = NULL;
  g->a = NULL;
}

static asparse_status load(bench_engine *engine, const asparse_local_csr *a, int64_t n) {
  cuda_engine *g = cuda_of(engine);
  const asparse_shard shard = {.format = ASPARSE_FORMAT_CSR, .csr = (asparse_local_csr *)a, .borrows_csr = true};
  const size_t most = (size_t)a->m * (size_t)n * sizeof(double);
  void *sum = NULL, *size = NULL;
  g->a = a;
  g->n_most = n;
  g->c_dtype = g->options->bf16_result ? ASPARSE_BF16 : asparse_dtype_result(a->dtype);
  g->b_bytes = (size_t)(padded(a->k) * n) * asparse_dtype_size(a->dtype);
  /* Room for fp32 where bf16 is asked for: a kernel that stores the wrong type is caught by the check. */
  g->c_bytes = (size_t)(padded(a->m) * n) * asparse_dtype_size(asparse_dtype_result(a->dtype));
  PASS(asparse_device_shard_create(g->device, &asparse_device_csr, &shard, n, &g->csr));
  PASS(asparse_device_malloc(g->device, g->b_bytes, "B", &g->b));
  PASS(asparse_device_malloc(g->device, g->c_bytes, "C", &g->c));
  PASS(asparse_device_malloc(g->device, most, "the fp64 reference of C", &sum));
  g->sum = sum;
  PASS(asparse_device_malloc(g->device, most, "the bound of its errors", &size));
  g->size = size;
  return ASPARSE_OK;
}

/* Element (row, col) of B as the device has it. */
static double b_element(const cuda_engine *g, int64_t row, int64_t col) {
  double stored[1];
  asparse_store(g->a->dtype, stored, 0, asparse_random_element((uint64_t)g->options->seed, row, col));
  return asparse_load(g->a->dtype, stored, 0);
}

/* One element of the device's reference against long double. */
static asparse_status spot_check_element(const cuda_engine *g, int64_t row, int64_t col, double sum, double size) {
  const asparse_local_csr *a = g->a;
  long double exact_sum = 0, exact_size = 0;
  for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++) {
    const long double product = (long double)asparse_load(a->dtype, a->values, e) * b_element(g, a->col_idx[e], col);
    exact_sum += product;
    exact_size += fabsl(product);
  }
  const long double q = (long double)(a->row_ptr[row + 1] - a->row_ptr[row]), bound = (q + 1) * 0x1p-53L * exact_size;
  const bool same = fabsl(exact_sum - sum) <= bound && fabsl(exact_size - size) <= bound;
  if (same || !isfinite((double)exact_size)) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "the GPU's reference of element (%lld, %lld) is %.17g, the host's %.17Lg",
                      (long long)row, (long long)col, sum, exact_sum);
}

/* Rows spread over the matrix, a few columns of each. */
static asparse_status spot_check(cuda_engine *g) {
  asparse_status status = ASPARSE_OK;
  double *sum = NULL, *size = NULL;
  const size_t bytes = (size_t)g->n * sizeof *sum;
  ALLOC(sum, g->n);
  ALLOC(size, g->n);
  for (int i = 0; i < SPOT_ROWS && g->a->m > 0; i++) {
    const int64_t row = (g->a->m - INT64_C(1)) * i / (SPOT_ROWS - 1);
    if (g->a->row_ptr[row + 1] - g->a->row_ptr[row] > SPOT_ENTRIES) continue;
    TRY(asparse_device_download(g->device, sum, g->sum + row * g->n, bytes));
    TRY(asparse_device_download(g->device, size, g->size + row * g->n, bytes));
    for (int j = 0; j < SPOT_COLUMNS; j++) {
      const int64_t col = (g->n - 1) * j / (SPOT_COLUMNS - 1);
      TRY(spot_check_element(g, row, col, sum[col], size[col]));
    }
  }
cleanup:
  asparse_free(sum);
  asparse_free(size);
  return status;
}

static asparse_status operands(bench_engine *engine, int64_t n) {
  cuda_engine *g = cuda_of(engine);
  const asparse_local_csr *a = g->a;
  g->n = n;
  PASS_CUDA(cudaMemsetAsync(g->b, 0, g->b_bytes, g->device->stream));
  PASS_CUDA(asparse_cuda_fill_random(a->dtype, a->k, n, (uint64_t)g->options->seed, g->b, g->device->stream));
  PASS_CUDA(asparse_cuda_reference(&g->csr->as.csr, n, g->b, g->sum, g->size, g->device->stream));
  return spot_check(g);
}

/* ---- kernels ------------------------------------------------------------------------------------------ */

static asparse_status predict(bench_engine *engine, const asparse_profile *profile, bench_prediction *prediction) {
  (void)engine;
  prediction->least_seconds = asparse_device_least_seconds(profile);
  prediction->chosen =
      asparse_choose_device(profile, ASPARSE_FORMAT_AUTO, 0, NULL, prediction->candidates, &prediction->n_candidates);
  return ASPARSE_OK;
}

static void release(bench_engine *engine, void *prepared) {
  cuda_prepared *p = prepared;
  (void)engine;
  if (p->graph) cudaGraphExecDestroy(p->graph);
  asparse_device_shard_destroy(&p->shard);
  asparse_peer_destroy(&p->peer);
  asparse_free(p);
}

static asparse_status prepare(bench_engine *engine, const bench_kernel *kernel, const asparse_shard *a, int64_t n,
                              void **prepared) {
  asparse_status status = ASPARSE_OK;
  cuda_engine *g = cuda_of(engine);
  cuda_prepared *p = NULL;
  ALLOC_ZERO(p, 1);
  if (kernel->peer) TRY(asparse_peer_create(g->handles, kernel->row, a, g->options->max_bytes, &p->peer));
  else TRY(asparse_device_shard_create(g->device, kernel->row, a, n, &p->shard));
  TRY(asparse_device_wait(g->device));
  *prepared = p;
  p = NULL;
cleanup:
  if (p) release(engine, p);
  return status;
}

static asparse_status multiply(cuda_engine *g, const cuda_prepared *p) {
  if (p->peer) return asparse_peer_multiply(p->peer);
  const asparse_device_product product = {
      .n = g->n, .b = g->b, .ldb = g->n, .c = g->c, .ldc = g->n, .c_dtype = g->c_dtype};
  return asparse_device_shard_multiply(p->shard, &product, g->device->stream);
}

/* A product that was refused leaves a device that works; after any other error it does not. */
static asparse_status refused(cuda_engine *g, asparse_status status) {
  if (status != ASPARSE_ERR_DEVICE) return status;
  cudaGetLastError();
  return cudaStreamSynchronize(g->device->stream) == cudaSuccess ? ASPARSE_ERR_USAGE : status;
}

static asparse_status ready(bench_engine *engine, void *prepared, double *seconds) {
  cuda_engine *g = cuda_of(engine);
  cuda_prepared *p = prepared;
  if (p->graph) PASS_CUDA(cudaGraphExecDestroy(p->graph));
  p->graph = NULL;
  *seconds = 0;
  if (!p->peer) return ASPARSE_OK;
  const asparse_peer_product product = {.n = g->n, .b = g->b, .c = g->c, .c_dtype = g->c_dtype};
  const double start = asparse_seconds();
  PASS(refused(g, asparse_peer_prepare(p->peer, &product)));
  *seconds = asparse_seconds() - start;
  return ASPARSE_OK;
}

static asparse_status check(bench_engine *engine, void *prepared, double *max_error) {
  cuda_engine *g = cuda_of(engine);
  PASS_CUDA(cudaMemsetAsync(g->c, 0xff, g->c_bytes, g->device->stream));
  PASS(refused(g, multiply(g, prepared)));
  PASS_CUDA(
      asparse_cuda_compare(&g->csr->as.csr, g->n, g->c_dtype, g->c, g->sum, g->size, g->worst, g->device->stream));
  PASS(asparse_device_download(g->device, max_error, g->worst, sizeof *max_error));
  return asparse_device_wait(g->device);
}

/* ---- timing ------------------------------------------------------------------------------------------- */

/* Enqueues a sample: caches emptied, or one product that warms them; then `launches` products between two events. */
static asparse_status enqueue(cuda_engine *g, const cuda_prepared *p, int launches, unsigned event_flags) {
  if (g->flush) PASS_CUDA(asparse_cuda_read_through(g->flush, g->flush_bytes, g->device->stream));
  else PASS(multiply(g, p));
  PASS_CUDA(cudaEventRecordWithFlags(g->start, g->device->stream, event_flags));
  for (int i = 0; i < launches; i++) PASS(multiply(g, p));
  PASS_CUDA(cudaEventRecordWithFlags(g->stop, g->device->stream, event_flags));
  return ASPARSE_OK;
}

/* The sample as a graph, events and all, so that no time between launches is the host's. */
static asparse_status capture(cuda_engine *g, cuda_prepared *p, int launches) {
  asparse_status status = ASPARSE_OK;
  cudaGraph_t graph = NULL;
  TRY_CUDA(cudaStreamBeginCapture(g->device->stream, cudaStreamCaptureModeThreadLocal));
  status = enqueue(g, p, launches, cudaEventRecordExternal);
  const cudaError_t ended = cudaStreamEndCapture(g->device->stream, &graph);
  if (status == ASPARSE_OK) TRY_CUDA(ended);
  if (status == ASPARSE_OK) TRY_CUDA(cudaGraphInstantiate(&p->graph, graph, 0));
cleanup:
  if (graph) cudaGraphDestroy(graph);
  return status;
}

/* One way for all, so that ratios are fair: graphs, or launches when one of them cannot be captured. */
static asparse_status arm(bench_engine *engine, void *const *prepared, const int *launches, int count,
                          const char **method) {
  cuda_engine *g = cuda_of(engine);
  bool captured = !g->options->no_graph;
  for (int i = 0; i < count && captured; i++) captured = capture(g, prepared[i], launches[i]) == ASPARSE_OK;
  for (int i = 0; i < count && !captured; i++) {
    cuda_prepared *p = prepared[i];
    if (p->graph) PASS_CUDA(cudaGraphExecDestroy(p->graph));
    p->graph = NULL;
  }
  if (!captured) {
    cudaGetLastError();
    asparse_error_clear();
  }
  *method = captured ? (g->flush ? "graphs, L2 cold" : "graphs, L2 warm")
                     : (g->flush ? "launches, L2 cold" : "launches, L2 warm");
  return ASPARSE_OK;
}

static asparse_status sample(bench_engine *engine, void *prepared, int launches, double *seconds) {
  cuda_engine *g = cuda_of(engine);
  const cuda_prepared *p = prepared;
  float milliseconds = 0;
  if (p->graph) PASS_CUDA(cudaGraphLaunch(p->graph, g->device->stream));
  else PASS(enqueue(g, p, launches, cudaEventRecordDefault));
  PASS(asparse_device_wait(g->device));
  PASS_CUDA(cudaEventElapsedTime(&milliseconds, g->start, g->stop));
  *seconds = 1e-3 * milliseconds / launches;
  return ASPARSE_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------ */

static void close_engine(bench_engine *engine) {
  cuda_engine *g = cuda_of(engine);
  unload(engine);
  asparse_device_free(g->worst);
  asparse_device_free(g->flush);
  if (g->start) cudaEventDestroy(g->start);
  if (g->stop) cudaEventDestroy(g->stop);
  asparse_peer_handles_destroy(&g->handles);
  asparse_device_close(&g->device);
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

static asparse_status list_kernels(bench_engine *engine) {
  for (int i = 0; asparse_device_kernels[i]; i++) {
    const asparse_device_kernel *row = asparse_device_kernels[i];
    for (int j = 0; row->units[j]; j++) {
      if (engine->n_kernels == BENCH_MOST_KERNELS) return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "too many kernels");
      engine->kernels[engine->n_kernels++] = (bench_kernel){.name = row->name,
                                                            .format = row->format,
                                                            .unit = row->units[j],
                                                            .automatic = row->automatic,
                                                            .clustered = row->clustered,
                                                            .bf16_only = row->bf16_only,
                                                            .row = row};
    }
  }
  for (int i = 0; asparse_peers[i]; i++) {
    const asparse_peer *row = asparse_peers[i];
    if (engine->n_kernels == BENCH_MOST_KERNELS) return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "too many kernels");
    engine->kernels[engine->n_kernels++] = (bench_kernel){.name = row->name,
                                                          .format = row->format,
                                                          .unit = row->unit,
                                                          .peer = true,
                                                          .cusparse = row->is_cusparse,
                                                          .row = row};
  }
  return ASPARSE_OK;
}

static void describe(cuda_engine *g) {
  int driver = 0, runtime = 0;
  char peers[128];
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  asparse_peer_versions(peers, sizeof peers);
  snprintf(g->base.device, sizeof g->base.device, "%.128s, %d multiprocessors, %.0f GB, driver for CUDA %d.%d",
           g->device->name, g->device->multiprocessors, (double)g->device->memory * 1e-9, driver / 1000,
           driver % 1000 / 10);
  snprintf(g->base.libraries, sizeof g->base.libraries, "CUDA %d.%d, %s", runtime / 1000, runtime % 1000 / 10, peers);
}

asparse_status bench_cuda_open(const bench_options *options, bench_engine **out) {
  asparse_status status = ASPARSE_OK;
  cuda_engine *g = NULL;
  bench_engine *engine = NULL;
  void *worst = NULL;
  int cache = 0;
  ALLOC_ZERO(g, 1);
  engine = &g->base;
  engine->functions = &functions;
  engine->backend = "cuda";
  engine->precision = ASPARSE_BF16;
  g->options = options;
  TRY(asparse_device_open(0, &g->device));
  TRY(asparse_peer_handles_create(g->device, &g->handles));
  TRY_CUDA(cudaEventCreate(&g->start));
  TRY_CUDA(cudaEventCreate(&g->stop));
  TRY(asparse_device_malloc(g->device, sizeof *g->worst, "the largest error", &worst));
  g->worst = worst;
  if (options->flush_l2) {
    TRY_CUDA(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, g->device->ordinal));
    g->flush_bytes = (size_t)cache * FLUSH_CACHES;
    TRY(asparse_device_malloc(g->device, g->flush_bytes, "a buffer larger than L2", &g->flush));
    TRY_CUDA(cudaMemset(g->flush, 0, g->flush_bytes));
  }
  TRY(list_kernels(engine));
  describe(g);
  *out = engine;
  engine = NULL;
cleanup:
  bench_engine_close(&engine);
  return status;
}
