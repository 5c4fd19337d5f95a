/* The host kernels against a plain triple loop: every format, unit, type, width, thread count.
 * The instruction set is the one ASPARSE_ISA names; CTest runs the test once for each. */
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/dense.h"
#include "kernels/kernels.h"
#include "partition/partition.h"

static asparse_engine *engine;
static const asparse_backend *host;

typedef struct layout {
  asparse_format format;
  int32_t unit;
} layout;

static const layout layouts[] = {{ASPARSE_FORMAT_CSR, 1},   {ASPARSE_FORMAT_WCSR, 8},  {ASPARSE_FORMAT_WCSR, 16},
                                 {ASPARSE_FORMAT_WCSR, 32}, {ASPARSE_FORMAT_WCSR, 64}, {ASPARSE_FORMAT_BCSR, 16},
                                 {ASPARSE_FORMAT_BCSR, 32}, {ASPARSE_FORMAT_BCSR, 64}};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };
static const asparse_dtype dtypes[] = {ASPARSE_FP64, ASPARSE_FP32, ASPARSE_BF16};

/* ---- matrices --------------------------------------------------------------------------------- */

typedef bool is_entry(int64_t i, int64_t j);

static uint64_t hash(int64_t i, int64_t j) { return asparse_mix64(asparse_mix64((uint64_t)i) ^ (uint64_t)j); }
static bool nothing(int64_t i, int64_t j) { return i < 0 && j < 0; }
static bool everything(int64_t i, int64_t j) { return i >= 0 && j >= 0; }
static bool one_in_ten(int64_t i, int64_t j) { return hash(i, j) % 10 == 0; }
static bool one_in_fifty(int64_t i, int64_t j) { return hash(i, j) % 50 == 0; }
static bool tridiagonal(int64_t i, int64_t j) { return i - j <= 1 && j - i <= 1; }
static bool one_dense_row(int64_t i, int64_t j) { return i == 40 || (i == j && i % 3 == 0); }
static bool last_corner(int64_t i, int64_t j) { return i >= 69 && j >= 69; }
static bool every_other_block(int64_t i, int64_t j) { return (i / 16 + j / 16) % 2 == 0; }

typedef struct shape {
  const char *name;
  int32_t m, k;
  is_entry *entry;
} shape;

