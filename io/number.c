#include "io/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

_Static_assert(FLT_EVAL_METHOD == 0, "the fast conversions need fp64 arithmetic without excess precision");

__extension__ typedef unsigned __int128 uint128;

enum {
  MAX_DIGITS = 19,     /* 10^19 < 2^64 */
  MAX_POWER_OF_5 = 27, /* 5^27 < 2^63 */
  MAX_POWER_OF_10 = 22 /* 10^22 = 2^22 · 5^22, 5^22 < 2^53: exact in fp64 */
};

/* significand · 10^exponent, as written. */
typedef struct decimal {
  bool negative, exact; /* exact: at most 19 significant digits, all in significand */
  uint64_t significand;
  int exponent;
} decimal;

static const uint64_t power_of_5[MAX_POWER_OF_5 + 1] = {1ull,
                                                        5ull,
                                                        25ull,
                                                        125ull,
                                                        625ull,
                                                        3125ull,
                                                        15625ull,
                                                        78125ull,
                                                        390625ull,
                                                        1953125ull,
                                                        9765625ull,
                                                        48828125ull,
                                                        244140625ull,
                                                        1220703125ull,
                                                        6103515625ull,
                                                        30517578125ull,
                                                        152587890625ull,
                                                        762939453125ull,
                                                        3814697265625ull,
                                                        19073486328125ull,
                                                        95367431640625ull,
                                                        476837158203125ull,
                                                        2384185791015625ull,
                                                        11920928955078125ull,
                                                        59604644775390625ull,
                                                        298023223876953125ull,
                                                        1490116119384765625ull,
                                                        7450580596923828125ull};

static inline bool is_whole(const char *end) { return asparse_is_blank(*end) || asparse_is_line_end(*end); }

asparse_number asparse_number_integer(const char **cursor, bool *negative, uint64_t *magnitude) {
  const char *p = *cursor;
  *negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  const char *first = p;
  uint64_t sum = 0;
  bool overflow = false;
  for (; asparse_is_digit(*p); p++) {
    uint64_t digit = (uint64_t)(*p - '0');
    if (p - first >= MAX_DIGITS && (sum > UINT64_MAX / 10 || sum * 10 > UINT64_MAX - digit)) overflow = true;
    sum = sum * 10 + digit;
  }
  if (p == first || !is_whole(p)) return ASPARSE_NUMBER_BAD;
  if (overflow) return ASPARSE_NUMBER_OVERFLOW;
  *magnitude = sum;
  *cursor = p;
  return ASPARSE_NUMBER_OK;
}

static asparse_number parse_word(const char **cursor, double *value) {
  static const struct {
    const char *word;
    double value;
  } words[] = {{"infinity", INFINITY}, {"inf", INFINITY}, {"nan", NAN}};
  const char *p = *cursor;
  bool negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t length = strlen(words[i].word);
    if (strncasecmp(p, words[i].word, length) != 0 || !is_whole(p + length)) continue;
    *value = negative ? -words[i].value : words[i].value;
    *cursor = p + length;
    return ASPARSE_NUMBER_OK;
  }
  return ASPARSE_NUMBER_BAD;
}

static const char *scan_exponent(const char *p, int *exponent) {
  bool negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  if (!asparse_is_digit(*p)) return NULL;
  int sum = 0;
  for (; asparse_is_digit(*p); p++) {
    if (sum < 100000) sum = sum * 10 + (*p - '0');
  }
  *exponent += negative ? -sum : sum;
  return p;
}

/* Leading zeros are not significant. */
static int64_t significant_digits(const char *first, const char *end) {
  while (first < end && (*first == '0' || *first == '.')) first++;
  return end - first - (memchr(first, '.', (size_t)(end - first)) != NULL);
}

