/* The whole path on all ranks against the oracle: formats, exchanges, partitions, types, short messages,
 * allocation failures; and verification against planted faults. */
#include <math.h>
#include <string.h>

#include "asparse_config.h"
#include "plan/plan.h"
#include "slabs.h"

typedef struct problem {
  asparse_csr *whole;
  asparse_matrix *a;
  asparse_plan *plan;
  asparse_dense *b, *c;
} problem;

static void problem_free(problem *p) {
  asparse_dense_destroy(&p->b);
  asparse_dense_destroy(&p->c);
  asparse_plan_destroy(&p->plan);
  asparse_matrix_destroy(&p->a);
  asparse_csr_destroy(&p->whole);
}

static asparse_status problem_solve(problem *p, asparse_csr *slab, const asparse_options *options, int64_t n) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_matrix_create(test_comm, &slab, options, n, &p->a));
  TRY(asparse_plan_create(p->a, options, n, &p->plan));
  TRY(asparse_comm_agree(test_comm, asparse_plan_operands(p->plan, &p->b, &p->c)));
  asparse_plan_fill_random(p->plan, p->b, 7);
  memset(p->c->values, 0xff, (size_t)(p->c->m * p->c->ld) * asparse_dtype_size(p->c->dtype)); /* NaN */
  TRY(asparse_plan_execute(p->plan, p->b, p->c));
cleanup:
  return status;
}

/* |C − AB| ≤ γ·|A||B| for this rank's share, from the whole matrix and B made anew. */
static void assert_right(const problem *p, asparse_dtype dtype) {
  const asparse_csr *a = p->whole;
  double u = dtype == ASPARSE_FP64 ? 0x1p-52 : 0x1p-23;
  double element[2];
  for (int64_t i = 0; i < p->c->m; i++) {
    int64_t row = asparse_plan_c_row(p->plan, i);
    for (int64_t j = 0; j < p->c->n; j++) {
      double sum = 0, size = 0, q = (double)(a->row_ptr[row + 1] - a->row_ptr[row]) + 1;
      for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++) {
        asparse_store(dtype, element, 0, asparse_random_element(7, a->col_idx[e], asparse_plan_column(p->plan, j)));
        asparse_store(dtype, element + 1, 0, ((const double *)a->values)[e]);
        double x = asparse_load(dtype, element, 0) * asparse_load(dtype, element + 1, 0);
        sum += x;
        size += fabs(x);
      }
      double found = asparse_load(p->c->dtype, p->c->values, i * p->c->ld + j);
      assert_true(fabs(found - sum) <= q * u * size);
    }
  }
}

static void check(uint64_t *state, asparse_csr *whole, const asparse_options *options, int64_t n) {
  problem p = {.whole = whole};
  asparse_verification verification;
  assert_int_equal(problem_solve(&p, test_slab(whole, test_comm, state), options, n), ASPARSE_OK);
  assert_right(&p, p.a->dtype);
  assert_int_equal(asparse_verify(p.plan, p.b, p.c, 3, &verification), ASPARSE_OK);
  assert_true(verification.passed);
  assert_int_equal(verification.rows_checked, whole->m);
  p.whole = NULL;
  problem_free(&p);
}

/* More ranks than a machine has cores take long: fewer combinations of what is covered on fewer ranks. */
static bool many_ranks(void) { return test_comm->size > 4; }

