/* Matrix Market files: what they may hold. Each case is a small text, or a large one cut for many threads. */
#include <locale.h>

#include "mtx_fixture.h"

/* ---- what is read -------------------------------------------------------------------------------- */

static void test_fields(void **state) {
  (void)state;
  expect(REAL "2 3 3\n2 3 1.5\n1 2 -2e-3\n2 1 4\n", "2x3: (1,2)=-0.002 (2,1)=4 (2,3)=1.5");
  expect("%%MatrixMarket matrix coordinate double general\n1 1 1\n1 1 2.5\n", "1x1: (1,1)=2.5");
  expect(INTEGER "2 2 2\n1 1 -7\n2 2 +8\n", "2x2: (1,1)=-7 (2,2)=8");
  expect("%%MatrixMarket matrix coordinate unsigned-integer general\n1 1 1\n1 1 7\n", "1x1: (1,1)=7");
  expect(PATTERN "2 2 2\n1 2\n2 1\n", "2x2: (1,2)=1 (2,1)=1");
  expect("%%MatrixMarket vector coordinate real general\n3 2\n3 1.5\n1 2\n", "3x1: (1,1)=2 (3,1)=1.5");
  expect("%%MatrixMarket vector array real general\n3\n1\n0\n3\n", "3x1: (1,1)=1 (3,1)=3");
}

static void test_symmetries(void **state) {
  (void)state;
  const char *expanded = "3x3: (1,1)=1 (1,3)=2 (2,3)=3 (3,1)=2 (3,2)=3";
  expect(SYMMETRIC "3 3 3\n1 1 1\n3 1 2\n3 2 3\n", expanded);
  expect(SYMMETRIC "3 3 3\n1 1 1\n1 3 2\n2 3 3\n", expanded);
  expect("%%MatrixMarket matrix coordinate real hermitian\n3 3 3\n1 1 1\n3 1 2\n3 2 3\n", expanded);
  expect("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n2 1\n2 2\n", "2x2: (1,2)=1 (2,1)=1 (2,2)=1");
  expect(SKEW "3 3 2\n2 1 5\n3 1 -6\n", "3x3: (1,2)=-5 (1,3)=6 (2,1)=5 (3,1)=-6");
  expect(SKEW "2 2 1\n1 2 5\n", "2x2: (1,2)=5 (2,1)=-5");
  expect(SKEW "2 2 2\n1 1 0\n2 1 1\n", "2x2: (1,1)=0 (1,2)=-1 (2,1)=1");
}

static void test_arrays(void **state) {
  (void)state;
  expect(ARRAY "2 3\n1\n2\n0\n-0.0\n5\n6\n", "2x3: (1,1)=1 (1,3)=5 (2,1)=2 (2,3)=6");
  expect("%%MatrixMarket matrix array integer general\n1 2\n3\n4\n", "1x2: (1,1)=3 (1,2)=4");
  expect("%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n0\n6\n",
         "3x3: (1,1)=1 (1,2)=2 (1,3)=3 (2,1)=2 (2,2)=4 (3,1)=3 (3,3)=6");
  expect("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n",
         "3x3: (1,2)=-1 (1,3)=-2 (2,1)=1 (2,3)=-3 (3,1)=2 (3,2)=3");
  expect("%%MatrixMarket matrix array real skew-symmetric\n1 1\n", "1x1:");
  expect("%%MatrixMarket matrix array real symmetric\n2 2\n1.5\n\n% remark\n2.5\n3.5\n",
         "2x2: (1,1)=1.5 (1,2)=2.5 (2,1)=2.5 (2,2)=3.5");
}

static void test_empty_shapes(void **state) {
  (void)state;
  expect(REAL "0 0 0\n", "0x0:");
  expect(REAL "3 4 0", "3x4:");
  expect(REAL "0 5 0\n", "0x5:");
  expect(REAL "5 0 0\n", "5x0:");
  expect(REAL "2 9223372036854775806 1\n2 9223372036854775806 1\n", "2x9223372036854775806: (2,9223372036854775806)=1");
  expect(ARRAY "0 1000000000000000\n", "0x1000000000000000:");
  expect(ARRAY "7 0\n", "7x0:");
  expect("%%MatrixMarket matrix array real symmetric\n0 0\n", "0x0:");
  expect("%%MatrixMarket matrix array real skew-symmetric\n0 0\n", "0x0:");
}

