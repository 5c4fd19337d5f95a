/* Matrix Market files: what must be refused, and in which words. */
#include "mtx_fixture.h"

static void test_bad_files(void **state) {
  (void)state;
  asparse_csr *a = NULL;
  refuse("", "empty", path);
  assert_int_equal(asparse_mtx_read("/nonexistent/a.mtx", &a, NULL), ASPARSE_ERR_NO_INPUT);
  assert_non_null(strstr(asparse_error_message(), "/nonexistent/a.mtx"));
  asparse_error_clear();
  assert_int_equal(asparse_mtx_read(folder, &a, NULL), ASPARSE_ERR_NO_INPUT);
  asparse_error_clear();
  refuse("\x89HDF\r\n\x1a\n", "HDF5", "no conversion");
  refuse("BZh91AY&SY", "bzip2 -d", path);
}

static void test_damaged_gzip(void **state) {
  (void)state;
  static double dense[LARGE_K * LARGE_K];
  char *text = large_text("general", dense, LARGE_M, LARGE_K);
  save_gzip(text, strlen(text));
  free(text);
  FILE *file = fopen(path, "rb");
  static unsigned char bytes[1 << 20];
  size_t length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_in_range(length, 1000, sizeof bytes - 1);
  static const size_t cuts[] = {3, 11, 500};
  for (size_t i = 0; i < 3; i++) {
    save(bytes, i < 2 ? cuts[i] : length - cuts[i]);
    refuse_saved(ASPARSE_ERR_DATA, "gzip", "cut off");
  }
  save(bytes, length - 4); /* the length at the end is missing */
  refuse_saved(ASPARSE_ERR_DATA, "gzip", "cut off");
  bytes[length / 2] ^= 0x55;
  save(bytes, length);
  refuse_saved(ASPARSE_ERR_DATA, "gzip", "damaged");
}

static void test_bad_banners(void **state) {
  (void)state;
  refuse("2 2 1\n1 1 1\n", "line 1: no banner, found \"2\"", "%%MatrixMarket matrix coordinate real general");
  refuse("\n\n%%Matrix Market matrix\n", "line 3: no banner", "%%Matrix");
  refuse("%%MatrixMarket tensor coordinate real general\n1 1 0\n", "line 1: unknown object \"tensor\"",
         "matrix, vector");
  refuse("%%MatrixMarket matrix list real general\n1 1 0\n", "unknown format \"list\"", "coordinate, array");
  refuse("%%MatrixMarket matrix coordinate quaternion general\n1 1 0\n", "unknown field \"quaternion\"", "pattern");
  refuse("%%MatrixMarket matrix coordinate real odd\n1 1 0\n", "unknown symmetry \"odd\"", "skew-symmetric");
  refuse("%%MatrixMarket matrix coordinate real", "ends before its symmetry", "general");
  refuse("%%MatrixMarket\n", "ends before its object", "matrix");
  refuse("%%MatrixMarket matrix coordinate real general x\n1 1 0\n", "\"x\" follows", "banner");
  refuse("%%MatrixMarket matrix coordinate complex general\n1 1 0\n", "complex values are not supported yet", "use");
  refuse("%%MatrixMarket matrix array pattern general\n1 1\n", "\"pattern\" cannot go with \"array\"", "expected");
  refuse("%%MatrixMarket matrix coordinate pattern skew-symmetric\n1 1 0\n", "\"pattern\"", "skew-symmetric");
}

static void test_bad_sizes(void **state) {
  (void)state;
  refuse(REAL, "ends before its size line", "rows columns entries");
  refuse(REAL "% only comments\n\n", "ends before its size line", "line 4");
  refuse(REAL "%\n2 2\n", "line 3: the size line ends before the number of entries", "rows columns entries");
  refuse(ARRAY "2\n1\n", "the number of columns", "\"rows columns\"");
  refuse(ARRAY "2 2 4\n1\n", "\"4\" follows the size line", "\"rows columns\"");
  refuse(REAL "2 x 1\n", "found \"x\" as the number of columns", "whole number");
  refuse(REAL "2.0 2 1\n", "found \"2.0\" as the number of rows", "whole number");
  refuse(REAL "-2 2 1\n", "the number of rows is -2", "expected 0 to");
  refuse(REAL "2 -2 1\n", "the number of columns is -2", "expected 0 to");
  refuse(REAL "2 2 -1\n", "the number of entries is -1", "expected 0 to");
  refuse(REAL "2 19223372036854775808 1\n", "19223372036854775808", "expected 0 to");
  refuse(REAL "9223372036854775807 2 1\n", "9223372036854775807", "expected 0 to");
  refuse(SYMMETRIC "2 3 1\n1 1 1\n", "must be square", "2 × 3");
  refuse("%%MatrixMarket vector coordinate real symmetric\n4 1\n1 1\n", "must be square", "4 × 1");
}

/* Sizes of nonsense must be refused before they are allocated. */
static void test_huge_sizes(void **state) {
  (void)state;
  asparse_memory_reset_peak();
  save_text(REAL "1099511627776 1099511627776 1\n1 1 1\n");
  refuse_saved(ASPARSE_ERR_MEMORY, "1099511627776 rows", "GiB");
  save_text(REAL "9223372036854775806 1 0\n");
  refuse_saved(ASPARSE_ERR_MEMORY, "rows", "GiB");
  refuse(REAL "2 2 1152921504606846976\n1 1 1\n", "1 of 1152921504606846976 entries", "cut off");
  refuse(ARRAY "4 4611686018427387904\n1\n", "cut off", "1 of 9223372036854775807");
  assert_true(asparse_memory_peak_bytes() < 16 << 20);
}