/* Splits a decimal number; its end, or NULL when there is none. */
static const char *scan_decimal(const char *p, decimal *number) {
  number->negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  const char *first = p, *point = NULL;
  uint64_t sum = 0;
  for (; asparse_is_digit(*p); p++) sum = sum * 10 + (uint64_t)(*p - '0');
  if (*p == '.') {
    point = p++;
    for (; asparse_is_digit(*p); p++) sum = sum * 10 + (uint64_t)(*p - '0');
  }
  int64_t fraction = point ? p - point - 1 : 0, n_digits = p - first - (point ? 1 : 0);
  if (n_digits == 0) return NULL;
  number->significand = sum;
  number->exact = n_digits <= MAX_DIGITS || significant_digits(first, p) <= MAX_DIGITS;
  number->exponent = fraction < 100000 ? -(int)fraction : -100000;
  if (*p == 'e' || *p == 'E' || *p == 'd' || *p == 'D') p = scan_exponent(p + 1, &number->exponent);
  return p;
}

static double power_of_2(int exponent) {
  uint64_t bits = (uint64_t)(exponent + 1023) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return power;
}

/* q · 2^exponent to nearest even; sticky: a positive rest below q's last bit was cut off, and then q has
 * at least 55 bits. The result must be a normal number. */
static double round_to_even(uint128 q, bool sticky, int exponent) {
  uint64_t high = (uint64_t)(q >> 64), low = (uint64_t)q;
  int bits = high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll(low);
  if (bits <= 53) return (double)low * power_of_2(exponent);
  int cut = bits - 53;
  uint128 rest = q & (((uint128)1 << cut) - 1), half = (uint128)1 << (cut - 1);
  uint64_t kept = (uint64_t)(q >> cut);
  if (rest > half || (rest == half && (sticky || (kept & 1)))) kept++;
  return (double)kept * power_of_2(exponent + cut);
}

/* w · 10^e with w ≠ 0 and |e| ≤ 27, exact in 128-bit integers before the one rounding, because
 * w · 10^e = (w · 5^e) · 2^e for e ≥ 0 and (w · 2^s / 5^-e) · 2^(e-s) for e < 0. */
static double scale_exactly(uint64_t w, int e) {
  if (e >= 0) return round_to_even((uint128)w * power_of_5[e], false, e);
  uint64_t divisor = power_of_5[-e];
  int shift = __builtin_clzll(w) + 63 - __builtin_clzll(divisor); /* gives a quotient of 63 or 64 bits */
  uint128 dividend = (uint128)w << shift, quotient = dividend / divisor;
  return round_to_even(quotient, quotient * divisor != dividend, e - shift);
}

/* Any length and exponent: strtod in the C locale on a copy. */
static asparse_number convert_slowly(const char *first, const char *end, double *value) {
  char copy[2048]; /* the exact decimal form of any fp64 fits */
  size_t length = (size_t)(end - first);
  if (length >= sizeof copy) return ASPARSE_NUMBER_BAD;
  memcpy(copy, first, length);
  copy[length] = '\0';
  for (size_t i = 0; i < length; i++) {
    if (copy[i] == 'd' || copy[i] == 'D') copy[i] = 'e';
  }
  locale_t c_locale = newlocale(LC_ALL_MASK, "C", NULL);
  if (!c_locale) return ASPARSE_NUMBER_BAD;
  *value = strtod_l(copy, NULL, c_locale);
  freelocale(c_locale);
  return isinf(*value) ? ASPARSE_NUMBER_OVERFLOW : ASPARSE_NUMBER_OK;
}

