/* Every kind of generated matrix against its definition, built here another way; slabs, seeds, precision. */
#include <math.h>
#include <omp.h>

#include "generate/kind.h"
#include "generate_fixture.h"

typedef struct lattice {
  const char *text;
  int64_t nx, ny, nz, unknowns;
  bool star;
} lattice;

/* Do the nodes at (x, y, z) and (u, v, w) meet? */
static bool meet(const lattice *l, int64_t node, int64_t other) {
  int64_t x = llabs(node % l->nx - other % l->nx), y = llabs(node / l->nx % l->ny - other / l->nx % l->ny);
  int64_t z = llabs(node / (l->nx * l->ny) - other / (l->nx * l->ny));
  return l->star ? x + y + z <= 1 : x <= 1 && y <= 1 && z <= 1;
}

static dense_form check_lattice(const lattice *l) {
  asparse_csr *a = whole_of(l->text, 5);
  int64_t n = l->nx * l->ny * l->nz * l->unknowns;
  assert_int_equal(a->m, n);
  assert_int_equal(a->k, n);
  dense_form d = dense_of(a);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) assert_int_equal(d.there[i * n + j], meet(l, i / l->unknowns, j / l->unknowns));
  asparse_csr_destroy(&a);
  return d;
}

static void grids(void **unused) {
  (void)unused;
  static const lattice cases[] = {{"grid2d:nx=7,ny=5", 7, 5, 1, 1, true},
                                  {"grid2d:6,points=9", 6, 6, 1, 1, false},
                                  {"grid2d:1,9,5", 1, 9, 1, 1, true},
                                  {"grid2d:1", 1, 1, 1, 1, true},
                                  {"grid3d:nx=4,ny=3,nz=5", 4, 3, 5, 1, true},
                                  {"grid3d:points=27,nz=2,nx=5,ny=4", 5, 4, 2, 1, false},
                                  {"grid3d:2,1,3,27,values=spd", 2, 1, 3, 1, false}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    dense_form d = check_lattice(&cases[c]);
    double points = cases[c].nz > 1 ? (cases[c].star ? 7 : 27) : (cases[c].star ? 5 : 9);
    for (int64_t i = 0; i < d.m; i++)
      for (int64_t j = 0; j < d.k; j++)
        if (d.there[i * d.k + j]) assert_true(d.value[i * d.k + j] == (i == j ? points - 1 : -1));
    dense_free(&d);
  }
}

static void finite_elements(void **unused) {
  (void)unused;
  static const lattice cases[] = {{"fem2d:nx=5,ny=4,unknowns=3", 5, 4, 1, 3, false},
                                  {"fem2d:5,4,2,5", 5, 4, 1, 2, true},
                                  {"fem3d:nx=3,ny=4,nz=2,unknowns=4", 3, 4, 2, 4, false},
                                  {"fem3d:3,unknowns=1,points=7", 3, 3, 3, 1, true}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    dense_form d = check_lattice(&cases[c]);
    for (int64_t i = 0; i < d.m; i++) {
      double others = 0;
      for (int64_t j = 0; j < d.k; j++) {
        assert_true(d.value[i * d.k + j] == d.value[j * d.k + i]);
        if (i != j) others += fabs(d.value[i * d.k + j]);
        if (i != j && d.there[i * d.k + j]) assert_true(d.value[i * d.k + j] != 0);
      }
      assert_true(d.value[i * d.k + i] > others);
    }
    dense_free(&d);
  }
}

static void banded(void **unused) {
  (void)unused;
  enum { N = 400 };
  static const struct {
    const char *text;
    int64_t half;
    double fill;
  } cases[] = {{"banded:n=400,half=7", 7, 1},
               {"banded:400,30,0.25", 30, 0.25},
               {"banded:400,fill=0,half=9", 9, 0},
               {"banded:400,0", 0, 1},
               {"banded:400,1e12,.5", 1000, 0.5}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    asparse_csr *a = whole_of(cases[c].text, 6);
    dense_form d = dense_of(a);
    double places = 0, filled = 0, p = cases[c].fill;
    for (int64_t i = 0; i < N; i++) {
      assert_true(d.there[i * N + i]);
      for (int64_t j = 0; j < N; j++) {
        bool inside = llabs(i - j) <= cases[c].half;
        assert_true(inside || !d.there[i * N + j]);
        places += inside && i != j;
        filled += d.there[i * N + j] && i != j;
      }
    }
    assert_true(fabs(filled - p * places) <= 5 * sqrt(p * (1 - p) * places));
    dense_free(&d);
    asparse_csr_destroy(&a);
  }
}

