/* Volumes of every exchange against brute force with dense sets, for any partition on any number of ranks; and against
 * what a plan moves. */
#include "asparse_config.h"
#include "plan/grid.h"
#include "plan/plan.h"
#include "plan/volumes.h"
#include "slabs.h"

enum { MOST_ROWS = 12, MOST_COLS = 16 };

/* The whole matrix in the new order: bit j of rows[i]. */
typedef struct pattern {
  int m, k;
  uint32_t rows[MOST_ROWS];
} pattern;

static pattern pattern_of(const asparse_csr *a, const int64_t *new_row) {
  pattern p = {.m = (int)a->m, .k = (int)a->k};
  for (int64_t i = 0; i < a->m; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      const int64_t col = a->col_idx[e];
      p.rows[new_row ? new_row[i] : i] |= UINT32_C(1) << (new_row ? new_row[col] : col);
    }
  }
  return p;
}

static uint32_t bits(const int64_t *starts, int q) {
  return (uint32_t)((UINT64_C(1) << starts[q + 1]) - (UINT64_C(1) << starts[q]));
}

/* The least weight of rows of part q and columns that touch all entries in those columns: by trying all sets of rows.
 */
static int64_t least_cover(const pattern *a, int64_t row_begin, int64_t row_end, uint32_t cols, int c_weight) {
  int64_t least = INT64_MAX;
  for (uint32_t set = 0; set < UINT32_C(1) << (row_end - row_begin); set++) {
    uint32_t used = 0;
    for (int64_t i = row_begin; i < row_end; i++) {
      if (!(set >> (i - row_begin) & 1)) used |= a->rows[i] & cols;
    }
    const int64_t weight = c_weight * (int64_t)__builtin_popcount(set) + __builtin_popcount(used);
    if (weight < least) least = weight;
  }
  return least;
}

static void brute_force(const pattern *a, const asparse_partition *p, int c_weight, asparse_part_volume *parts) {
  memset(parts, 0, (size_t)p->parts * sizeof *parts);
  for (int q = 0; q < p->parts; q++) {
    asparse_part_volume *to = &parts[q];
    uint32_t used = 0;
    to->rows = p->row_starts[q + 1] - p->row_starts[q];
    to->b_rows = p->col_starts[q + 1] - p->col_starts[q];
    for (int64_t i = p->row_starts[q]; i < p->row_starts[q + 1]; i++) {
      used |= a->rows[i];
      to->nnz += __builtin_popcount(a->rows[i]);
      to->own_nnz += __builtin_popcount(a->rows[i] & bits(p->col_starts, q));
    }
    for (int s = 0; s < p->parts; s++) {
      const uint32_t cols = bits(p->col_starts, s);
      const int rows = __builtin_popcount(used & cols);
      if (s == q) continue;
      to->received += rows;
      to->sources += rows > 0;
      to->all_sources += cols != 0;
      parts[s].sent += rows;
      parts[s].destinations += rows > 0;
      parts[s].all_destinations += cols != 0;
      const int64_t cover = least_cover(a, p->row_starts[q], p->row_starts[q + 1], cols, c_weight);
      to->cover_received += cover;
      parts[s].cover_sent += cover;
    }
  }
}

static void check_counts(const asparse_csr *slab, const asparse_csr *whole, const asparse_partition *p,
                         const int64_t *new_row, int c_weight) {
  asparse_volumes *v = NULL;
  asparse_part_volume wanted[16];
  const pattern a = pattern_of(whole, new_row);
  brute_force(&a, p, c_weight, wanted);
  assert_int_equal(asparse_volumes_count(test_comm, slab, p, c_weight, &v), ASPARSE_OK);
  assert_true(v->cover_is_exact);
  assert_int_equal(v->parts, p->parts);
  assert_memory_equal(v->part, wanted, (size_t)p->parts * sizeof *wanted);
  asparse_volumes_destroy(&v);
  assert_null(v);
}

static asparse_csr *random_whole(uint64_t *seed, bool square) {
  const int64_t m = 1 + test_random(seed, MOST_ROWS), k = square ? m : 1 + test_random(seed, MOST_COLS);
  const int64_t dense = test_random(seed, 4) == 0 ? test_random(seed, m) : -1;
  return test_whole(seed, m, k, 1 + test_random(seed, 6), dense);
}

static const int part_counts[] = {1, 2, 3, 4, 5, 8, 16};
enum { N_PART_COUNTS = sizeof part_counts / sizeof *part_counts };

