#include "io/fortran.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WIDTH = 64, MOST_PER_LINE = 4096 };

/* ---- formats --------------------------------------------------------------------------------- */

static const char *skip(const char *p) {
  while (asparse_is_blank(*p)) p++;
  return p;
}

/* Up to five digits; false when there are none. */
static bool parse_number(const char **cursor, int *number) {
  const char *p = skip(*cursor);
  int n = 0, digits = 0;
  for (; asparse_is_digit(*p) && digits < 5; digits++) n = n * 10 + (*p++ - '0');
  *cursor = p;
  if (digits > 0) *number = n;
  return digits > 0;
}

bool asparse_fortran_parse(const char **cursor, asparse_fortran_format *f) {
  const char *p = skip(*cursor);
  *f = (asparse_fortran_format){.per_line = 1, .decimals = -1};
  if (*p++ != '(') return false;
  bool negative = *skip(p) == '-';
  if (negative) p = skip(p) + 1;
  bool numbered = parse_number(&p, &f->per_line);
  if (numbered && toupper((unsigned char)*skip(p)) == 'P') {
    f->scale = negative ? -f->per_line : f->per_line;
    f->per_line = 1;
    p = skip(skip(p) + 1);
    if (*p == ',') p++;
    parse_number(&p, &f->per_line);
  } else if (negative) {
    return false;
  }
  p = skip(p);
  f->kind = (char)toupper((unsigned char)*p);
  if (*p == '\0' || !strchr("IFEDG", f->kind)) return false;
  p++;
  if (!parse_number(&p, &f->width)) return false;
  p = skip(p);
  if (*p == '.') {
    p++;
    if (!parse_number(&p, &f->decimals)) return false;
    p = skip(p);
  }
  if (toupper((unsigned char)*p) == 'E') { /* digits of the exponent */
    int ignored;
    p++;
    if (!parse_number(&p, &ignored)) return false;
    p = skip(p);
  }
  if (*p != ')') return false;
  *cursor = p + 1;
  return f->width >= 1 && f->width <= MOST_WIDTH && f->per_line >= 1 && f->per_line <= MOST_PER_LINE &&
         abs(f->scale) <= 30;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* A field without its blanks, ended by a line end. */
typedef struct field {
  const char *at; /* in the text */
  char text[MOST_WIDTH + 4];
  int length;
} field;

/* The field of `width` characters at *cursor, less where the line ends. */
static bool take_field(const asparse_fortran_format *f, const char **cursor, field *field, asparse_text_error *error) {
  const char *p = *cursor;
  field->length = 0;
  field->at = p;
  for (int i = 0; i < f->width && !asparse_is_line_end(*p); i++, p++) {
    if (asparse_is_blank(*p)) continue;
    if (field->length == 0) field->at = p;
    field->text[field->length++] = *p;
  }
  field->text[field->length] = '\n';
  field->text[field->length + 1] = '\0';
  *cursor = p;
  if (field->length > 0) return true;
  return asparse_text_note(error, field->at,
                           "no number in a field of %d characters (%s); the line is cut off or its "
                           "format is wrong",
                           f->width, asparse_is_line_end(*p) ? "the line ends" : "blanks");
}

static bool fail(const field *field, const char *expected, asparse_text_error *error) {
  return asparse_text_note(error, field->at, "found \"%.*s\"; expected %s", field->length < 40 ? field->length : 40,
                           field->text, expected);
}

bool asparse_fortran_integers(const asparse_fortran_format *f, const char *p, int count, int64_t *to,
                              asparse_text_error *error) {
  field field;
  for (int i = 0; i < count; i++) {
    if (!take_field(f, &p, &field, error)) return false;
    const char *cursor = field.text;
    bool negative = false;
    uint64_t magnitude = 0;
    if (asparse_number_integer(&cursor, &negative, &magnitude) != ASPARSE_NUMBER_OK || magnitude > INT64_MAX)
      return fail(&field, "a whole number", error);
    to[i] = negative ? -(int64_t)magnitude : (int64_t)magnitude;
  }
  return true;
}

/* "1.5-100" is 1.5e-100: FORTRAN drops the letter before exponents of three digits. */
static bool has_exponent(field *field) {
  for (int i = 1; i < field->length; i++) {
    char c = field->text[i], before = field->text[i - 1];
    if (strchr("eEdDqQ", c)) {
      field->text[i] = 'e';
      return true;
    }
    if ((c == '+' || c == '-') && (asparse_is_digit(before) || before == '.')) {
      memmove(field->text + i + 1, field->text + i, (size_t)(field->length - i) + 2);
      field->text[i] = 'e';
      field->length++;
      return true;
    }
  }
  return false;
}

bool asparse_fortran_reals(const asparse_fortran_format *f, const char *p, int count, double *to,
                           asparse_text_error *error) {
  field field;
  for (int i = 0; i < count; i++) {
    if (!take_field(f, &p, &field, error)) return false;
    const bool exponent = has_exponent(&field);
    const char *cursor = field.text;
    if (asparse_number_real(&cursor, &to[i]) != ASPARSE_NUMBER_OK) return fail(&field, "a number within fp64", error);
    if (f->scale != 0 && !exponent && memchr(field.text, '.', (size_t)field.length)) to[i] /= pow(10.0, f->scale);
  }
  return true;
}