static const shape shapes[] = {{"no rows", 0, 5, nothing},
                               {"no columns", 5, 0, nothing},
                               {"no entries", 9, 9, nothing},
                               {"1 × 1", 1, 1, everything},
                               {"dense 7 × 3", 7, 3, everything},
                               {"column", 65, 1, everything},
                               {"row", 1, 300, everything},
                               {"random", 83, 71, one_in_ten},
                               {"sparse", 130, 257, one_in_fifty},
                               {"tridiagonal", 100, 100, tridiagonal},
                               {"dense row", 97, 900, one_dense_row},
                               {"corner", 70, 70, last_corner},
                               {"blocks", 64, 128, every_other_block},
                               {"dense 64 × 64", 64, 64, everything}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static asparse_local_csr *create(const shape *s, asparse_dtype dtype) {
  int64_t nnz = 0;
  for (int64_t i = 0; i < s->m; i++)
    for (int64_t j = 0; j < s->k; j++) nnz += s->entry(i, j);
  asparse_local_csr *a;
  assert_int_equal(asparse_local_csr_create(&a, s->m, s->k, nnz, dtype), ASPARSE_OK);
  int64_t e = 0;
  for (int32_t i = 0; i < s->m; i++) {
    for (int32_t j = 0; j < s->k; j++) {
      if (!s->entry(i, j)) continue;
      a->col_idx[e] = j;
      asparse_store(dtype, a->values, e++, asparse_random_element(7, i, j));
    }
    a->row_ptr[i + 1] = e;
  }
  return a;
}

/* B or C with ld = n + padding; the allocation ends with the last element of the last row. */
static asparse_dense *create_dense(int64_t m, int64_t n, int64_t padding, asparse_dtype dtype) {
  asparse_dense *d;
  int64_t count = m > 0 ? (m - 1) * (n + padding) + n : 0;
  assert_int_equal(asparse_dense_create(&d, 1, count, dtype), ASPARSE_OK);
  d->m = m;
  d->n = n;
  d->ld = n + padding;
  return d;
}

static int64_t dense_count(const asparse_dense *d) { return d->m > 0 ? (d->m - 1) * d->ld + d->n : 0; }

/* ---- the comparison --------------------------------------------------------------------------- */

typedef struct problem {
  asparse_local_csr *a;
  asparse_dense *b;
  double *reference; /* [m × n] */
  double *bound;     /* [m × n] γ_q·Σ|a||b| (Higham, Accuracy and Stability, ch. 3) */
} problem;

static problem create_problem(const shape *s, asparse_dtype dtype, int64_t n, int64_t padding) {
  problem p = {.a = create(s, dtype), .b = create_dense(s->k, n, padding, dtype)};
  for (int64_t x = 0; x < dense_count(p.b); x++) asparse_store(dtype, p.b->values, x, NAN);
  asparse_dense_fill_random(p.b, 3, 0, NULL);
  p.reference = asparse_malloc(s->m * n, sizeof(double), "reference");
  p.bound = asparse_calloc(s->m * n, sizeof(double), "bound");
  assert_int_equal(asparse_reference_multiply(p.a, p.b, p.reference), ASPARSE_OK);
  const double u = dtype == ASPARSE_FP64 ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
  for (int64_t i = 0; i < s->m; i++) {
    /* + 1: the addition of C when accumulating. */
    const double q = (double)(p.a->row_ptr[i + 1] - p.a->row_ptr[i]) + 1, gamma = q * u / (1 - q * u);
    for (int64_t e = p.a->row_ptr[i]; e < p.a->row_ptr[i + 1]; e++)
      for (int64_t j = 0; j < n; j++)
        p.bound[i * n + j] += gamma * fabs(asparse_load(dtype, p.a->values, e)) *
                              fabs(asparse_load(dtype, p.b->values, p.a->col_idx[e] * p.b->ld + j));
  }
  return p;
}

static void destroy_problem(problem *p) {
  asparse_local_csr_destroy(&p->a);
  asparse_dense_destroy(&p->b);
  asparse_free(p->reference);
  asparse_free(p->bound);
}

static void multiply(const asparse_shard *shard, int64_t begin, int64_t end, const problem *p, asparse_dense *c,
                     bool accumulate) {
  assert_int_equal(host->multiply(engine, &(asparse_operator){.shard = shard}, begin, end, p->b->n, p->b->values,
                                  p->b->ld, c->values, c->ld, accumulate),
                   ASPARSE_OK);
}

/* |c − scale·reference − before| within the bound; what lies between the rows still holds `untouched`. */
static void check(const problem *p, const asparse_dense *c, double before, double times, double untouched) {
  const double u = c->dtype == ASPARSE_FP64 ? DBL_EPSILON : FLT_EPSILON;
  for (int64_t i = 0; i < c->m; i++) {
    for (int64_t j = 0; j < c->ld && i * c->ld + j < dense_count(c); j++) {
      const double found = asparse_load(c->dtype, c->values, i * c->ld + j);
      if (j >= c->n) {
        assert_true(found == untouched || (isnan(found) && isnan(untouched)));
        continue;
      }
      const double expected = before + times * p->reference[i * c->n + j];
      const double bound = times * (p->bound[i * c->n + j] + u * fabs(expected)) + times * u * fabs(before);
      if (!(fabs(found - expected) <= bound))
        fail_msg("C(%lld, %lld) = %.17g, expected %.17g ± %.3g", (long long)i, (long long)j, found, expected, bound);
    }
  }
}

static void fill(asparse_dense *c, double value) {
  for (int64_t x = 0; x < dense_count(c); x++) asparse_store(c->dtype, c->values, x, value);
}

static asparse_shard *build(asparse_local_csr *a, layout l) {
  asparse_shard *shard;
  assert_int_equal(asparse_shard_build(a, l.format, l.unit, &shard), ASPARSE_OK);
  return shard;
}

/* Overwriting NaN, then adding; whole and in ranges of units. */
static void compare_shard(const problem *p, layout l, int64_t padding) {
  asparse_shard *shard = build(p->a, l);
  const int64_t units = asparse_shard_units(shard);
  asparse_dense *c = create_dense(p->a->m, p->b->n, padding, asparse_dtype_result(p->a->dtype));
  asparse_dense *parts = create_dense(p->a->m, p->b->n, padding, c->dtype);
  fill(c, NAN);
  multiply(shard, 0, units, p, c, false);
  check(p, c, 0, 1, NAN);

  fill(parts, NAN);
  const int64_t step = units / 3 + 1;
  for (int64_t begin = 0; begin < units; begin += step)
    multiply(shard, begin, begin + step < units ? begin + step : units, p, parts, false);
  assert_memory_equal(c->values, parts->values, (size_t)dense_count(c) * asparse_dtype_size(c->dtype));

  fill(c, 0.5);
  multiply(shard, 0, units, p, c, true);
  check(p, c, 0.5, 1, 0.5);
  multiply(shard, 0, units, p, c, true);
  check(p, c, 0.5, 2, 0.5);
  asparse_dense_destroy(&parts);
  asparse_dense_destroy(&c);
  asparse_shard_destroy(&shard);
}

static void test_all_against_reference(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 2, 4, 7, 33, 64, 100, 257};
  for (size_t s = 0; s < N_SHAPES; s++) {
    for (size_t d = 0; d < 3; d++) {
      for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        problem p = create_problem(&shapes[s], dtypes[d], widths[w], w % 2 == 0 ? 0 : 5);
        for (size_t l = 0; l < N_LAYOUTS; l++) compare_shard(&p, layouts[l], w % 3 == 0 ? 0 : 3);
        destroy_problem(&p);
      }
    }
  }
}