static void uniform(void **unused) {
  (void)unused;
  static const struct {
    const char *text;
    int64_t m, k;
    double per_row;
  } cases[] = {{"uniform:m=50,k=3000,per_row=7", 50, 3000, 7},
               {"uniform:40,90,60", 40, 90, 60},
               {"uniform:30,20,20", 30, 20, 20},
               {"uniform:40,700,density=.07", 40, 700, 49},
               {"uniform:m=50,per_row=2.5", 50, 50, 2.5},
               {"uniform:1000,10,.01", 1000, 10, 0.01},
               {"uniform:20,70,density=1,values=one", 20, 70, 70},
               {"uniform:30,5", 30, 5, 5}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    asparse_csr *a = whole_of(cases[c].text, 7);
    assert_int_equal(a->m, cases[c].m);
    assert_int_equal(a->k, cases[c].k);
    for (int64_t i = 0; i < a->m; i++)
      assert_true(fabs((double)(a->row_ptr[i + 1] - a->row_ptr[i]) - cases[c].per_row) < 1);
    assert_int_equal(a->nnz, (int64_t)(cases[c].per_row * (double)a->m));
    asparse_csr_destroy(&a);
  }
}

/* Every block is full or empty, and as many are full as were asked for. */
static void blocks(void **unused) {
  (void)unused;
  static const struct {
    const char *text;
    int64_t m, k, size, filled;
  } cases[] = {{"blocks:m=64,k=160,size=16,empty=0.9", 64, 160, 16, 4},
               {"blocks:96,size=8,empty=.25", 96, 96, 8, 108},
               {"blocks:100,70,16,.5", 100, 70, 16, 17},
               {"blocks:30,40,10,0", 30, 40, 10, 12},
               {"blocks:30,40,10,1", 30, 40, 10, 0},
               {"blocks:9,300,1,0.5", 9, 300, 1, 1350},
               {"blocks:100,70,64,.5,values=one", 100, 70, 64, 2}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    asparse_csr *a = whole_of(cases[c].text, 8);
    dense_form d = dense_of(a);
    int64_t size = cases[c].size, filled = 0;
    assert_true(a->m == cases[c].m && a->k == cases[c].k);
    for (int64_t i = 0; i < a->m; i++) {
      for (int64_t j = 0; j < a->k; j++) {
        bool corner = d.there[i / size * size * a->k + j / size * size];
        assert_int_equal(d.there[i * a->k + j], corner);
        filled += corner && i % size == 0 && j % size == 0;
      }
    }
    assert_int_equal(filled, cases[c].filled);
    dense_free(&d);
    asparse_csr_destroy(&a);
  }
}

/* The chance that R-MAT drops an edge on (i, j): one quadrant for each bit. */
static double edge_chance(const double quadrant[4], int scale, int64_t i, int64_t j) {
  double chance = 1;
  for (int bit = 0; bit < scale; bit++) chance *= quadrant[2 * (i >> bit & 1) + (j >> bit & 1)];
  return chance;
}

/* Over many seeds each place is filled as often as E independent edges fill it: 1 - (1 - chance)^E. */
static void rmat_places(void **unused) {
  (void)unused;
  enum { SCALE = 3, N = 8, SEEDS = 4000 };
  static const struct {
    const char *text;
    double quadrant[4], edges;
  } cases[] = {{"rmat:scale=3,edges=2", {0.57, 0.19, 0.19, 0.05}, 16},
               {"rmat:3,30,a=.5,b=.2,c=.1", {0.5, 0.2, 0.1, 0.2}, 240},
               {"rmat:3,0.5,0.25,0.25,0.25", {0.25, 0.25, 0.25, 0.25}, 4},
               {"rmat:3,1,a=0,b=.5,c=.5", {0, 0.5, 0.5, 0}, 8},
               {"rmat:3,4,a=1,b=0,c=0", {1, 0, 0, 0}, 32}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    int64_t seen[N][N] = {{0}};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
      asparse_csr *a = whole_of(cases[c].text, seed);
      for (int64_t i = 0; i < N; i++)
        for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) seen[i][a->col_idx[e]]++;
      asparse_csr_destroy(&a);
    }
    for (int64_t i = 0; i < N; i++) {
      for (int64_t j = 0; j < N; j++) {
        double p = 1 - pow(1 - edge_chance(cases[c].quadrant, SCALE, i, j), cases[c].edges);
        assert_true(fabs((double)seen[i][j] - SEEDS * p) <= 5 * sqrt(SEEDS * p * (1 - p)) + 1e-9);
      }
    }
  }
}

