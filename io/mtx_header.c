#include "io/mtx_header.h"

#include <ctype.h>
#include <string.h>

enum { WORD_LENGTH = 20 };

static const char banner_form[] = "%%MatrixMarket matrix coordinate real general";

/* The file may be one of another kind that people have beside .mtx files. */
static asparse_status fail_no_banner(const asparse_text *text, const char *at) {
  static const struct {
    char magic[8];
    const char *advice;
  } kinds[] = {
      {{'\x89', 'H', 'D', 'F'}, "it is an HDF5 file, which needs no conversion"},
      {{'P', 'K', '\x03', '\x04'}, "it is a zip archive; unpack it first"},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strncmp(text->bytes, kinds[i].magic, strlen(kinds[i].magic)) == 0)
      return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s is no Matrix Market file: %s", text->name, kinds[i].advice);
  }
  return asparse_text_fail(text, at,
                           "no banner, found \"%s\"; the first line must read like \"%s\", with the field and the "
                           "symmetry of the entries that follow",
                           asparse_quoted(at).word, banner_form);
}

/* The next word of the line in lower case, "" when there is none; long ones are cut. */
static const char *read_word(const char *p, char word[WORD_LENGTH]) {
  int n = 0;
  for (p = asparse_skip_blanks(p); !asparse_is_blank(*p) && !asparse_is_line_end(*p); p++) {
    if (n < WORD_LENGTH - 1) word[n++] = (char)tolower((unsigned char)*p);
  }
  word[n] = '\0';
  return p;
}

/* Reads a word of the banner that must be one of choices (NULL at their end) and gives its index. */
static asparse_status read_choice(const asparse_text *text, const char **cursor, const char *what,
                                  const char *const *choices, int *choice) {
  char word[WORD_LENGTH], expected[96] = "";
  const char *at = asparse_skip_blanks(*cursor);
  *cursor = read_word(at, word);
  for (*choice = 0; choices[*choice]; ++*choice) {
    if (strcmp(word, choices[*choice]) == 0) return ASPARSE_OK;
    strcat(strcat(expected, *choice ? ", " : ""), choices[*choice]);
  }
  if (word[0] == '\0')
    return asparse_text_fail(text, at, "the banner ends before its %s; expected one of: %s", what, expected);
  return asparse_text_fail(text, at, "unknown %s \"%s\" in the banner; expected one of: %s", what,
                           asparse_quoted(at).word, expected);
}

static asparse_status parse_banner(const asparse_text *text, asparse_mtx_header *header, const char **cursor) {
  static const char *const objects[] = {"matrix", "vector", NULL};
  static const char *const formats[] = {"coordinate", "array", NULL};
  static const char *const fields[] = {"real", "double", "integer", "unsigned-integer", "pattern", "complex", NULL};
  static const asparse_mtx_field field_of[] = {ASPARSE_MTX_REAL,    ASPARSE_MTX_REAL,    ASPARSE_MTX_INTEGER,
                                               ASPARSE_MTX_INTEGER, ASPARSE_MTX_PATTERN, ASPARSE_MTX_REAL};
  static const char *const symmetries[] = {"general", "symmetric", "hermitian", "skew-symmetric", NULL};
  static const asparse_mtx_symmetry symmetry_of[] = {ASPARSE_MTX_GENERAL, ASPARSE_MTX_SYMMETRIC, ASPARSE_MTX_SYMMETRIC,
                                                     ASPARSE_MTX_SKEW};
  enum { UNSIGNED = 3, COMPLEX = 5 };
  char word[WORD_LENGTH];
  int object, format, field, symmetry;
  const char *start = *cursor;
  *cursor = read_word(start, word);
  if (strcmp(word, "%%matrixmarket") != 0 && strcmp(word, "%matrixmarket") != 0) return fail_no_banner(text, start);
  PASS(read_choice(text, cursor, "object", objects, &object));
  PASS(read_choice(text, cursor, "format", formats, &format));
  PASS(read_choice(text, cursor, "field", fields, &field));
  PASS(read_choice(text, cursor, "symmetry", symmetries, &symmetry));
  const char *rest = asparse_skip_blanks(*cursor);
  if (!asparse_is_line_end(*rest))
    return asparse_text_fail(text, rest, "\"%s\" follows the end of the banner; expected a line like \"%s\"",
                             asparse_quoted(rest).word, banner_form);
  if (field == COMPLEX)
    return asparse_text_fail(text, start,
                             "complex values are not supported yet; use a real, integer or pattern matrix, for "
                             "example the real and imaginary parts as two files");
  header->vector = object == 1;
  header->array = format == 1;
  header->field = field_of[field];
  header->symmetry = symmetry_of[symmetry];
  strcpy(header->field_name, field == UNSIGNED ? "integer" : fields[field]);
  strcpy(header->symmetry_name, symmetries[symmetry]);
  if (header->field == ASPARSE_MTX_PATTERN && (header->array || header->symmetry == ASPARSE_MTX_SKEW))
    return asparse_text_fail(text, start,
                             "\"pattern\" cannot go with \"%s\", which needs values; expected real or "
                             "integer",
                             header->array ? "array" : header->symmetry_name);
  return ASPARSE_OK;
}