/* ---- the same bits, however it is run --------------------------------------------------------- */

/* Rows of very different length, one of them longer than a thread's share. */
static bool skewed(int64_t i, int64_t j) { return i == 17 || i == 300 || hash(i, j) % (64 + (uint64_t)i) == 0; }

static void test_bits_do_not_depend_on_threads_or_formats(void **state) {
  (void)state;
  static const shape large = {"skewed", 500, 3000, skewed};
  const int threads = omp_get_max_threads();
  for (size_t d = 0; d < 3; d++) {
    problem p = create_problem(&large, dtypes[d], 100, 0);
    asparse_dense *first = create_dense(large.m, 100, 0, asparse_dtype_result(dtypes[d]));
    asparse_dense *c = create_dense(large.m, 100, 0, first->dtype);
    for (size_t l = 0; l < N_LAYOUTS; l++) {
      asparse_shard *shard = build(p.a, layouts[l]);
      for (int t = 1; t <= 3; t++) {
        omp_set_num_threads(t);
        asparse_dense *out = l == 0 && t == 1 ? first : c;
        fill(out, NAN);
        multiply(shard, 0, asparse_shard_units(shard), &p, out, false);
        assert_memory_equal(out->values, first->values, (size_t)dense_count(c) * asparse_dtype_size(c->dtype));
      }
      asparse_shard_destroy(&shard);
    }
    check(&p, first, 0, 1, NAN);
    asparse_dense_destroy(&first);
    asparse_dense_destroy(&c);
    destroy_problem(&p);
  }
  omp_set_num_threads(threads);
}

/* C is large enough to be written past the caches, and 64-byte aligned. */
static void test_streamed_result(void **state) {
  (void)state;
  static const shape tall = {"tall", 20000, 3, everything};
  for (size_t d = 0; d < 3; d++) {
    problem p = create_problem(&tall, dtypes[d], 128, 0);
    asparse_dense *c;
    assert_int_equal(asparse_dense_create(&c, tall.m, 128, asparse_dtype_result(dtypes[d])), ASPARSE_OK);
    for (size_t l = 0; l < N_LAYOUTS; l++) {
      asparse_shard *shard = build(p.a, layouts[l]);
      fill(c, NAN);
      multiply(shard, 0, asparse_shard_units(shard), &p, c, false);
      check(&p, c, 0, 1, NAN);
      asparse_shard_destroy(&shard);
    }
    asparse_dense_destroy(&c);
    destroy_problem(&p);
  }
}

/* ---- values that are not finite ---------------------------------------------------------------- */

/* What CSR arithmetic gives: Inf and NaN of B reach the rows with an entry in their column, and an
 * entry 0 that A stores makes NaN of Inf. */