/* No edge is lost on the way down, and a graph is as skewed as its chances say. */
static void rmat_edges(void **unused) {
  (void)unused;
  enum { SCALE = 12, N = 1 << SCALE };
  const double quadrant[4] = {0.57, 0.19, 0.19, 0.05}, n_edges = 8.0 * N;
  asparse_generator g = parsed("rmat:scale=12,edges=8", 9, ASPARSE_FP64);
  static int64_t edges[N];
  int64_t sum = 0, longest = 0;
  g.kind->count(&g, 0, N, edges);
  for (int64_t i = 0; i < N; i++) sum += edges[i];
  assert_int_equal(sum, 8 * N);
  double row_0 = n_edges * pow(quadrant[0] + quadrant[1], SCALE);
  assert_true(fabs((double)edges[0] - row_0) < 5 * sqrt(row_0));

  asparse_csr *a = slab_of(&g, 0, N);
  double expected = 0, variance = 0;
  for (int64_t i = 0; i < N; i++) {
    for (int64_t j = 0; j < N; j++) {
      double p = -expm1(n_edges * log1p(-edge_chance(quadrant, SCALE, i, j)));
      expected += p;
      variance += p * (1 - p);
    }
    int64_t length = a->row_ptr[i + 1] - a->row_ptr[i];
    if (length > longest) longest = length;
    assert_true(length <= edges[i]);
  }
  assert_true(fabs((double)a->nnz - expected) < 5 * sqrt(variance));
  assert_true(longest > 20 * a->nnz / N);
  asparse_csr_destroy(&a);
}

/* With equal quadrants, lengths of rows that lie apart by half, quarter, … of the graph know nothing of each other. */
static void rmat_rows_are_independent(void **unused) {
  (void)unused;
  enum { N = 1 << 12, MEAN = 32 };
  asparse_generator g = parsed("rmat:12,32,.25,.25,.25", 10, ASPARSE_FP64);
  static int64_t edges[N];
  double variance = 0;
  g.kind->count(&g, 0, N, edges);
  for (int64_t i = 0; i < N; i++) variance += (double)((edges[i] - MEAN) * (edges[i] - MEAN)) / N;
  assert_true(fabs(variance / MEAN - 1) < 5 * sqrt(2.0 / N));
  for (int64_t apart = N / 2; apart > 0; apart /= 2) {
    double covariance = 0;
    for (int64_t i = 0; i < N; i++) covariance += (double)((edges[i] - MEAN) * (edges[i ^ apart] - MEAN)) / N;
    assert_true(fabs(covariance) < 5 * MEAN * sqrt(2.0 / N));
  }
}

static const char *const all_kinds[] = {"grid2d:9,7",          "grid3d:5,4,3,27,values=random",
                                        "fem2d:6,unknowns=2",  "fem3d:3,unknowns=2",
                                        "banded:90,9,.4",      "rmat:7,6",
                                        "uniform:80,500,11.5", "uniform:60,60,density=.4",
                                        "blocks:70,90,16,.6",  "banded:90,values=one"};
enum { N_ALL = sizeof all_kinds / sizeof all_kinds[0] };

/* Slabs of random cuts, empty ones among them, are the rows of the whole, to the last bit. */
static void slabs_of_any_cut(void **unused) {
  (void)unused;
  uint64_t state = 2;
  for (int c = 0; c < N_ALL * 20; c++) {
    asparse_generator g = parsed(all_kinds[c % N_ALL], 3, c % 3 ? ASPARSE_FP64 : ASPARSE_FP32);
    asparse_csr *whole = slab_of(&g, 0, g.m);
    for (int64_t begin = 0, n_rows; begin < g.m; begin += n_rows) {
      n_rows = test_random(&state, g.m - begin + 1);
      asparse_csr *a = slab_of(&g, begin, n_rows);
      int64_t first = whole->row_ptr[begin], size = (int64_t)asparse_dtype_size(g.dtype);
      for (int64_t i = 0; i <= n_rows; i++) assert_int_equal(a->row_ptr[i] + first, whole->row_ptr[begin + i]);
      assert_memory_equal(a->col_idx, whole->col_idx + first, a->nnz * 8);
      assert_memory_equal(a->values, (const char *)whole->values + first * size, a->nnz * size);
      asparse_csr_destroy(&a);
    }
    asparse_csr_destroy(&whole);
  }
}

