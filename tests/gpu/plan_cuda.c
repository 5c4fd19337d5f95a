/* The plan on a GPU against the oracle: precisions, formats, kernels, exchanges, operands on host and device, Inf and
 * NaN, repeatability, capture into a CUDA graph, refusals. On one rank or several that share the GPU. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/device_shard.h"
#include "plan/plan.h"
#include "tests/slabs.h"

enum { SKIPPED = 77, RUNS = 20 };

typedef struct problem {
  asparse_csr *whole;
  asparse_matrix *a;
  asparse_plan *plan;
  asparse_dense *b, *c, *there_b, *there_c;
} problem;

static void problem_free(problem *p) {
  asparse_dense_destroy(&p->b), asparse_dense_destroy(&p->c);
  asparse_dense_destroy(&p->there_b), asparse_dense_destroy(&p->there_c);
  asparse_plan_destroy(&p->plan);
  asparse_matrix_destroy(&p->a);
}

static asparse_options cuda_options(asparse_dtype dtype) {
  asparse_options options = asparse_options_default();
  options.backend = ASPARSE_BACKEND_CUDA;
  options.own_precision = false;
  options.precision = dtype;
  return options;
}

static void poison(asparse_dense *c) {
  memset(c->values, 0xff, (size_t)(c->m * c->ld) * asparse_dtype_size(c->dtype)); /* NaN */
}

/* Takes this rank's slab. */
static asparse_status problem_create_from(problem *p, asparse_csr *slab, const asparse_options *options, int64_t n) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_matrix_create(test_comm, &slab, options, n, &p->a));
  TRY(asparse_plan_create(p->a, options, n, &p->plan));
  status = asparse_plan_operands(p->plan, &p->b, &p->c);
  if (status == ASPARSE_OK) status = asparse_plan_engine_operands(p->plan, &p->there_b, &p->there_c);
  TRY(asparse_comm_agree(test_comm, status));
  asparse_plan_fill_random(p->plan, p->b, 7);
  poison(p->c);
cleanup:
  asparse_csr_destroy(&slab);
  return status;
}

static asparse_status problem_create(problem *p, uint64_t *state, const asparse_options *options, int64_t n) {
  return problem_create_from(p, test_slab(p->whole, test_comm, state), options, n);
}

/* C of operands that stay on the device equals C of host operands bit for bit. */
static void device_operands_agree(problem *p) {
  const size_t bytes = (size_t)(p->c->m * p->c->ld) * asparse_dtype_size(p->c->dtype);
  char *first = malloc(bytes + 1);
  memcpy(first, p->c->values, bytes);
  assert_int_equal(asparse_plan_copy(p->plan, p->b, p->there_b), ASPARSE_OK);
  for (int run = 0; run < RUNS; run++) {
    poison(p->c);
    assert_int_equal(asparse_plan_copy(p->plan, p->c, p->there_c), ASPARSE_OK);
    assert_int_equal(asparse_plan_execute(p->plan, p->there_b, p->there_c), ASPARSE_OK);
    assert_int_equal(asparse_plan_wait(p->plan), ASPARSE_OK);
    assert_int_equal(asparse_plan_copy(p->plan, p->there_c, p->c), ASPARSE_OK);
    assert_memory_equal(first, p->c->values, bytes);
  }
  free(first);
}

static void check(uint64_t *state, asparse_csr *whole, const asparse_options *options, int64_t n) {
  problem p = {.whole = whole};
  asparse_verification v;
  asparse_stats stats;
  assert_int_equal(problem_create(&p, state, options, n), ASPARSE_OK);
  assert_int_equal(asparse_plan_execute(p.plan, p.b, p.c), ASPARSE_OK);
  assert_int_equal(asparse_verify(p.plan, p.b, p.c, 3, &v), ASPARSE_OK);
  assert_true(v.passed && v.rows_checked == whole->m);
  assert_true(whole->nnz == 0 || v.elements_checked > 0);
  asparse_plan_stats(p.plan, &stats);
  assert_string_equal(stats.backend, "cuda");
  assert_true(options->kernel == NULL || strcmp(stats.kernel, options->kernel) == 0);
  assert_true(stats.total_seconds > 0 && stats.least_seconds > 0 && stats.predicted_seconds > 0);
  device_operands_agree(&p);
  problem_free(&p);
}