static void test_padding_does_not_spread(void **state) {
  (void)state;
  static const shape awkward[] = {
      {"random", 83, 71, one_in_ten}, {"row", 1, 300, everything}, {"corner", 70, 70, last_corner}};
  static const double bad[] = {INFINITY, -INFINITY, NAN};
  for (size_t s = 0; s < 3; s++) {
    for (size_t d = 0; d < 3; d++) {
      problem p = create_problem(&awkward[s], dtypes[d], 67, 2);
      for (int64_t x = 0; x < 40; x++)
        asparse_store(dtypes[d], p.b->values,
                      (int64_t)(hash(x, 1) % (uint64_t)p.b->m) * p.b->ld + (int64_t)(hash(x, 2) % 67), bad[x % 3]);
      for (int64_t e = 0; e < p.a->row_ptr[p.a->m]; e += 3) asparse_store(dtypes[d], p.a->values, e, 0.0);
      assert_int_equal(asparse_reference_multiply(p.a, p.b, p.reference), ASPARSE_OK);
      asparse_dense *c = create_dense(p.a->m, 67, 0, asparse_dtype_result(dtypes[d]));
      for (size_t l = 0; l < N_LAYOUTS; l++) {
        asparse_shard *shard = build(p.a, layouts[l]);
        multiply(shard, 0, asparse_shard_units(shard), &p, c, false);
        for (int64_t x = 0; x < p.a->m * 67; x++) {
          const double found = asparse_load(c->dtype, c->values, x), expected = p.reference[x];
          assert_true(isnan(expected) == isnan(found));
          if (isinf(expected)) assert_true(found == expected);
          else if (!isnan(expected)) assert_true(fabs(found - expected) <= p.bound[x] + FLT_EPSILON * fabs(expected));
        }
        asparse_shard_destroy(&shard);
      }
      asparse_dense_destroy(&c);
      destroy_problem(&p);
    }
  }
}

/* ---- memory beyond the operands -------------------------------------------------------------- */

/* bytes that end where an inaccessible page begins; *mapping of *length bytes is to be unmapped. */
static void *before_guard_page(int64_t bytes, void **mapping, size_t *length) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = ((size_t)bytes + page - 1) / page * page;
  *length = room + page;
  *mapping = mmap(NULL, *length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(*mapping != MAP_FAILED);
  assert_int_equal(mprotect((char *)*mapping + room, page, PROT_NONE), 0);
  return (char *)*mapping + room - (size_t)bytes;
}

/* The last row of B ends at the guard page, and so does the last row of C. */
static void test_nothing_beyond_the_operands_is_touched(void **state) {
  (void)state;
  static const shape s = {"dense 9 × 5", 9, 5, everything};
  for (size_t d = 0; d < 3; d++) {
    for (int64_t n = 1; n <= 40; n++) {
      problem p = create_problem(&s, dtypes[d], n, 0);
      const asparse_dtype result = asparse_dtype_result(dtypes[d]);
      const int64_t b_bytes = dense_count(p.b) * (int64_t)asparse_dtype_size(dtypes[d]);
      const int64_t c_bytes = s.m * n * (int64_t)asparse_dtype_size(result);
      void *b_mapping, *c_mapping;
      size_t b_length, c_length;
      void *b = before_guard_page(b_bytes, &b_mapping, &b_length);
      asparse_dense c = {.m = s.m, .n = n, .ld = n, .dtype = result};
      c.values = before_guard_page(c_bytes, &c_mapping, &c_length);
      memcpy(b, p.b->values, (size_t)b_bytes);
      for (size_t l = 0; l < N_LAYOUTS; l++) {
        asparse_shard *shard = build(p.a, layouts[l]);
        for (int accumulate = 0; accumulate < 2; accumulate++)
          assert_int_equal(host->multiply(engine, &(asparse_operator){.shard = shard}, 0, asparse_shard_units(shard), n,
                                          b, n, c.values, n, accumulate),
                           ASPARSE_OK);
        check(&p, &c, 0, 2, NAN);
        asparse_shard_destroy(&shard);
      }
      munmap(b_mapping, b_length);
      munmap(c_mapping, c_length);
      destroy_problem(&p);
    }
  }
}

/* ---- the rest of the table ---------------------------------------------------------------------- */

static void test_pack(void **state) {
  (void)state;
  static const int32_t rows[] = {3, 0, 3, 9};
  for (size_t d = 0; d < 3; d++) {
    asparse_dense *b = create_dense(10, 6, 2, dtypes[d]), *packed = create_dense(4, 6, 0, dtypes[d]);
    asparse_dense_fill_random(b, 5, 0, NULL);
    assert_int_equal(host->pack(engine, ASPARSE_QUEUE_COMPUTE, dtypes[d], 4, rows, 6, b->values, b->ld, packed->values),
                     ASPARSE_OK);
    for (int64_t i = 0; i < 4; i++)
      for (int64_t j = 0; j < 6; j++)
        assert_true(asparse_load(dtypes[d], packed->values, i * 6 + j) ==
                    asparse_load(dtypes[d], b->values, rows[i] * b->ld + j));
    assert_int_equal(host->pack(engine, ASPARSE_QUEUE_COMPUTE, dtypes[d], 4, NULL, 6, b->values, b->ld, packed->values),
                     ASPARSE_OK);
    for (int64_t x = 0; x < 24; x++)
      assert_true(asparse_load(dtypes[d], packed->values, x) ==
                  asparse_load(dtypes[d], b->values, x / 6 * b->ld + x % 6));
    assert_int_equal(host->pack(engine, ASPARSE_QUEUE_COMPUTE, dtypes[d], 0, NULL, 6, b->values, b->ld, packed->values),
                     ASPARSE_OK);
    asparse_dense_destroy(&b);
    asparse_dense_destroy(&packed);
  }
}