static void test_layout(void **state) {
  (void)state;
  const char *expected = "2x2: (1,1)=1 (2,2)=2";
  expect("%%MatrixMarket matrix coordinate real general\r\n2 2 2\r\n1 1 1\r\n2 2 2\r\n", expected);
  expect("%%MatrixMarket matrix coordinate real general\r% one\r2 2 2\r1 1 1\r2 2 2", expected);
  expect(REAL "2 2 2\n1 1 1\n2 2 2", expected);
  expect(REAL "\n\n%a\n%\n   \n2 2 2\n\n1 1 1\n \t \n% between\n2 2 2\n\n\n% after\n", expected);
  expect(REAL "  2\t2   2  \n\t1   1\t\t1 \n   2 2 2\t\n", expected);
  expect("%%matrixmarket MATRIX Coordinate REAL General  \n2 2 2\n1 1 1\n2 2 2\n", expected);
  expect("  %MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 2\n", expected);
  expect("\xef\xbb\xbf" REAL "2 2 2\n1 1 1\n2 2 2\n", expected);
  expect(REAL "+2 02 2\n+1 1 1\n002 2 2\n", expected);
}

static void test_numbers(void **state) {
  (void)state;
  expect(REAL "1 9 9\n1 1 1.0D+00\n1 2 +1\n1 3 .5\n1 4 5.\n1 5 -1d2\n1 6 1E-2\n1 7 -.25e1\n1 8 -0.0\n1 9 1e-400\n",
         "1x9: (1,1)=1 (1,2)=1 (1,3)=0.5 (1,4)=5 (1,5)=-100 (1,6)=0.01 (1,7)=-2.5 (1,8)=-0 (1,9)=0");
  expect(REAL "1 4 4\n1 1 inf\n1 2 -Infinity\n1 3 +INF\n1 4 NaN\n", "1x4: (1,1)=inf (1,2)=-inf (1,3)=inf (1,4)=nan");
}

static void test_duplicates(void **state) {
  (void)state;
  asparse_source source;
  save_text(REAL "2 2 6\n2 2 1e300\n1 1 1\n2 2 -1e300\n1 1 2\n2 2 1\n2 1 0\n");
  asparse_csr *a = read_saved(&source);
  char found[256];
  describe(a, found, sizeof found);
  assert_string_equal(found, "2x2: (1,1)=3 (2,1)=0 (2,2)=1"); /* summed in the order of the file */
  assert_int_equal(a->n_duplicates, 3);
  assert_int_equal(source.stored_entries, 6);
  asparse_csr_destroy(&a);
}

static void test_source(void **state) {
  (void)state;
  asparse_source source;
  save_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n");
  asparse_csr *a = read_saved(&source);
  assert_string_equal(source.format, "Matrix Market");
  assert_string_equal(source.value_type, "pattern");
  assert_string_equal(source.structure, "symmetric");
  assert_int_equal(source.stored_entries, 2);
  assert_int_equal(a->nnz, 3);
  asparse_csr_destroy(&a);
}

static void test_large_integers(void **state) {
  (void)state;
  save_text("%%MatrixMarket matrix coordinate integer symmetric\n3 3 4\n1 1 9007199254740992\n2 1 9007199254740993\n"
            "2 2 -18446744073709551615\n3 3 -9223372036854775808\n");
  asparse_csr *a = read_saved(NULL);
  const double *values = a->values;
  assert_true(values[0] == 0x1p53);
  assert_true(values[1] == 0x1p53 && values[2] == 0x1p53);
  assert_true(values[3] == -0x1p64 && values[4] == -0x1p63);
  assert_int_equal(a->n_inexact, 3);
  asparse_csr_destroy(&a);
}

static void test_gzip(void **state) {
  (void)state;
  const char *text = REAL "2 2 1\n2 1 3\n";
  save_gzip(text, strlen(text));
  expect_saved("2x2: (2,1)=3");
}

static void test_standard_input(void **state) {
  (void)state;
  const char *text = PATTERN "2 2 1\n2 1\n";
  asparse_csr *a = NULL;
  int saved = dup(STDIN_FILENO);
  save_gzip(text, strlen(text));
  assert_non_null(freopen(path, "rb", stdin));
  assert_int_equal(asparse_mtx_read("-", &a, NULL), ASPARSE_OK);
  assert_int_equal(a->nnz, 1);
  asparse_csr_destroy(&a);
  dup2(saved, STDIN_FILENO);
  close(saved);
}