static void all_paths_are_right(void **unused) {
  (void)unused;
  static const struct {
    int64_t m, k, sparsity, dense_row;
  } shapes[] = {{90, 90, 8, -1},   {1, 50, 2, -1}, {50, 1, 2, -1},       {40, 130, 10, 3},
                {130, 40, 50, -1}, {3, 3, 1, -1},  {20, 20, 1000000, -1}};
  static const int32_t units[] = {0, 1, 16, 16};
  uint64_t state = 1;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    asparse_csr *whole = test_whole(&state, shapes[s].m, shapes[s].k, shapes[s].sparsity, shapes[s].dense_row);
    for (int format = ASPARSE_FORMAT_AUTO; format <= ASPARSE_FORMAT_BCSR; format++) {
      for (int exchange = ASPARSE_EXCHANGE_AUTO; exchange <= ASPARSE_EXCHANGE_COVER; exchange++) {
        for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) {
          if (many_ranks() && (dtype != (format + exchange) % 3 || format != ((int)s + exchange) % 4)) continue;
          asparse_options options = asparse_options_default();
          options.format = (asparse_format)format;
          options.unit = format == ASPARSE_FORMAT_CSR ? 0 : units[format];
          options.exchange = (asparse_exchange_mode)exchange;
          options.precision = (asparse_dtype)dtype;
          options.own_precision = false;
          check(&state, whole, &options, 5 + 4 * format);
        }
      }
    }
    asparse_csr_destroy(&whole);
  }
}

/* All grids that p ranks can form. */
static void grids_are_right(void **unused) {
  (void)unused;
  static const struct {
    int64_t m, k, sparsity, dense_row, n;
  } shapes[] = {
      {90, 90, 8, -1, 70}, {50, 1, 2, -1, 8}, {3, 130, 4, 1, 9}, {130, 3, 2, -1, 65}, {20, 20, 1000000, -1, 8}};
  uint64_t state = 9;
  int combination = 0;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    asparse_csr *whole = test_whole(&state, shapes[s].m, shapes[s].k, shapes[s].sparsity, shapes[s].dense_row);
    for (int columns = 1; columns <= test_comm->size; columns++) {
      if (test_comm->size % columns != 0) continue;
      for (int exchange = ASPARSE_EXCHANGE_AUTO; exchange <= ASPARSE_EXCHANGE_COVER; exchange++) {
        for (int placement = ASPARSE_PLACEMENT_ROWS; placement <= ASPARSE_PLACEMENT_PLANNER; placement++) {
          combination++;
          if (many_ranks() && combination % 3) continue;
          asparse_options options = asparse_options_default();
          options.exchange = (asparse_exchange_mode)exchange;
          options.grid_rows = test_comm->size / columns;
          options.grid_columns = columns;
          options.operands = (asparse_placement)placement;
          options.format = (asparse_format)(combination % 4);
          options.precision = (asparse_dtype)(combination % 3);
          options.own_precision = false;
          check(&state, whole, &options, shapes[s].n);
        }
      }
    }
    asparse_csr_destroy(&whole);
  }
}

/* Every column belongs to one block; whole multiples of 8 where all blocks can have them. */
static void blocks_of_columns(void **unused) {
  (void)unused;
  for (int64_t n = 1; n < 200; n++) {
    for (int blocks = 1; blocks <= 9 && blocks <= n; blocks++) {
      assert_int_equal(asparse_grid_column_start(n, blocks, 0), 0);
      assert_int_equal(asparse_grid_column_start(n, blocks, blocks), n);
      for (int block = 0; block < blocks; block++) {
        const int64_t begin = asparse_grid_column_start(n, blocks, block);
        const int64_t width = asparse_grid_column_start(n, blocks, block + 1) - begin;
        assert_true(width > 0 && width <= asparse_grid_column_start(n, blocks, 1));
        assert_true(begin % 8 == 0 || (n + 7) / 8 < blocks);
      }
    }
  }
}

/* Rows of B and of C leave and arrive once: what the report counts is what a block lacks. */
static void layouts_are_counted(void **unused) {
  (void)unused;
  const int p = test_comm->size;
  uint64_t state = 10;
  asparse_options options = asparse_options_default();
  options.exchange = ASPARSE_EXCHANGE_COLUMNS;
  problem p1 = {.whole = test_whole(&state, 48, 80, 5, -1)};
  asparse_stats stats;
  const int64_t n = 8 * p;
  assert_int_equal(problem_solve(&p1, test_slab(p1.whole, test_comm, &state), &options, n), ASPARSE_OK);
  asparse_plan_stats(p1.plan, &stats);
  int64_t bytes[4] = {stats.layout_bytes_sent, stats.layout_bytes_received, stats.bytes_sent, stats.bytes_received};
  assert_int_equal(asparse_comm_sum(test_comm, bytes, 4), ASPARSE_OK);
  assert_int_equal(bytes[0], (48 + 80) * n * 8 * (p - 1) / p);
  assert_int_equal(bytes[1], bytes[0]);
  assert_int_equal(bytes[2] + bytes[3], 0);
  assert_true(stats.grid_rows == 1 && stats.grid_columns == p);
  problem_free(&p1);
}