static void test_wrong_arguments(void **state) {
  (void)state;
  problem p = create_problem(&shapes[4], ASPARSE_FP64, 4, 0);
  asparse_shard *shard = build(p.a, layouts[0]);
  double c[28];
  static const struct {
    int64_t begin, end, n, ldb, ldc;
  } wrong[] = {{-1, 7, 4, 4, 4}, {0, 8, 4, 4, 4}, {5, 4, 4, 4, 4}, {0, 7, -1, 4, 4}, {0, 7, 4, 3, 4}, {0, 7, 4, 4, 3}};
  for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
    assert_int_equal(host->multiply(engine, &(asparse_operator){.shard = shard}, wrong[w].begin, wrong[w].end,
                                    wrong[w].n, p.b->values, wrong[w].ldb, c, wrong[w].ldc, false),
                     ASPARSE_ERR_RUNTIME);
    asparse_error_clear();
  }
  asparse_shard_destroy(&shard);
  destroy_problem(&p);
}

/* A GPU where there is one that can be used, else the host; asked for and missing, a reason. */
static void test_engines(void **state) {
  (void)state;
  asparse_engine *found = NULL, *gpu = NULL;
  assert_string_equal(host->name, "host");
  assert_int_equal(asparse_engine_open(ASPARSE_BACKEND_AUTO, 0, &found), ASPARSE_OK);
  if (asparse_engine_open(ASPARSE_BACKEND_CUDA, 0, &gpu) == ASPARSE_OK) {
    assert_ptr_equal(found->backend, gpu->backend);
  } else {
    assert_ptr_equal(found->backend, host);
    assert_non_null(strstr(asparse_error_message(), "--backend host"));
    asparse_error_clear();
  }
  asparse_engine_close(&gpu);
  asparse_engine_close(&found);
  const char *wanted = getenv("ASPARSE_ISA");
  if (wanted) assert_string_equal(asparse_host_isa(), wanted);
}

static void test_host_refuses(void **state) {
  (void)state;
  asparse_local_csr *a = NULL;
  asparse_shard *shard = NULL;
  asparse_operator operator= {0};
  assert_int_equal(asparse_local_csr_create(&a, 2, 2, 0, ASPARSE_BF16), ASPARSE_OK);
  memset(a->row_ptr, 0, 3 * sizeof *a->row_ptr);
  assert_int_equal(asparse_shard_build(a, ASPARSE_FORMAT_CSR, 1, &shard), ASPARSE_OK);
  assert_int_equal(host->prepare(engine, shard, "wcsr-gather", 8, ASPARSE_FP32, &operator), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  assert_int_equal(host->prepare(engine, shard, NULL, 8, ASPARSE_BF16, &operator), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  assert_int_equal(host->prepare(engine, shard, NULL, 8, ASPARSE_FP32, &operator), ASPARSE_OK);
  host->discard(&operator);
  assert_null(operator.shard);
  asparse_shard_destroy(&shard);
  asparse_local_csr_destroy(&a);
}

static int open_host(void **state) {
  (void)state;
  asparse_status status = asparse_engine_open(ASPARSE_BACKEND_HOST, 0, &engine);
  if (status == ASPARSE_OK) host = engine->backend;
  return status != ASPARSE_OK;
}

static int close_host(void **state) {
  (void)state;
  asparse_engine_close(&engine);
  return 0;
}

/* CTest counts this exit code as skipped. */
enum { SKIPPED = 77 };

int main(void) {
  const char *wanted = getenv("ASPARSE_ISA");
  if (open_host(NULL) != 0) {
    fprintf(stderr, "%s\n", asparse_error_message());
    return wanted ? SKIPPED : 1;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_against_reference),
      cmocka_unit_test(test_bits_do_not_depend_on_threads_or_formats),
      cmocka_unit_test(test_streamed_result),
      cmocka_unit_test(test_padding_does_not_spread),
      cmocka_unit_test(test_nothing_beyond_the_operands_is_touched),
      cmocka_unit_test(test_pack),
      cmocka_unit_test(test_wrong_arguments),
      cmocka_unit_test(test_engines),
      cmocka_unit_test(test_host_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, close_host);
}
