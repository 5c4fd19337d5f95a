/* Descriptions that are wrong, sizes that are too large or just not, memory that runs out. */
#include "generate/kind.h"
#include "generate_fixture.h"

static void refused(const char *text, const char *words) {
  asparse_generator g;
  asparse_status status = asparse_generator_parse(text, 1, ASPARSE_FP64, &g);
  if (status != ASPARSE_ERR_USAGE || !strstr(asparse_error_message(), words))
    print_error("'%s': status %d, \"%s\", wanted \"%s\"\n", text, (int)status, asparse_error_message(), words);
  assert_int_equal(status, ASPARSE_ERR_USAGE);
  assert_non_null(strstr(asparse_error_message(), words));
  asparse_error_clear();
}

static void wrong_descriptions(void **unused) {
  (void)unused;
  refused("", "no kind of matrix ''; there are grid2d, grid3d, fem2d, fem3d, banded, rmat, uniform, blocks");
  refused("grid4d", "'grid4d'");
  refused("grid2d nx=4", "'grid2d nx=4'");
  refused("grid2d:rows=4", "grid2d has no parameter for 'rows'; it takes nx, ny, points, values");
  refused("grid2d:nx=4,nx=5", "grid2d: nx is given twice");
  refused("grid2d:4,nx=5", "grid2d: nx is given twice");
  refused("grid2d:1,2,5,9", "no parameter for '9'");
  refused("grid2d:", "nx takes a whole number from 1 to 1099511627776, not ''");
  refused("grid2d:4,", "ny takes a whole number");
  refused("grid2d:nx=", "nx takes a whole number");
  refused("grid2d:=4", "no parameter for ''");
  refused("grid2d:nx=4x", "not '4x'");
  refused("grid2d:nx=0", "not '0'");
  refused("grid2d:nx=-3", "not '-3'");
  refused("grid2d:nx=2.5", "not '2.5'");
  refused("grid2d:nx=nan", "not 'nan'");
  refused("grid2d:nx=inf", "not 'inf'");
  refused("grid2d:nx=1e300", "not '1e300'");
  refused("grid2d:4,points=7", "grid2d: points takes 5 or 9, not '7'");
  refused("grid3d:4,points=9", "grid3d: points takes 7 or 27, not '9'");
  refused("grid2d:4,values=2", "values takes one of random, one, spd, not '2'");
  refused("rmat:values=spd", "rmat: values takes one of random, one, not 'spd'");
  refused("rmat:d=0.1", "it takes scale, edges, a, b, c, values");
  refused("rmat:a=0.9,b=0.2", "a + b + c is 1.29");
  refused("rmat:a=1.5", "a takes a number from 0 to 1");
  refused("rmat:scale=41", "from 1 to 40");
  refused("uniform:100,per_row=3,density=.1", "per_row or density, not both");
  refused("uniform:100,50,51", "do not fit into 50 columns");
  refused("blocks:empty=1.1", "empty takes a number from 0 to 1");
  char text[1024];
  memset(text, '0', sizeof text);
  memcpy(text, "grid2d:", 7);
  text[sizeof text - 1] = '\0';
  refused(text, "longer than 511 letters");
}

static void too_large(void **unused) {
  (void)unused;
  refused("grid2d:1e12", "too large");
  refused("grid3d:1e5", "too large");
  refused("fem3d:1e4,unknowns=3", "too large");
  refused("uniform:1e12,density=1", "entries are too many");
  refused("blocks:1e12", "entries are too many");
  refused("banded:1e12,1e6", "entries are too many");
  refused("rmat:40,1000", "entries are too many");
}