/* B whole on rank 0, C whole on rank 0: on every grid and placement the same as each rank's own share. */
static void root_has_all(void **unused) {
  (void)unused;
  uint64_t state = 12;
  for (int trial = 0; trial < 8; trial++) {
    const int columns = trial % 2 ? test_comm->size : 1;
    asparse_options options = asparse_options_default();
    options.grid_columns = columns;
    options.grid_rows = test_comm->size / columns;
    options.operands = (asparse_placement)(trial / 2 % 2);
    if (trial >= 4 && ASPARSE_HAVE_METIS) options.partition = ASPARSE_PARTITION_METIS;
    problem p = {.whole = test_whole(&state, 40, 40, 3, -1)};
    asparse_dense *whole_b = NULL, *whole_c = NULL, *b = NULL, *c = NULL;
    assert_int_equal(problem_solve(&p, test_slab(p.whole, test_comm, &state), &options, 19), ASPARSE_OK);
    assert_int_equal(asparse_plan_operands(p.plan, &b, &c), ASPARSE_OK);
    if (test_comm->rank == 0) {
      assert_int_equal(asparse_dense_create(&whole_b, 40, 19, ASPARSE_FP64), ASPARSE_OK);
      asparse_dense_fill_random(whole_b, 7, 0, NULL);
    }
    assert_int_equal(asparse_plan_scatter_b(p.plan, whole_b, b), ASPARSE_OK);
    assert_memory_equal(b->values, p.b->values, (size_t)(b->m * b->n) * sizeof(double));
    assert_int_equal(asparse_plan_gather_c(p.plan, p.c, &whole_c), ASPARSE_OK);
    assert_int_equal(whole_c != NULL, test_comm->rank == 0);
    for (int64_t i = 0; whole_c && i < p.c->m; i++) {
      for (int64_t j = 0; j < p.c->n; j++) {
        const int64_t row = asparse_plan_c_row(p.plan, i), col = asparse_plan_column(p.plan, j);
        assert_true(((double *)whole_c->values)[row * 19 + col] == ((double *)p.c->values)[i * p.c->n + j]);
      }
    }
    asparse_dense_destroy(&c);
    if (whole_c) { /* the whole is checked by the same function, as a share with every row */
      asparse_matrix alone = {.comm = test_self, .grid = {.rows = 1, .columns = 1, .column_comm = test_self}};
      int64_t starts[2] = {0, 40};
      asparse_plan one = {.matrix = &alone, .n_global = 19, .n = 19};
      alone.row_starts = alone.col_starts = starts;
      assert_right(&(problem){.whole = p.whole, .plan = &one, .c = whole_c}, ASPARSE_FP64);
    }
    asparse_dense_destroy(&b), asparse_dense_destroy(&whole_b), asparse_dense_destroy(&whole_c);
    problem_free(&p);
  }
}

/* From the same slabs every time, so that the partition is the same. */
static void count_bytes(asparse_csr *whole, uint64_t state, asparse_options *options, asparse_exchange_mode exchange,
                        asparse_stats *stats) {
  problem p = {.whole = whole};
  options->exchange = exchange;
  assert_int_equal(problem_solve(&p, test_slab(whole, test_comm, &state), options, 6), ASPARSE_OK);
  asparse_plan_stats(p.plan, stats);
  p.whole = NULL;
  problem_free(&p);
}