static const struct {
  int64_t m, k, sparsity, dense_row;
} shapes[] = {{90, 90, 8, -1},   {1, 50, 2, -1}, {300, 200, 20, 3},
              {257, 129, 4, -1}, {3, 3, 1, -1},  {20, 20, 1 << 20, -1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static void every_precision(void **unused) {
  (void)unused;
  uint64_t state = 1;
  for (int s = 0; s < N_SHAPES; s++) {
    asparse_csr *whole = test_whole(&state, shapes[s].m, shapes[s].k, shapes[s].sparsity, shapes[s].dense_row);
    for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) {
      for (int exchange = ASPARSE_EXCHANGE_REPLICATE; exchange <= ASPARSE_EXCHANGE_ROWS; exchange++) {
        asparse_options options = cuda_options((asparse_dtype)dtype);
        options.exchange = (asparse_exchange_mode)exchange;
        check(&state, whole, &options, 1 + 16 * s);
        check(&state, whole, &options, 33);
      }
    }
    asparse_csr_destroy(&whole);
  }
}

static void every_kernel(void **unused) {
  (void)unused;
  uint64_t state = 2;
  for (int s = 0; s < N_SHAPES; s++) {
    asparse_csr *whole = test_whole(&state, shapes[s].m, shapes[s].k, shapes[s].sparsity, shapes[s].dense_row);
    for (int i = 0; asparse_device_kernels[i]; i++) {
      const asparse_device_kernel *kernel = asparse_device_kernels[i];
      if (!kernel->automatic) continue;
      for (int u = 0; kernel->units[u]; u++) {
        for (int bf16 = 0; bf16 < 2; bf16++) {
          asparse_options options = cuda_options(ASPARSE_BF16);
          options.format = kernel->format;
          options.unit = kernel->format == ASPARSE_FORMAT_CSR ? 0 : kernel->units[u];
          options.kernel = kernel->name;
          options.bf16_result = bf16;
          check(&state, whole, &options, 40 + s);
          check(&state, whole, &options, 256);
        }
      }
    }
    asparse_csr_destroy(&whole);
  }
}

/* Inf and NaN of B reach the rows that store an entry in their column, and no other. */
static void special_values(void **unused) {
  (void)unused;
  uint64_t state = 3;
  asparse_csr *whole = test_whole(&state, 200, 200, 15, -1);
  for (int format = ASPARSE_FORMAT_CSR; format <= ASPARSE_FORMAT_BCSR; format++) {
    asparse_options options = cuda_options(ASPARSE_BF16);
    problem p = {.whole = whole};
    asparse_verification v;
    options.format = (asparse_format)format;
    assert_int_equal(problem_create(&p, &state, &options, 24), ASPARSE_OK);
    for (int64_t i = 0; i < p.b->m; i++) {
      const int64_t row = asparse_plan_b_row(p.plan, i);
      if (row % 37 == 0) asparse_store(ASPARSE_BF16, p.b->values, i * p.b->ld + row % 24, row % 2 ? INFINITY : NAN);
    }
    assert_int_equal(asparse_plan_execute(p.plan, p.b, p.c), ASPARSE_OK);
    assert_int_equal(asparse_verify(p.plan, p.b, p.c, 3, &v), ASPARSE_OK);
    assert_true(v.passed && v.rows_unchecked == 0);
    problem_free(&p);
  }
  asparse_csr_destroy(&whole);
}

/* With one rank execute can be captured; its replay gives the same bits. */
static void graph_capture(void **unused) {
  (void)unused;
  if (test_comm->size > 1) return;
  uint64_t state = 4;
  asparse_csr *whole = test_whole(&state, 300, 300, 10, 7);
  for (int format = ASPARSE_FORMAT_CSR; format <= ASPARSE_FORMAT_BCSR; format++) {
    asparse_options options = cuda_options(ASPARSE_BF16);
    options.format = (asparse_format)format;
    problem p = {.whole = whole};
    assert_int_equal(problem_create(&p, &state, &options, 64), ASPARSE_OK);
    assert_int_equal(asparse_plan_execute(p.plan, p.b, p.c), ASPARSE_OK);
    const size_t bytes = (size_t)(p.c->m * p.c->ld) * sizeof(float);
    char *wanted = malloc(bytes);
    memcpy(wanted, p.c->values, bytes);
    poison(p.c);
    assert_int_equal(asparse_plan_copy(p.plan, p.b, p.there_b), ASPARSE_OK);
    assert_int_equal(asparse_plan_copy(p.plan, p.c, p.there_c), ASPARSE_OK);

    cudaStream_t stream = asparse_plan_stream(p.plan);
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    assert_int_equal(asparse_plan_execute(p.plan, p.there_b, p.there_c), ASPARSE_OK);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&replay, graph, 0), cudaSuccess);
    for (int run = 0; run < 3; run++) {
      assert_int_equal(cudaGraphLaunch(replay, stream), cudaSuccess);
      assert_int_equal(asparse_plan_wait(p.plan), ASPARSE_OK);
      assert_int_equal(asparse_plan_copy(p.plan, p.there_c, p.c), ASPARSE_OK);
      assert_memory_equal(wanted, p.c->values, bytes);
    }
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    free(wanted);
    problem_free(&p);
  }
  asparse_csr_destroy(&whole);
}