asparse_number asparse_number_real(const char **cursor, double *value) {
  static const double power_of_10[MAX_POWER_OF_10 + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  decimal number;
  const char *end = scan_decimal(*cursor, &number);
  if (!end) return parse_word(cursor, value);
  if (!is_whole(end)) return ASPARSE_NUMBER_BAD;
  uint64_t w = number.significand;
  int e = number.exponent;
  /* Both operands exact, one rounding (Clinger, PLDI 1990). */
  if (number.exact && w >> 53 == 0 && abs(e) <= MAX_POWER_OF_10)
    *value = e < 0 ? (double)w / power_of_10[-e] : (double)w * power_of_10[e];
  else if (number.exact && w == 0) *value = 0.0;
  else if (number.exact && abs(e) <= MAX_POWER_OF_5) *value = scale_exactly(w, e);
  else {
    asparse_number result = convert_slowly(*cursor, end, value);
    if (result == ASPARSE_NUMBER_OK) *cursor = end;
    return result;
  }
  if (number.negative) *value = -*value;
  *cursor = end;
  return ASPARSE_NUMBER_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

char *asparse_number_put_integer(char *to, int64_t value) {
  char digits[MAX_DIGITS + 1];
  int n = 0;
  uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
  if (value < 0) *to++ = '-';
  do digits[n++] = (char)('0' + rest % 10);
  while ((rest /= 10) > 0);
  while (n > 0) *to++ = digits[--n];
  return to;
}

/* w for value ≈ w · 10^-s, rounded to nearest: value = f · 2^q, so that value · 10^s = (f · 5^s) · 2^(q+s), where
 * f · 5^s < 2^53 · 2^63 is exact. 0 ≤ s ≤ 27, value · 10^s < 2^60. */
static uint64_t scale_to_integer(double value, int s) {
  int q;
  const uint64_t f = (uint64_t)ldexp(frexp(value, &q), 53);
  const uint128 product = (uint128)f * power_of_5[s];
  const int cut = 53 - q - s;
  return cut <= 0 ? (uint64_t)(product << -cut) : (uint64_t)((product + ((uint128)1 << (cut - 1))) >> cut);
}

/* w · 10^-s as text: "120", "1.25", "0.00125", "1.25e-07". */
static char *put_decimal(char *to, uint64_t w, int s) {
  enum { MOST_ZEROS = 4 }; /* behind the point */
  char digits[MAX_DIGITS + 2];
  for (; s > 0 && w % 10 == 0; s--) w /= 10;
  const int n = (int)(asparse_number_put_integer(digits, (int64_t)w) - digits), whole = n - s;
  if (whole > 0) {
    memcpy(to, digits, (size_t)whole);
    to += whole;
  } else if (whole >= -MOST_ZEROS) {
    memcpy(to, "0.0000", (size_t)(2 - whole));
    memcpy(to + 2 - whole, digits, (size_t)n);
    return to + 2 - whole + n;
  } else {
    return to + sprintf(to, n > 1 ? "%c.%.*se%03d" : "%c%.*se%03d", digits[0], n - 1, digits + 1, whole - 1);
  }
  if (s == 0) return to;
  *to++ = '.';
  memcpy(to, digits + whole, (size_t)s);
  return to + s;
}

/* snprintf's decimal point is the locale's. */
static char *put_slowly(char *to, double value, int digits) {
  const char *point = localeconv()->decimal_point;
  snprintf(to, ASPARSE_NUMBER_LENGTH - 1, "%.*g", digits, value);
  char *found = strstr(to, point);
  if (found) {
    *found = '.';
    memmove(found + 1, found + strlen(point), strlen(found + strlen(point)) + 1);
  }
  return to + strlen(to);
}

char *asparse_number_put_real(char *to, double value) {
  enum { LEAST_DIGITS = 15, MOST_DIGITS = 17 }; /* 15 survive fp64, 17 tell all fp64 apart */
  const double size = fabs(value);
  const bool in_range = size >= 1e-11 && size < 1e17; /* 17 digits are size · 10^s with s ≤ 27 */
  const int exponent = in_range ? (int)floor(log10(size)) : 0;
  if (isnan(value)) return memcpy(to, "nan", 3), to + 3;
  if (signbit(value)) *to++ = '-';
  if (isinf(value)) return memcpy(to, "inf", 3), to + 3;
  for (int digits = LEAST_DIGITS;; digits++) {
    const int s = digits - 1 - exponent > 0 ? digits - 1 - exponent : 0;
    const char *cursor = to;
    double back = 0;
    char *end = in_range ? put_decimal(to, scale_to_integer(size, s), s) : put_slowly(to, size, digits);
    *end = '\n';
    if (digits == MOST_DIGITS || (asparse_number_real(&cursor, &back) == ASPARSE_NUMBER_OK && back == size)) return end;
  }
}