static void test_bad_counts(void **state) {
  (void)state;
  refuse(REAL "2 2 2\n1 1 1\n", "ends after 1 of 2 entries", "line 4");
  refuse(REAL "2 2 1\n1 1 1\n\n2 2 1\n", "line 5: more entries than the 1", "size line");
  refuse(REAL "2 2 0\n1 1 1\n", "line 3: more entries than the 0", "size line");
  refuse(ARRAY "2 2\n1\n2\n3\n", "ends after 3 of 4 entries", "cut off");
  refuse(ARRAY "2 1\n1\n2\n3\n", "line 5: more entries than the 2", "size line");
}

static void test_bad_entries(void **state) {
  (void)state;
  refuse(REAL "2 2 1\n0 1 1\n", "line 3: the row index is 0; expected 1 to 2", "count from 1");
  refuse(REAL "2 3 1\n\n3 1 1\n", "line 4: the row index is 3", "expected 1 to 2");
  refuse(REAL "2 3 1\r\n1 4 1\r\n", "line 3: the column index is 4", "expected 1 to 3");
  refuse(REAL "2 3 1\r1 -1 1\r", "line 3: the column index is -1", "expected 1 to 3");
  refuse(REAL "2 2 1\n19223372036854775808 1 1\n", "19223372036854775808", "expected 1 to 2");
  refuse(REAL "2 2 1\n1.0 1 1\n", "found \"1.0\" as row index", "whole number");
  refuse(REAL "2 2 1\nhello 1 1\n", "found \"hello\" as row index", "whole number");
  refuse(REAL "2 2 1\n1\n", "the line ends before its column index", "line 3");
  refuse(REAL "2 2 1\n1 1\n", "the line ends before its value", "pattern");
  refuse(REAL "2 2 1\n1 1 1 1\n", "\"1\" follows the end of the entry", "line 3");
  refuse(REAL "2 2 1\n1 1 1x\n", "found \"1x\" as value", "a number");
  refuse(REAL "2 2 1\n1 1 0x1p3\n", "found \"0x1p3\" as value", "a number");
  refuse(REAL "2 2 1\n1 1 .\n", "found \".\" as value", "a number");
  refuse(REAL "2 2 1\n1 1 1e\n", "found \"1e\" as value", "a number");
  refuse(REAL "2 2 1\n1 1 1,5\n", "found \"1,5\" as value", "a number");
  refuse(REAL "2 2 1\n1 1 infinite\n", "found \"infinite\" as value", "a number");
  refuse(REAL "2 2 1\n1 1 1e400\n", "1e400 is out of range", "fp64");
  refuse(INTEGER "2 2 1\n1 1 1.5\n", "found \"1.5\" as value", "\"real\"");
  refuse(INTEGER "2 2 1\n1 1 18446744073709551616\n", "out of range", "64 bits");
  refuse(PATTERN "2 2 1\n1 1 1\n", "\"1\" follows the end of the entry", "pattern");
  refuse(ARRAY "1 2\n1 2\n", "ends after 1 of 2", "line 4");
  refuse(ARRAY "1 2\n1 2\n3\n", "line 3: \"2\" follows the end of the entry", "line end");
  refuse(ARRAY "1 1\nabc\n", "found \"abc\" as value", "line 3");
  save(REAL "1 1 1\n1 1 \0\n", sizeof REAL + 11);
  refuse_saved(ASPARSE_ERR_DATA, "found \"?\" as value", "line 3");
}

static void test_bad_triangles(void **state) {
  (void)state;
  refuse(SYMMETRIC "3 3 3\n2 1 1\n1 1 1\n1 2 1\n", "line 5: an entry above the diagonal", "general");
  refuse(SYMMETRIC "3 3 2\n1 3 1\n3 2 1\n", "line 4: an entry below the diagonal", "symmetric");
  refuse(SKEW "2 2 1\n1 1 3\n", "line 3: a value on the diagonal", "0");
}

static void test_long_words(void **state) {
  (void)state;
  char text[8192];
  int used = sprintf(text, REAL "1 1 1\n1 1 ");
  memset(text + used, '7', 5000);
  strcpy(text + used + 5000, "\n");
  refuse(text, "777...", "line 3");
  used = sprintf(text, REAL "1 1 1\n1 1 0.");
  memset(text + used, '0', 1000);
  strcpy(text + used + 1000, "1e1001\n");
  expect(text, "1x1: (1,1)=1");
}

/* The first error of the file is reported, whichever thread meets its own first. */
static void test_first_error(void **state) {
  (void)state;
  static double dense[LARGE_K * LARGE_K];
  const int threads = omp_get_max_threads();
  omp_set_num_threads(5);
  char *text = large_text("general", dense, LARGE_M, LARGE_K);
  size_t length = strlen(text);
  const char *first = NULL;
  for (size_t quarter = 1; quarter < 4; quarter++) {
    char *entry = strchr(text + quarter * length / 4, '\n') + 1;
    *entry = 'x';
    if (!first) first = entry;
  }
  int line = 1;
  for (const char *p = text; p < first; p++) line += *p == '\n';
  char place[32];
  snprintf(place, sizeof place, "line %d: found \"x", line);
  save_text(text);
  refuse_saved(ASPARSE_ERR_DATA, place, "row index");
  free(text);
  omp_set_num_threads(threads);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bad_files),   cmocka_unit_test(test_damaged_gzip),  cmocka_unit_test(test_bad_banners),
      cmocka_unit_test(test_bad_sizes),   cmocka_unit_test(test_huge_sizes),    cmocka_unit_test(test_bad_counts),
      cmocka_unit_test(test_bad_entries), cmocka_unit_test(test_bad_triangles), cmocka_unit_test(test_long_words),
      cmocka_unit_test(test_first_error),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