/* More rows than one chunk of the count; one thread gives what several give. */
static void large_slabs(void **unused) {
  (void)unused;
  static const char *const texts[] = {"rmat:scale=16,edges=3", "banded:n=50000,half=3,fill=0.5", "fem2d:nx=120"};
  for (int t = 0; t < 3; t++) {
    asparse_generator g = parsed(texts[t], 3, ASPARSE_FP64);
    omp_set_num_threads(3);
    asparse_csr *whole = slab_of(&g, 0, g.m);
    omp_set_num_threads(1);
    for (int64_t begin = 1000; begin < g.m; begin += 17001) {
      int64_t n_rows = begin + 17001 < g.m ? 17001 : g.m - begin;
      asparse_csr *a = slab_of(&g, begin, n_rows);
      int64_t first = whole->row_ptr[begin];
      assert_int_equal(a->nnz, whole->row_ptr[begin + n_rows] - first);
      assert_memory_equal(a->col_idx, whole->col_idx + first, a->nnz * 8);
      assert_memory_equal(a->values, (double *)whole->values + first, a->nnz * 8);
      asparse_csr_destroy(&a);
    }
    asparse_csr_destroy(&whole);
  }
}

static void cuts(void **unused) {
  (void)unused;
  for (int c = 0; c < N_ALL; c++) {
    asparse_generator g = parsed(all_kinds[c], 3, ASPARSE_FP64);
    for (int parts = 1; parts < 200; parts += parts < 9 ? 1 : 50) {
      assert_int_equal(asparse_generator_cut(&g, parts, 0), 0);
      assert_int_equal(asparse_generator_cut(&g, parts, parts), g.m);
      for (int part = 0; part < parts; part++)
        assert_true(asparse_generator_cut(&g, parts, part) <= asparse_generator_cut(&g, parts, part + 1));
    }
  }
  /* R-MAT by edges: no part has more than its share and one row. */
  asparse_generator g = parsed("rmat:scale=12,edges=8", 3, ASPARSE_FP64);
  static int64_t edges[1 << 12];
  g.kind->count(&g, 0, g.m, edges);
  for (int part = 0; part < 5; part++) {
    int64_t sum = 0, begin = asparse_generator_cut(&g, 5, part), end = asparse_generator_cut(&g, 5, part + 1);
    for (int64_t i = begin; i < end; i++) sum += edges[i];
    int64_t longest = edges[0];
    assert_true(sum <= g.rmat.n_edges / 5 + 1 + longest);
  }
}

/* The same seed gives the same matrix, another one another. */
static void seeds(void **unused) {
  (void)unused;
  for (int c = 0; c < N_ALL; c++) {
    asparse_csr *a = whole_of(all_kinds[c], 1), *again = whole_of(all_kinds[c], 1), *other = whole_of(all_kinds[c], 2);
    bool fixed = strstr(all_kinds[c], "grid2d") || strstr(all_kinds[c], "one");
    assert_true(equal(a, again));
    assert_int_equal(equal(a, other), fixed);
    asparse_csr_destroy(&a);
    asparse_csr_destroy(&again);
    asparse_csr_destroy(&other);
  }
}

static void values_and_precision(void **unused) {
  (void)unused;
  for (int c = 0; c < N_ALL; c++) {
    asparse_generator wide = parsed(all_kinds[c], 1, ASPARSE_FP64), narrow = parsed(all_kinds[c], 1, ASPARSE_FP32);
    asparse_csr *a = slab_of(&wide, 0, wide.m), *b = slab_of(&narrow, 0, narrow.m);
    double sum = 0, squares = 0, n = (double)a->nnz;
    assert_int_equal(a->nnz, b->nnz);
    for (int64_t e = 0; e < a->nnz; e++) {
      double value = value_at(a, e);
      assert_true((float)value == ((const float *)b->values)[e]);
      sum += value;
      squares += value * value;
      if (wide.values == ASPARSE_VALUES_RANDOM) assert_true(value >= -1 && value < 1);
      if (wide.values == ASPARSE_VALUES_ONE) assert_true(value == 1);
    }
    /* Uniform in [-1, 1): mean 0, variance 1/3; the variance of a square is 4/45. */
    if (wide.values == ASPARSE_VALUES_RANDOM) {
      assert_true(fabs(sum) < 5 * sqrt(n / 3));
      assert_true(fabs(squares - n / 3) < 5 * sqrt(n * 4 / 45));
    }
    asparse_csr_destroy(&a);
    asparse_csr_destroy(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(grids),
      cmocka_unit_test(finite_elements),
      cmocka_unit_test(banded),
      cmocka_unit_test(uniform),
      cmocka_unit_test(blocks),
      cmocka_unit_test(rmat_places),
      cmocka_unit_test(rmat_edges),
      cmocka_unit_test(rmat_rows_are_independent),
      cmocka_unit_test(slabs_of_any_cut),
      cmocka_unit_test(large_slabs),
      cmocka_unit_test(cuts),
      cmocka_unit_test(seeds),
      cmocka_unit_test(values_and_precision),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