/* A decimal comma in the program's locale, where the system has such a one, changes nothing. */
static void test_locale(void **state) {
  (void)state;
  if (!setlocale(LC_NUMERIC, "de_DE.UTF-8")) print_message("no German locale here: tested in the C locale\n");
  expect(REAL "1 1 1\n1 1 1234567890123456789012.5e-3\n", "1x1: (1,1)=1.2345678901234568e+18");
  setlocale(LC_NUMERIC, "C");
}

/* ---- threads ------------------------------------------------------------------------------------- */

static void check_large(const double *dense) {
  asparse_csr *a = read_saved(NULL);
  int64_t present = 0;
  for (int64_t i = 0; i < a->m * a->k; i++) present += dense[i] != 0.0;
  assert_int_equal(a->nnz, present);
  for (int64_t i = 0; i < a->m; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++)
      assert_true(((double *)a->values)[e] == dense[i * a->k + a->col_idx[e]]);
  }
  asparse_csr_destroy(&a);
}

/* The same bits for any number of threads, from plain and compressed text. */
static void test_threads(void **state) {
  (void)state;
  static double dense[LARGE_K * LARGE_K];
  const int threads = omp_get_max_threads();
  for (int n = 1; n <= 9; n += 2) {
    omp_set_num_threads(n);
    char *text = large_text("general", dense, LARGE_M, LARGE_K);
    save_text(text);
    check_large(dense);
    save_gzip(text, strlen(text));
    check_large(dense);
    free(text);
    text = large_text("symmetric", dense, LARGE_M, LARGE_M);
    save_text(text);
    check_large(dense);
    free(text);
  }
  omp_set_num_threads(threads);
}

/* Arrays whose pieces begin in the middle of a column. */
static void test_threads_array(void **state) {
  (void)state;
  enum { N = 301 };
  static double dense[N * N];
  static const char *const symmetries[] = {"general", "symmetric", "skew-symmetric"};
  const int threads = omp_get_max_threads();
  char *text = malloc(N * N * 24);
  for (int s = 0; s < 3; s++) {
    char *end = text + sprintf(text, "%%%%MatrixMarket matrix array real %s\n%d %d\n", symmetries[s], N, N);
    for (int j = 0; j < N; j++) {
      for (int i = s == 0 ? 0 : s == 1 ? j : j + 1; i < N; i++) {
        double value = (i * 31 + j * 17) % 5 ? i + j / 1024.0 : 0.0;
        end += sprintf(end, "%.17g\n", value);
        dense[i * N + j] = value;
        if (s > 0) dense[j * N + i] = s == 1 ? value : -value;
      }
      if (s == 2) dense[j * N + j] = 0.0;
    }
    save_text(text);
    omp_set_num_threads(7);
    check_large(dense);
  }
  omp_set_num_threads(threads);
  free(text);
}

static void test_failing_memory(void **state) {
  (void)state;
  static double dense[LARGE_K * LARGE_K];
  char *text = large_text("symmetric", dense, LARGE_M, LARGE_M);
  save_gzip(text, strlen(text));
  free(text);
  const int64_t blocks = asparse_memory_live_blocks();
  int failures = 0;
  for (int n = 1; n <= 20; n++) {
    asparse_csr *a = NULL;
    asparse_memory_fail_at(n);
    asparse_status status = asparse_mtx_read(path, &a, NULL);
    assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
    assert_true((status == ASPARSE_OK) == (a != NULL));
    failures += status != ASPARSE_OK;
    asparse_csr_destroy(&a);
    asparse_error_clear();
    assert_int_equal(asparse_memory_live_blocks(), blocks);
  }
  asparse_memory_fail_at(0);
  assert_in_range(failures, 8, 19);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fields),       cmocka_unit_test(test_symmetries),     cmocka_unit_test(test_arrays),
      cmocka_unit_test(test_empty_shapes), cmocka_unit_test(test_layout),         cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_duplicates),   cmocka_unit_test(test_source),         cmocka_unit_test(test_large_integers),
      cmocka_unit_test(test_gzip),         cmocka_unit_test(test_standard_input), cmocka_unit_test(test_locale),
      cmocka_unit_test(test_threads),      cmocka_unit_test(test_threads_array),  cmocka_unit_test(test_failing_memory),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