static void refuse(asparse_csr *whole, uint64_t *state, const asparse_options *options, const char *says) {
  problem p = {.whole = whole};
  assert_int_equal(problem_create(&p, state, options, 8), ASPARSE_ERR_USAGE);
  assert_non_null(strstr(asparse_error_message(), says));
  asparse_error_clear();
  problem_free(&p);
}

static void refusals(void **unused) {
  (void)unused;
  uint64_t state = 5;
  asparse_csr *whole = test_whole(&state, 50, 50, 5, -1);
  asparse_options options = cuda_options(ASPARSE_BF16);
  options.kernel = "no-such-kernel";
  refuse(whole, &state, &options, "no-such-kernel");
  options.kernel = NULL;
  options.format = ASPARSE_FORMAT_BCSR;
  options.unit = 16;
  refuse(whole, &state, &options, "unit 16");
  options = cuda_options(ASPARSE_FP64);
  options.format = ASPARSE_FORMAT_WCSR;
  refuse(whole, &state, &options, "fp64");
  options.format = ASPARSE_FORMAT_AUTO;
  options.bf16_result = true;
  refuse(whole, &state, &options, "bf16");
  asparse_csr_destroy(&whole);
}

/* The n-th host allocation fails on one rank: all ranks report it, nothing leaks. */
static void allocation_failures(void **unused) {
  (void)unused;
  asparse_options options = cuda_options(ASPARSE_BF16);
  options.format = ASPARSE_FORMAT_WCSR;
  bool reached_end = false;
  for (int64_t n = 1; n < 400 && !reached_end; n += 1 + n / 10) {
    uint64_t state = 8;
    problem p = {.whole = test_whole(&state, 70, 70, 6, -1)};
    asparse_csr *slab = test_slab(p.whole, test_comm, &state);
    asparse_memory_fail_at(test_comm->rank == n % test_comm->size ? n : 0);
    asparse_status status = problem_create_from(&p, slab, &options, 6);
    if (status == ASPARSE_OK) status = asparse_comm_agree(test_comm, asparse_plan_execute(p.plan, p.b, p.c));
    asparse_memory_fail_at(0);
    assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
    reached_end = status == ASPARSE_OK && n > 50;
    asparse_error_clear();
    problem_free(&p);
    asparse_csr_destroy(&p.whole);
    assert_int_equal(asparse_memory_live_blocks(), 2); /* the two communicators */
  }
  assert_true(reached_end);
}

/* What does not fit says how much was needed. */
static void out_of_device_memory(void **unused) {
  (void)unused;
  asparse_engine *engine = NULL;
  void *d = NULL;
  assert_int_equal(asparse_engine_open(ASPARSE_BACKEND_CUDA, 0, &engine), ASPARSE_OK);
  assert_int_equal(engine->backend->allocate(engine, INT64_C(1) << 40, 16, "B", &d), ASPARSE_ERR_MEMORY);
  assert_non_null(strstr(asparse_error_message(), "B needs 17592"));
  asparse_error_clear();
  assert_int_equal(engine->backend->allocate(engine, INT64_C(1) << 62, 16, "B", &d), ASPARSE_ERR_MEMORY);
  asparse_error_clear();
  assert_int_equal(engine->backend->allocate(engine, 16, 16, "B", &d), ASPARSE_OK);
  engine->backend->release(d);
  asparse_engine_close(&engine);
}

static int group(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_precision),      cmocka_unit_test(every_kernel), cmocka_unit_test(special_values),
      cmocka_unit_test(graph_capture),        cmocka_unit_test(refusals),     cmocka_unit_test(allocation_failures),
      cmocka_unit_test(out_of_device_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("skipped: no GPU\n");
    return SKIPPED;
  }
  return test_run(&argc, &argv, group);
}
