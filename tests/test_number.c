/* Decimal numbers: rounded as strtod rounds them, whatever path they take. */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rounding),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