/* A cover never moves more than rows of B, on no rank; where a dense row and a dense column of A meet, much less. */
static void covers_move_less(void **unused) {
  (void)unused;
  uint64_t state = 13;
  for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) {
    for (int64_t sparsity = 2; sparsity < 200; sparsity *= 3) {
      asparse_options options = asparse_options_default();
      asparse_stats rows, cover;
      options.own_precision = false;
      options.precision = (asparse_dtype)dtype;
      asparse_csr *whole = test_whole(&state, 120, 120, sparsity, sparsity > 20 ? 60 : -1);
      count_bytes(whole, state, &options, ASPARSE_EXCHANGE_ROWS, &rows);
      count_bytes(whole, state, &options, ASPARSE_EXCHANGE_COVER, &cover);
      assert_true(cover.bytes_received <= rows.bytes_received && cover.bytes_sent <= rows.bytes_sent);
      int64_t sums[] = {rows.bytes_received, cover.bytes_received, cover.bytes_sent, rows.nnz,
                        cover.nnz,           cover.partial_rows};
      assert_int_equal(asparse_comm_sum(test_comm, sums, 6), ASPARSE_OK);
      assert_int_equal(sums[1], sums[2]);
      assert_int_equal(sums[3], whole->nnz);
      assert_int_equal(sums[4], whole->nnz);
      if (sparsity > 20 && test_comm->size > 1) assert_true(sums[5] > 0 && sums[1] < sums[0]);
      asparse_csr_destroy(&whole);
    }
  }
}

/* C of one column of ranks, of p rows of them, of all of B and of blocks of columns is the same bit for bit. */
static void sums_are_reproducible(void **unused) {
  (void)unused;
  uint64_t state = 14;
  const int p = test_comm->size;
  for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) {
    problem alone = {.whole = test_whole(&state, 100, 90, 3, -1)};
    asparse_options options = asparse_options_default();
    asparse_csr *slab = test_rows(alone.whole, 0, 100);
    options.own_precision = false;
    options.precision = (asparse_dtype)dtype;
    options.reproducible = true;
    assert_int_equal(asparse_matrix_create(test_self, &slab, &options, 21, &alone.a), ASPARSE_OK);
    assert_int_equal(asparse_plan_create(alone.a, &options, 21, &alone.plan), ASPARSE_OK);
    assert_int_equal(asparse_plan_operands(alone.plan, &alone.b, &alone.c), ASPARSE_OK);
    asparse_plan_fill_random(alone.plan, alone.b, 7);
    assert_int_equal(asparse_plan_execute(alone.plan, alone.b, alone.c), ASPARSE_OK);
    for (int exchange = ASPARSE_EXCHANGE_REPLICATE; exchange <= ASPARSE_EXCHANGE_GRID; exchange++) {
      if (exchange == ASPARSE_EXCHANGE_COVER) continue;
      options.exchange = (asparse_exchange_mode)exchange;
      options.grid_columns = exchange == ASPARSE_EXCHANGE_GRID ? (p % 2 == 0 ? 2 : p) : 0;
      options.grid_rows = options.grid_columns > 0 ? p / options.grid_columns : 0;
      problem q = {.whole = alone.whole};
      assert_int_equal(problem_solve(&q, test_slab(alone.whole, test_comm, &state), &options, 21), ASPARSE_OK);
      const size_t size = asparse_dtype_size(q.c->dtype);
      for (int64_t i = 0; i < q.c->m; i++) {
        const int64_t at = asparse_plan_c_row(q.plan, i) * 21 + asparse_plan_column(q.plan, 0);
        assert_memory_equal((char *)q.c->values + (size_t)(i * q.c->n) * size,
                            (char *)alone.c->values + (size_t)at * size, (size_t)q.c->n * size);
      }
      q.whole = NULL;
      problem_free(&q);
    }
    options.exchange = ASPARSE_EXCHANGE_COVER;
    options.grid_rows = options.grid_columns = 0;
    asparse_plan *none = NULL;
    assert_int_equal(asparse_plan_create(alone.a, &options, 21, &none), ASPARSE_ERR_USAGE);
    asparse_error_clear();
    problem_free(&alone);
  }
}

