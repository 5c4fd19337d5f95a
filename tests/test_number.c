/* Decimal numbers: rounded as strtod rounds them, whatever path they take. */
#include <float.h>
#include <math.h>

#include "mtx_fixture.h"

#include "io/number.h"

static void check_number(const char *text) {
  char line[128];
  snprintf(line, sizeof line, "%s\n", text);
  const char *cursor = line;
  double value = 0, expected = strtod(text, NULL);
  asparse_number result = asparse_number_real(&cursor, &value);
  if (isinf(expected)) {
    assert_int_equal(result, ASPARSE_NUMBER_OVERFLOW);
    return;
  }
  if (result != ASPARSE_NUMBER_OK || memcmp(&value, &expected, sizeof value) != 0 || *cursor != '\n')
    fail_msg("%s is read as %.17g", text, value);
}

/* Every number is rounded as strtod does it, on the fast, the exact and the slow path. */
static void test_rounding(void **state) {
  (void)state;
  static const char *const hard[] = {"9007199254740993",
                                     "9007199254740992.5",
                                     "9007199254740993.0000000000000000000000001",
                                     "1.7976931348623157e308",
                                     "1.7976931348623159e308",
                                     "4.9e-324",
                                     "2.4703282292062327e-324",
                                     "2.2250738585072011e-308",
                                     "0.1000000000000000055511151231257827021181583404541015625",
                                     "18446744073709551615",
                                     "18446744073709551616",
                                     "9999999999999999999e27",
                                     "1e22",
                                     "1e23",
                                     "8.5e-27",
                                     "0000000000000000000000000000001.5",
                                     "0.00000000000000000000000000000000000015",
                                     "-0e5",
                                     "1e99999999999"};
  for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) check_number(hard[i]);
  uint64_t seed = 1;
  for (int i = 0; i < 200000; i++) {
    char text[96];
    uint64_t bits = next_random(&seed), other = next_random(&seed);
    double x;
    memcpy(&x, &bits, sizeof x);
    snprintf(text, sizeof text, "%.17g", isfinite(x) ? x : 1.0);
    check_number(text);
    snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)(bits >> other % 60),
             (unsigned long long)(other >> (20 + bits % 44)), (int)(other % 80) - 40);
    check_number(text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)(bits >> 10 << 1 | 1)); /* many are halfway cases */
    check_number(text);
  }
}

/* Text that both readers turn back into the same bits, in no more digits than printf needs. */
static void check_put(double value) {
  char text[ASPARSE_NUMBER_LENGTH + 1], shortest[64];
  char *end = asparse_number_put_real(text, value);
  assert_true(end - text < ASPARSE_NUMBER_LENGTH);
  strcpy(end, "\n");
  const char *cursor = text;
  double ours = 0, theirs = strtod(text, NULL);
  assert_int_equal(asparse_number_real(&cursor, &ours), ASPARSE_NUMBER_OK);
  if (memcmp(&ours, &value, sizeof value) != 0 || memcmp(&theirs, &value, sizeof value) != 0)
    fail_msg("%.17g is written as %s", value, text);
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(shortest, sizeof shortest, "%.*e", digits - 1, value);
    if (strtod(shortest, NULL) == value) break;
  }
  int n = 0, n_shortest = 0;
  for (const char *p = text; *p != '\n' && *p != 'e'; p++) n += *p >= '0' && *p <= '9' && (n > 0 || *p > '0');
  for (const char *p = shortest; *p && *p != 'e'; p++) n_shortest += *p >= '0' && *p <= '9';
  if (n > n_shortest && isfinite(value) && fabs(value) < 1e15) fail_msg("%s is written as %s", shortest, text);
}

static void test_writing(void **state) {
  (void)state;
  static const double special[] = {0.0,
                                   -0.0,
                                   0.1,
                                   1.5,
                                   -3.0,
                                   1e-4,
                                   1.25e-5,
                                   1e-5,
                                   1e22,
                                   1e23,
                                   123456789012345680.0,
                                   1e17,
                                   9007199254740993.0,
                                   0.99999999999999989,
                                   9.9999999999999999e-12,
                                   1e-11,
                                   DBL_MAX,
                                   DBL_MIN,
                                   4.9e-324,
                                   INFINITY,
                                   -INFINITY};
  for (size_t i = 0; i < sizeof special / sizeof *special; i++) check_put(special[i]);
  uint64_t seed = 2;
  for (int i = 0; i < 50000; i++) {
    uint64_t bits = next_random(&seed);
    double x;
    memcpy(&x, &bits, sizeof x);
    if (isfinite(x)) check_put(x);
    check_put((double)(int64_t)bits * 0x1p-63);                                /* 17 digits, most of them */
    check_put((double)(int64_t)(bits >> 40) * pow(10, (int)(bits % 30) - 12)); /* few digits */
    check_put((double)(float)((double)(bits >> 1) * 0x1p-60));
  }
  char text[ASPARSE_NUMBER_LENGTH + 1];
  *asparse_number_put_real(text, NAN) = '\0';
  assert_string_equal(text, "nan");
  *asparse_number_put_integer(text, INT64_MIN) = '\0';
  assert_string_equal(text, "-9223372036854775808");
  *asparse_number_put_integer(text, 0) = '\0';
  assert_string_equal(text, "0");
  *asparse_number_put_real(text, 1.25) = '\0';
  assert_string_equal(text, "1.25");
  *asparse_number_put_real(text, -1.25e-7) = '\0';
  assert_string_equal(text, "-1.25e-07");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_writing),
      cmocka_unit_test(test_rounding),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