static void contiguous_parts(void **unused) {
  (void)unused;
  uint64_t seed = 31;
  for (int trial = 0; trial < 40; trial++) {
    asparse_csr *whole = random_whole(&seed, trial % 2), *slab = test_slab(whole, test_comm, &seed);
    for (int i = 0; i < N_PART_COUNTS; i++) {
      int64_t cost[MOST_ROWS];
      asparse_partition *p = NULL;
      for (int64_t r = 0; r < slab->n_rows; r++) cost[r] = slab->row_ptr[r + 1] - slab->row_ptr[r];
      assert_int_equal(asparse_partition_contiguous(test_comm, slab, cost, part_counts[i], &p), ASPARSE_OK);
      check_counts(slab, whole, p, NULL, 1 + trial % 3);
      asparse_partition_destroy(&p);
    }
    asparse_csr_destroy(&whole);
    asparse_csr_destroy(&slab);
  }
}

/* Any permutation in place of METIS's, and any cuts. */
static void permuted_parts(void **unused) {
  (void)unused;
  uint64_t seed = 32;
  for (int trial = 0; trial < 40; trial++) {
    asparse_csr *whole = random_whole(&seed, true), *slab = test_slab(whole, test_comm, &seed);
    const int64_t m = whole->m;
    for (int i = 0; i < N_PART_COUNTS; i++) {
      int64_t new_row[MOST_ROWS], starts[17] = {0};
      const int parts = part_counts[i];
      for (int64_t r = 0; r < m; r++) {
        const int64_t other = test_random(&seed, r + 1);
        new_row[r] = new_row[other];
        new_row[other] = r;
      }
      for (int q = 1; q < parts; q++) starts[q] = starts[q - 1] + test_random(&seed, m - starts[q - 1] + 1);
      starts[parts] = m;
      const asparse_partition p = {.parts = parts,
                                   .method = ASPARSE_PARTITION_METIS,
                                   .m = m,
                                   .k = m,
                                   .row_starts = starts,
                                   .col_starts = starts,
                                   .n_slab_rows = slab->n_rows,
                                   .new_row = new_row + slab->row_begin};
      check_counts(slab, whole, &p, new_row, 1 + trial % 2);
    }
    asparse_csr_destroy(&whole);
    asparse_csr_destroy(&slab);
  }
}

/* ---- ranks of a grid -------------------------------------------------------------------------- */

typedef struct grid {
  const pattern *a;
  const asparse_partition *p;
  int pn;
  int64_t n;
} grid;

static bool in(int64_t x, int64_t begin, int64_t end) { return x >= begin && x < end; }
static bool in_block(const grid *g, int j, int64_t column) {
  return in(column, asparse_grid_column_start(g->n, g->pn, j), asparse_grid_column_start(g->n, g->pn, j + 1));
}
/* Is a row (of B or C) in the slice of rank (i, j)? */
static bool in_slice(const grid *g, const int64_t *starts, int i, int j, int64_t row) {
  const int64_t m = starts[i + 1] - starts[i];
  return in(row - starts[i], asparse_even_start(m, g->pn, j), asparse_even_start(m, g->pn, j + 1));
}

/* Element by element: what rank (i, j) lacks, and from how many ranks it comes. */
static asparse_volume rank_by_force(const grid *g, asparse_exchange_mode mode, const asparse_volume_shape *shape, int i,
                                    int j) {
  asparse_volume v = {0};
  uint32_t used = 0;
  for (int64_t r = g->p->row_starts[i]; r < g->p->row_starts[i + 1]; r++) used |= g->a->rows[r];
  if (mode == ASPARSE_EXCHANGE_REPLICATE) used = UINT32_MAX;
  for (int s = 0; s < g->p->parts; s++) { /* from rank (s, j) */
    int64_t elements = 0;
    for (int64_t b = g->p->col_starts[s]; s != i && b < g->p->col_starts[s + 1]; b++) {
      const int64_t before = elements;
      for (int64_t c = 0; c < g->n; c++) elements += (used >> b & 1) && in_block(g, j, c);
      v.rows += elements > before;
    }
    v.bytes_received += elements * shape->b_bytes;
    v.messages += elements > 0;
  }
  for (int other = 0; other < g->pn; other++) { /* from rank (i, other) */
    int64_t b_elements = 0, c_elements = 0;
    if (other == j) continue;
    for (int64_t c = 0; c < g->n; c++) {
      for (int64_t b = g->p->col_starts[i]; b < g->p->col_starts[i + 1]; b++)
        b_elements += in_block(g, j, c) && in_slice(g, g->p->col_starts, i, other, b);
      for (int64_t r = g->p->row_starts[i]; r < g->p->row_starts[i + 1]; r++)
        c_elements += in_block(g, other, c) && in_slice(g, g->p->row_starts, i, j, r);
    }
    v.layout_bytes += b_elements * shape->b_bytes + c_elements * shape->c_bytes;
    v.layout_messages += (b_elements > 0) + (c_elements > 0);
  }
  return v;
}