/* rows [columns] [entries] */
static asparse_status parse_sizes(const asparse_text *text, asparse_mtx_header *header) {
  int64_t sizes[3] = {0, 1, 0};
  static const char *const names[] = {"rows", "columns", "entries"};
  const char *p = header->sizes;
  for (int i = 0; i < 3; i++) {
    if ((i == 1 && header->vector) || (i == 2 && header->array)) continue;
    uint64_t size = 0;
    bool negative = false;
    p = asparse_skip_blanks(p);
    if (asparse_is_line_end(*p))
      return asparse_text_fail(text, p, "the size line ends before the number of %s; expected \"%s\"", names[i],
                               header->array ? "rows columns" : "rows columns entries");
    const char *at = p;
    asparse_number result = asparse_number_integer(&p, &negative, &size);
    if (result == ASPARSE_NUMBER_BAD)
      return asparse_text_fail(text, at, "found \"%s\" as the number of %s in the size line; expected a whole number",
                               asparse_quoted(at).word, names[i]);
    if (result == ASPARSE_NUMBER_OVERFLOW || size >= INT64_MAX || (negative && size > 0))
      return asparse_text_fail(text, at, "the number of %s is %s; expected 0 to %lld", names[i],
                               asparse_quoted(at).word, (long long)INT64_MAX - 1);
    sizes[i] = (int64_t)size;
  }
  p = asparse_skip_blanks(p);
  if (!asparse_is_line_end(*p))
    return asparse_text_fail(text, p, "\"%s\" follows the size line; expected \"%s\" and nothing more",
                             asparse_quoted(p).word, header->array ? "rows columns" : "rows columns entries");
  header->m = sizes[0];
  header->k = sizes[1];
  header->n_entries = sizes[2];
  header->entries = p;
  return ASPARSE_OK;
}

/* Values in an array file: all m·k, or those of the lower triangle, n(n ± 1)/2; saturates. */
static int64_t count_array(const asparse_mtx_header *header) {
  int64_t columns = header->k, product;
  if (header->symmetry == ASPARSE_MTX_SYMMETRIC) columns++;
  if (header->symmetry == ASPARSE_MTX_SKEW && columns > 0) columns--;
  if (__builtin_mul_overflow(header->m, columns, &product)) return INT64_MAX;
  return header->symmetry == ASPARSE_MTX_GENERAL ? product : product / 2;
}

static asparse_status check_sizes(const asparse_text *text, asparse_mtx_header *header) {
  if (header->symmetry != ASPARSE_MTX_GENERAL && header->m != header->k)
    return asparse_text_fail(text, header->sizes,
                             "a %s matrix must be square, this one is %lld × %lld; expected "
                             "equal sizes or \"general\" in the banner",
                             header->symmetry_name, (long long)header->m, (long long)header->k);
  if (header->array) header->n_entries = count_array(header);
  return ASPARSE_OK;
}

asparse_status asparse_mtx_header_parse(const asparse_text *text, asparse_mtx_header *header) {
  const char *p = text->bytes, *end = text->bytes + text->length;
  *header = (asparse_mtx_header){0};
  if (strncmp(p, "\xef\xbb\xbf", 3) == 0) p += 3; /* UTF-8 byte order mark */
  while (p < end && (asparse_is_blank(*p) || asparse_is_line_end(*p))) p++;
  PASS(parse_banner(text, header, &p));
  header->sizes = asparse_next_line(p, end);
  if (!header->sizes)
    return asparse_text_fail(text, end, "the file ends before its size line; expected \"%s\"",
                             header->array ? "rows columns" : "rows columns entries");
  PASS(parse_sizes(text, header));
  return check_sizes(text, header);
}