/* Rows at the far end of the largest matrices. */
static void far_rows(void **unused) {
  (void)unused;
  static const char *const texts[] = {"grid3d:10000,points=27",    "fem3d:7000,unknowns=3",
                                      "banded:1e12,100,.5",        "rmat:scale=40,edges=16",
                                      "uniform:1e12,per_row=20.5", "blocks:1e12,1e6,64,.9999"};
  for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
    asparse_generator g = parsed(texts[t], 1, ASPARSE_FP64);
    asparse_csr *last = slab_of(&g, g.m - 50, 50), *middle = slab_of(&g, g.m / 3, 50);
    assert_true(g.kind->spd_values == NULL || last->col_idx[last->nnz - 1] == g.k - 1);
    asparse_csr_destroy(&last);
    asparse_csr_destroy(&middle);
  }
  asparse_generator g = parsed("grid3d:10000", 1, ASPARSE_FP64);
  asparse_csr *corner = slab_of(&g, g.m - 1, 1);
  static const int64_t wanted[] = {999899999999, 999999989999, 999999999998, 999999999999};
  assert_int_equal(corner->nnz, 4);
  assert_memory_equal(corner->col_idx, wanted, sizeof wanted);
  asparse_csr_destroy(&corner);
}

static void rows_outside(void **unused) {
  (void)unused;
  asparse_generator g = parsed("grid2d:4", 1, ASPARSE_FP64);
  static const int64_t wrong[][2] = {{-1, 2}, {0, -1}, {0, 17}, {16, 1}, {INT64_MAX, 2}, {3, INT64_MAX}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    asparse_csr *a = NULL;
    assert_int_equal(asparse_generate_slab(&g, wrong[i][0], wrong[i][1], &a), ASPARSE_ERR_USAGE);
    assert_non_null(strstr(asparse_error_message(), "not rows of a matrix of 16"));
    assert_null(a);
    asparse_error_clear();
  }
  asparse_csr *empty = slab_of(&g, 16, 0);
  asparse_csr_destroy(&empty);
}

/* The text of a matrix, with all its defaults, is that matrix. */
static void text_and_back(void **unused) {
  (void)unused;
  static const char *const texts[] = {
      "grid2d:7",    "grid3d:3,ny=4",           "fem2d:4", "fem3d:2",          "banded:40,fill=.3",
      "rmat:6,a=.3", "uniform:40,density=.123", "blocks",  "uniform:50,20,2.6"};
  for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
    char text[ASPARSE_GENERATOR_TEXT];
    asparse_generator g = parsed(texts[t], 5, ASPARSE_FP64);
    asparse_generator_text(&g, text);
    asparse_csr *a = slab_of(&g, 0, g.m), *b = whole_of(text, 5);
    assert_true(equal(a, b));
    asparse_csr_destroy(&a);
    asparse_csr_destroy(&b);
  }
  char text[ASPARSE_GENERATOR_TEXT];
  asparse_generator g = parsed("fem3d:20,ny=30", 5, ASPARSE_FP64);
  asparse_generator_text(&g, text);
  assert_string_equal(text, "fem3d:nx=20,ny=30,nz=20,unknowns=3,points=27,values=spd");
}

static void allocation_failures(void **unused) {
  (void)unused;
  static const char *const texts[] = {"grid2d:5", "rmat:5", "blocks:100", "uniform:20"};
  int64_t live = asparse_memory_live_blocks();
  for (int t = 0; t < 4; t++) {
    asparse_generator g = parsed(texts[t], 1, ASPARSE_FP64);
    int failures = 0;
    for (int n = 1; n <= 8; n++) {
      asparse_csr *a = NULL;
      asparse_memory_fail_at(n);
      asparse_status status = asparse_generate_slab(&g, 0, g.m, &a);
      asparse_memory_fail_at(0);
      assert_true(status == ASPARSE_OK || (status == ASPARSE_ERR_MEMORY && !a));
      failures += status != ASPARSE_OK;
      asparse_csr_destroy(&a);
      assert_int_equal(asparse_memory_live_blocks(), live);
      asparse_error_clear();
    }
    assert_true(failures >= 5 && failures < 8);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_descriptions), cmocka_unit_test(too_large),     cmocka_unit_test(far_rows),
      cmocka_unit_test(rows_outside),       cmocka_unit_test(text_and_back), cmocka_unit_test(allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