static void check_grid(const grid *g, const asparse_volumes *v, asparse_exchange_mode mode) {
  const asparse_volume_shape shape = {g->n, 2, 4};
  asparse_volume largest, total, most = {0}, sum = {0};
  for (int i = 0; i < g->p->parts; i++) {
    for (int j = 0; j < g->pn; j++) {
      asparse_volume wanted = rank_by_force(g, mode, &shape, i, j),
                     found = asparse_volumes_rank(v, mode, g->pn, &shape, i, j);
      wanted.bytes_sent = found.bytes_sent; /* summed below: as much is sent as received */
      assert_memory_equal(&found, &wanted, sizeof found);
      int64_t *m = (int64_t *)&most, *s = (int64_t *)&sum;
      for (size_t f = 0; f < sizeof found / sizeof *m; f++) {
        const int64_t x = ((int64_t *)&found)[f];
        m[f] = x > m[f] ? x : m[f];
        s[f] += x;
      }
    }
  }
  asparse_volumes_summarise(v, mode, g->pn, &shape, &largest, &total);
  assert_memory_equal(&largest, &most, sizeof most);
  assert_memory_equal(&total, &sum, sizeof sum);
  assert_int_equal(total.bytes_sent, total.bytes_received);
}

static void ranks_of_grids(void **unused) {
  (void)unused;
  static const int64_t widths[] = {1, 7, 16, 30};
  uint64_t seed = 33;
  for (int trial = 0; trial < 24; trial++) {
    asparse_csr *whole = random_whole(&seed, trial % 2), *slab = test_slab(whole, test_comm, &seed);
    const pattern a = pattern_of(whole, NULL);
    for (int pm = 1; pm <= 8; pm = pm < 4 ? pm + 1 : 2 * pm) {
      asparse_partition *p = NULL;
      asparse_volumes *v = NULL;
      int64_t cost[MOST_ROWS] = {0};
      assert_int_equal(asparse_partition_contiguous(test_comm, slab, cost, pm, &p), ASPARSE_OK);
      assert_int_equal(asparse_volumes_count(test_comm, slab, p, 2, &v), ASPARSE_OK);
      for (int pn = 1; pn <= 5; pn++) {
        const grid g = {&a, p, pn, widths[trial % 4]};
        check_grid(&g, v, pm == 1 ? ASPARSE_EXCHANGE_COLUMNS : ASPARSE_EXCHANGE_GRID);
        if (pn == 1) check_grid(&g, v, ASPARSE_EXCHANGE_ROWS);
        if (pn == 1) check_grid(&g, v, ASPARSE_EXCHANGE_REPLICATE);
      }
      asparse_volumes_destroy(&v);
      asparse_partition_destroy(&p);
    }
    asparse_csr_destroy(&whole);
    asparse_csr_destroy(&slab);
  }
}

static void blocks_are_aligned(void **unused) {
  (void)unused;
  for (int64_t n = 0; n <= 200; n++) {
    for (int blocks = 1; blocks <= 20; blocks++) {
      assert_int_equal(asparse_grid_column_start(n, blocks, 0), 0);
      assert_int_equal(asparse_grid_column_start(n, blocks, blocks), n);
      for (int j = 1; j < blocks; j++) {
        const int64_t start = asparse_grid_column_start(n, blocks, j);
        assert_true(start >= asparse_grid_column_start(n, blocks, j - 1) + (n >= blocks));
        assert_true(n < 8 * blocks || start % 8 == 0);
      }
    }
  }
}

/* ---- what a plan moves ------------------------------------------------------------------------ */