static void wrong_grids(void **unused) {
  (void)unused;
  const int p = test_comm->size;
  uint64_t state = 11;
  asparse_options options = asparse_options_default();
  problem p1 = {.whole = test_whole(&state, 30, 30, 5, -1)};
  options.grid_rows = p + 1;
  options.grid_columns = 1;
  assert_int_equal(problem_solve(&p1, test_slab(p1.whole, test_comm, &state), &options, 4), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  options = asparse_options_default();
  options.exchange = ASPARSE_EXCHANGE_GRID;
  assert_int_equal(problem_solve(&p1, test_slab(p1.whole, test_comm, &state), &options, 4), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  options.exchange = ASPARSE_EXCHANGE_COLUMNS;
  if (p > 1) { /* fewer columns than blocks; then a plan for another grid than the matrix's */
    assert_int_equal(problem_solve(&p1, test_slab(p1.whole, test_comm, &state), &options, p - 1), ASPARSE_ERR_USAGE);
    asparse_error_clear();
    options.exchange = ASPARSE_EXCHANGE_ROWS;
    options.grid_rows = p;
    options.grid_columns = 1;
    assert_int_equal(asparse_plan_create(p1.a, &options, 64, &p1.plan), ASPARSE_ERR_USAGE);
    asparse_error_clear();
  }
  problem_free(&p1);
}

static void metis_is_right(void **unused) {
  (void)unused;
#if ASPARSE_HAVE_METIS
  uint64_t state = 2;
  asparse_options options = asparse_options_default();
  options.partition = ASPARSE_PARTITION_METIS;
  for (int64_t m = 1; m < 200; m = 3 * m + 2) {
    asparse_csr *whole = test_whole(&state, m, m, 9, -1);
    for (int exchange = ASPARSE_EXCHANGE_REPLICATE; exchange <= ASPARSE_EXCHANGE_COVER; exchange++) {
      options.exchange = (asparse_exchange_mode)exchange;
      check(&state, whole, &options, 9);
    }
    if (test_comm->size % 2 == 0) {
      asparse_options grid = options;
      grid.grid_rows = test_comm->size / 2;
      grid.grid_columns = 2;
      check(&state, whole, &grid, 9);
      grid.operands = ASPARSE_PLACEMENT_PLANNER;
      check(&state, whole, &grid, 9);
    }
    asparse_csr_destroy(&whole);
  }
#endif
}

/* Messages over the limit of one MPI call are cut: seen by lowering the limit. */
static void short_messages(void **unused) {
  (void)unused;
  uint64_t state = 3;
  asparse_options options = asparse_options_default();
  int64_t limit = test_comm->message_bytes;
  asparse_csr *whole = test_whole(&state, 80, 80, 4, -1);
  for (int64_t bytes = 24; bytes < 3000; bytes *= 5) {
    test_comm->message_bytes = bytes;
    for (int exchange = ASPARSE_EXCHANGE_REPLICATE; exchange <= ASPARSE_EXCHANGE_COVER; exchange++) {
      options.exchange = (asparse_exchange_mode)exchange;
      check(&state, whole, &options, 17);
    }
    options.exchange = ASPARSE_EXCHANGE_COLUMNS;
    check(&state, whole, &options, 17);
  }
  test_comm->message_bytes = limit;
  asparse_csr_destroy(&whole);
}

/* B and C may be parts of larger arrays. */
static void leading_dimensions(void **unused) {
  (void)unused;
  uint64_t state = 4;
  asparse_options options = asparse_options_default();
  for (int exchange = ASPARSE_EXCHANGE_REPLICATE; exchange <= ASPARSE_EXCHANGE_ROWS; exchange++) {
    problem p = {.whole = test_whole(&state, 60, 60, 5, -1)};
    asparse_dense *wide_b = NULL, *wide_c = NULL;
    options.exchange = (asparse_exchange_mode)exchange;
    assert_int_equal(problem_solve(&p, test_slab(p.whole, test_comm, &state), &options, 10), ASPARSE_OK);
    assert_int_equal(asparse_dense_create(&wide_b, p.b->m, 13, ASPARSE_FP64), ASPARSE_OK);
    assert_int_equal(asparse_dense_create(&wide_c, p.c->m, 15, ASPARSE_FP64), ASPARSE_OK);
    for (int64_t i = 0; i < wide_b->m * 13; i++) ((double *)wide_b->values)[i] = NAN;
    for (int64_t i = 0; i < wide_c->m * 15; i++) ((double *)wide_c->values)[i] = -77;
    for (int64_t i = 0; i < wide_b->m; i++)
      memcpy((double *)wide_b->values + 13 * i, (double *)p.b->values + 10 * i, 80);
    wide_b->n = wide_c->n = 10;
    assert_int_equal(asparse_plan_execute(p.plan, wide_b, wide_c), ASPARSE_OK);
    for (int64_t i = 0; i < wide_c->m; i++) {
      assert_memory_equal((double *)wide_c->values + 15 * i, (double *)p.c->values + 10 * i, 80);
      for (int j = 10; j < 15; j++) assert_true(((double *)wide_c->values)[15 * i + j] == -77);
    }
    asparse_dense_destroy(&wide_b);
    asparse_dense_destroy(&wide_c);
    problem_free(&p);
  }
}

/* A flipped bit in one element of C is found, whatever the row: exponent, high and middle mantissa. */
static void faults_are_found(void **unused) {
  (void)unused;
  uint64_t state = 5;
  asparse_options options = asparse_options_default();
  options.own_precision = false;
  options.precision = ASPARSE_FP32;
  problem p = {.whole = test_whole(&state, 300, 300, 6, -1)};
  asparse_verification v;
  assert_int_equal(problem_solve(&p, test_slab(p.whole, test_comm, &state), &options, 12), ASPARSE_OK);
  for (int trial = 0; trial < (many_ranks() ? 10 : 40); trial++) {
    int owner = (int)test_random(&state, test_comm->size), bit = 18 + (int)test_random(&state, 13);
    int64_t at = test_random(&state, 1 << 20);
    uint32_t *bits = p.c->values;
    bool mine = owner == test_comm->rank && p.c->m > 0;
    int64_t rows = mine ? 1 : 0;
    if (mine) bits[at % (p.c->m * 12)] ^= 1u << bit;
    assert_int_equal(asparse_comm_sum(test_comm, &rows, 1), ASPARSE_OK);
    asparse_status status = asparse_verify(p.plan, p.b, p.c, (uint64_t)trial, &v);
    assert_int_equal(status, rows ? ASPARSE_ERR_VERIFY : ASPARSE_OK);
    assert_int_equal(v.passed, rows == 0);
    assert_true(rows == 0 || v.failed_row >= 0);
    if (mine) bits[at % (p.c->m * 12)] ^= 1u << bit;
    asparse_error_clear();
  }
  assert_int_equal(asparse_verify(p.plan, p.b, p.c, 1, &v), ASPARSE_OK);
  problem_free(&p);
}

/* Sums that round with a bias (equal terms, long rows) are no faults. */
static void biased_sums_are_no_faults(void **unused) {
  (void)unused;
  uint64_t state = 6;
  asparse_options options = asparse_options_default();
  options.own_precision = false;
  options.precision = ASPARSE_FP32;
  asparse_verification v;
  problem p = {.whole = test_whole(&state, 8, 30000, 1, -1)};
  for (int64_t e = 0; e < p.whole->nnz; e++) ((double *)p.whole->values)[e] = 1;
  assert_int_equal(problem_solve(&p, test_slab(p.whole, test_comm, &state), &options, 3), ASPARSE_OK);
  for (int64_t i = 0; i < p.b->m * 3; i++) ((float *)p.b->values)[i] = 0.1f;
  assert_int_equal(asparse_plan_execute(p.plan, p.b, p.c), ASPARSE_OK);
  assert_int_equal(asparse_verify(p.plan, p.b, p.c, 1, &v), ASPARSE_OK);
  problem_free(&p);
}

static void wrong_operands(void **unused) {
  (void)unused;
  uint64_t state = 7;
  asparse_options options = asparse_options_default();
  problem p = {.whole = test_whole(&state, 30, 30, 5, -1)};
  assert_int_equal(problem_solve(&p, test_slab(p.whole, test_comm, &state), &options, 4), ASPARSE_OK);
  p.b->n = 3;
  assert_int_equal(asparse_plan_execute(p.plan, p.b, p.c), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  p.b->n = 4;
  p.c->dtype = ASPARSE_FP32;
  assert_int_equal(asparse_plan_execute(p.plan, p.b, p.c), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  p.c->dtype = ASPARSE_FP64;
  asparse_plan *none = NULL;
  assert_int_equal(asparse_plan_create(p.a, &options, 0, &none), ASPARSE_ERR_USAGE);
  assert_null(none);
  asparse_error_clear();
  problem_free(&p);
}

/* The n-th allocation fails on one rank: all ranks report it, nothing leaks. */
static void fail_allocations(const asparse_options *options) {
  bool reached_end = false;
  for (int64_t n = 1; n < 600 && !reached_end; n += 1 + n / (many_ranks() ? 3 : 20)) {
    uint64_t state = 8;
    problem p = {.whole = test_whole(&state, 70, 70, 6, -1)};
    asparse_csr *slab = test_slab(p.whole, test_comm, &state);
    asparse_verification v;
    asparse_memory_fail_at(test_comm->rank == n % test_comm->size ? n : 0);
    asparse_status status = problem_solve(&p, slab, options, 8);
    if (status == ASPARSE_OK) status = asparse_verify(p.plan, p.b, p.c, 1, &v);
    asparse_memory_fail_at(0);
    assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
    int64_t same = status;
    assert_int_equal(asparse_comm_max(test_comm, &same, 1), ASPARSE_OK);
    assert_int_equal(same, status);
    reached_end = status == ASPARSE_OK && n > 50;
    asparse_error_clear();
    problem_free(&p);
    assert_int_equal(asparse_memory_live_blocks(), 2); /* the two communicators */
  }
  assert_true(reached_end);
}

static void allocation_failures(void **unused) {
  (void)unused;
  asparse_options options = asparse_options_default();
  options.format = ASPARSE_FORMAT_WCSR;
  for (int partition = 0; partition <= ASPARSE_HAVE_METIS && !many_ranks(); partition++) {
    options.partition = (asparse_partition_method)partition;
    fail_allocations(&options);
  }
  options.partition = ASPARSE_PARTITION_CONTIGUOUS;
  options.exchange = ASPARSE_EXCHANGE_COVER;
  fail_allocations(&options);
  options.exchange = ASPARSE_EXCHANGE_ROWS;
  options.format = ASPARSE_FORMAT_AUTO;
  options.reproducible = true;
  fail_allocations(&options);
  options.reproducible = false;
  options.exchange = ASPARSE_EXCHANGE_COLUMNS;
  fail_allocations(&options);
  options.exchange = ASPARSE_EXCHANGE_GRID;
  options.grid_columns = test_comm->size % 2 == 0 ? 2 : 1;
  options.grid_rows = test_comm->size / options.grid_columns;
  fail_allocations(&options);
}

static int group(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_paths_are_right),
      cmocka_unit_test(grids_are_right),
      cmocka_unit_test(blocks_of_columns),
      cmocka_unit_test(layouts_are_counted),
      cmocka_unit_test(root_has_all),
      cmocka_unit_test(sums_are_reproducible),
      cmocka_unit_test(covers_move_less),
      cmocka_unit_test(wrong_grids),
      cmocka_unit_test(metis_is_right),
      cmocka_unit_test(short_messages),
      cmocka_unit_test(leading_dimensions),
      cmocka_unit_test(faults_are_found),
      cmocka_unit_test(biased_sums_are_no_faults),
      cmocka_unit_test(wrong_operands),
      cmocka_unit_test(allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
