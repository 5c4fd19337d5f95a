/* The whole path on all ranks against the oracle: formats, exchanges, partitions, types, short messages,
 * allocation failures. */
#include "asparse_config.h"
#include "problem.h"

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
          options.chunks = 1 + exchange % 3;
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
          options.chunks = combination % (1 + ASPARSE_MOST_CHUNKS);
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
      cmocka_unit_test(all_paths_are_right), cmocka_unit_test(grids_are_right),
      cmocka_unit_test(blocks_of_columns),   cmocka_unit_test(layouts_are_counted),
      cmocka_unit_test(root_has_all),        cmocka_unit_test(sums_are_reproducible),
      cmocka_unit_test(covers_move_less),    cmocka_unit_test(wrong_grids),
      cmocka_unit_test(metis_is_right),      cmocka_unit_test(short_messages),
      cmocka_unit_test(allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