static void check_plan(const asparse_csr *whole, uint64_t *seed, asparse_partition_method method, asparse_dtype dtype) {
  enum { N = 11 };
  asparse_options options = asparse_options_default();
  options.partition = method;
  options.own_precision = false;
  options.precision = dtype;
  asparse_csr *slab = test_slab(whole, test_comm, seed);
  asparse_partition *p = NULL;
  asparse_volumes *v = NULL;
  asparse_matrix *a = NULL;
  assert_int_equal(asparse_matrix_partition(test_comm, slab, method, N, test_comm->size, &p), ASPARSE_OK);
  assert_int_equal(asparse_volumes_count(test_comm, slab, p, 1, &v), ASPARSE_OK);
  assert_int_equal(asparse_matrix_create(test_comm, &slab, &options, N, &a), ASPARSE_OK);
  const int size = (int)asparse_dtype_size(dtype);
  const asparse_volume_shape shape = {N, size, size};
  static const asparse_exchange_mode modes[] = {ASPARSE_EXCHANGE_REPLICATE, ASPARSE_EXCHANGE_ROWS};
  static const asparse_exchange_mode exchanges[] = {ASPARSE_EXCHANGE_REPLICATE, ASPARSE_EXCHANGE_ROWS};
  for (int i = 0; i < 2; i++) {
    asparse_plan *plan = NULL;
    asparse_stats stats;
    asparse_volume largest, total;
    options.exchange = exchanges[i];
    assert_int_equal(asparse_plan_create(a, &options, N, &plan), ASPARSE_OK);
    asparse_plan_stats(plan, &stats);
    const asparse_volume volume = asparse_volumes_rank(v, modes[i], 1, &shape, test_comm->rank, 0);
    assert_int_equal(stats.halo_rows, volume.rows);
    assert_int_equal(stats.bytes_received, volume.bytes_received);
    assert_int_equal(stats.bytes_sent, volume.bytes_sent);
    assert_int_equal(plan->halo->n_sources, volume.messages);
    int64_t most = stats.bytes_received, sum = stats.bytes_received;
    assert_int_equal(asparse_comm_max(test_comm, &most, 1), ASPARSE_OK);
    assert_int_equal(asparse_comm_sum(test_comm, &sum, 1), ASPARSE_OK);
    asparse_volumes_summarise(v, modes[i], 1, &shape, &largest, &total);
    assert_int_equal(most, largest.bytes_received);
    assert_int_equal(sum, total.bytes_received);
    asparse_plan_destroy(&plan);
  }
  asparse_matrix_destroy(&a);
  asparse_volumes_destroy(&v);
  asparse_partition_destroy(&p);
}

static void volumes_are_what_a_plan_moves(void **unused) {
  (void)unused;
  static const int64_t shapes[][3] = {{90, 90, 8}, {40, 130, 10}, {130, 40, 50}, {3, 3, 1}, {1, 50, 2}, {300, 300, 90}};
  uint64_t seed = 34;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    asparse_csr *whole = test_whole(&seed, shapes[s][0], shapes[s][1], shapes[s][2], -1);
    for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) {
      check_plan(whole, &seed, ASPARSE_PARTITION_CONTIGUOUS, (asparse_dtype)dtype);
      if (ASPARSE_HAVE_METIS && shapes[s][0] == shapes[s][1])
        check_plan(whole, &seed, ASPARSE_PARTITION_METIS, (asparse_dtype)dtype);
    }
    asparse_csr_destroy(&whole);
  }
}

/* The n-th allocation fails on one rank: all ranks report it, nothing leaks. */
static void allocation_failures(void **unused) {
  (void)unused;
  uint64_t seed = 35;
  asparse_csr *whole = test_whole(&seed, 40, 40, 4, -1), *slab = test_slab(whole, test_comm, &seed);
  int64_t cost[40] = {0}, failures = 0;
  asparse_partition *p = NULL;
  assert_int_equal(asparse_partition_contiguous(test_comm, slab, cost, 4, &p), ASPARSE_OK);
  const int64_t live = asparse_memory_live_blocks();
  for (int n = 1; n <= 80; n++) {
    asparse_volumes *v = NULL;
    asparse_memory_fail_at(test_comm->rank == n % test_comm->size ? n : 0);
    const asparse_status status = asparse_volumes_count(test_comm, slab, p, 1, &v);
    asparse_memory_fail_at(0);
    int64_t same = status;
    assert_int_equal(asparse_comm_max(test_comm, &same, 1), ASPARSE_OK);
    assert_int_equal(same, status);
    assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
    failures += status != ASPARSE_OK;
    asparse_volumes_destroy(&v);
    assert_int_equal(asparse_memory_live_blocks(), live);
    asparse_error_clear();
  }
  assert_true(failures >= 30 && failures < 80);
  asparse_partition_destroy(&p);
  asparse_csr_destroy(&whole);
  asparse_csr_destroy(&slab);
}

static int group(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(contiguous_parts),
      cmocka_unit_test(permuted_parts),
      cmocka_unit_test(ranks_of_grids),
      cmocka_unit_test(blocks_are_aligned),
      cmocka_unit_test(volumes_are_what_a_plan_moves),
      cmocka_unit_test(allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
