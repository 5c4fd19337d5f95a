/* Decimal numbers in text: correctly rounded and independent of the locale. Local.
 *
 * The text must go on until a line end: scanning stops there. A number is whole only when a blank or
 * a line end follows it, so "1.5x" is no number. */
#ifndef ASPARSE_NUMBER_H
#define ASPARSE_NUMBER_H

#include "asparse_types.h"

typedef enum asparse_number {
  ASPARSE_NUMBER_OK = 0,
  ASPARSE_NUMBER_BAD,     /* not a number of the kind asked for */
  ASPARSE_NUMBER_OVERFLOW /* beyond 64 bits, or beyond the largest fp64 */
} asparse_number;

static inline bool asparse_is_blank(char c) { return c == ' ' || c == '\t'; }
static inline bool asparse_is_line_end(char c) { return c == '\n' || c == '\r'; }
static inline bool asparse_is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* [+-]digits at *cursor, which moves behind it when it is whole. */
asparse_number asparse_number_integer(const char **cursor, bool *negative, uint64_t *magnitude);

/* [+-]digits[.digits][(e|E|d|D)[+-]digits], inf, infinity or nan in any case, at *cursor, which moves
 * behind it. Rounded to nearest even; too small ones become 0. */
asparse_number asparse_number_real(const char **cursor, double *value);

/* Writes a number at `to` without a closing zero; behind its end. A real takes the fewest of 15, 16, 17 digits that
 * asparse_number_real and strtod turn back into the same bits (of a NaN, another one); "inf", "-inf", "nan". */
enum { ASPARSE_NUMBER_LENGTH = 32 }; /* room for the longest */
char *asparse_number_put_integer(char *to, int64_t value);
char *asparse_number_put_real(char *to, double value);

#endif
