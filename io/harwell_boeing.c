/* Harwell-Boeing (Duff, Grimes, Lewis: Users' Guide for the Harwell-Boeing Sparse Matrix Collection, 1992) and
 * Rutherford-Boeing matrices (same authors, RAL-TR-97-031): four or five header lines, then pointers of the columns,
 * row indices and values in fields of fixed width. Symmetric ones store one triangle. Right-hand sides are left out. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "io/coordinates.h"
#include "io/fortran.h"
#include "io/importer.h"

typedef struct header {
  char type[4]; /* "rua" in lower case */
  int64_t m, k, nnz;
  asparse_fortran_format pointers, indices, values;
  const char *at;   /* the third line */
  const char *data; /* the first line of pointers */
  bool right_hand_sides;
} header;

/* Numbers of one of the three kinds, on consecutive lines. */
typedef struct section {
  const char *what;
  const asparse_fortran_format *format;
  int64_t count;
  int64_t *integers; /* [count], or NULL: reals */
  double *reals;     /* [count] */
} section;

typedef struct reader {
  asparse_text text;
  header header;
  const char *cursor; /* the line to be read next */
  int64_t *col_ptr;   /* [k + 1], from 1 */
  asparse_coordinates entries;
} reader;

static void reader_free(reader *r) {
  asparse_coordinates_free(&r->entries);
  FREE(r->col_ptr);
  asparse_text_free(&r->text);
}

/* ---- header ---------------------------------------------------------------------------------- */

static const char *end_of(const asparse_text *text) { return text->bytes + text->length; }

/* The start of the line after that of p; the text's end where there is none. */
static const char *next_line(const asparse_text *text, const char *p) {
  p = asparse_skip_line(p);
  return p < end_of(text) ? asparse_skip_line_end(p) : p;
}

/* The first five lines; NULL: the text ends before the fourth. */
static bool first_lines(const asparse_text *text, const char *lines[5]) {
  lines[0] = text->bytes;
  for (int i = 1; i < 5; i++) {
    if (lines[i - 1] >= end_of(text)) return false;
    lines[i] = next_line(text, lines[i - 1]);
  }
  return true;
}

/* type rows columns entries elements */
static asparse_status parse_type(const asparse_text *text, header *h) {
  static const char *const names[] = {"rows", "columns", "entries"};
  int64_t *sizes[] = {&h->m, &h->k, &h->nnz};
  const char *p = asparse_skip_blanks(h->at);
  for (int i = 0; i < 3 && !asparse_is_line_end(*p); i++) h->type[i] = (char)tolower((unsigned char)*p++);
  if (!h->type[2] || !strchr("rcipq", h->type[0]) || !strchr("suhzr", h->type[1]) || !strchr("ae", h->type[2]))
    return asparse_text_fail(text, h->at,
                             "the matrix type is \"%.3s\"; expected r, i or p (real, integer, pattern), then "
                             "s, u, z or r (symmetric, unsymmetric, skew, rectangular), then a (assembled)",
                             h->type);
  if (h->type[2] == 'e')
    return asparse_text_fail(text, h->at, "type %s is of unassembled finite elements; expected an assembled matrix",
                             h->type);
  if (h->type[0] == 'c' || h->type[1] == 'h')
    return asparse_text_fail(text, h->at, "type %s is complex, which is not supported yet", h->type);
  if (h->type[0] == 'q')
    return asparse_text_fail(text, h->at, "type %s has its values in another file; expected them here", h->type);
  for (int i = 0; i < 3; i++) {
    bool negative = false;
    uint64_t size = 0;
    const char *at = p = asparse_skip_blanks(p);
    if (asparse_number_integer(&p, &negative, &size) != ASPARSE_NUMBER_OK || negative || size >= INT64_MAX / 64)
      return asparse_text_fail(text, at, "found \"%s\" as the number of %s; expected a whole number ≥ 0",
                               asparse_quoted(at).word, names[i]);
    *sizes[i] = (int64_t)size;
  }
  if (strchr("sz", h->type[1]) && h->m != h->k)
    return asparse_text_fail(text, h->at, "type %s must be square, this one is %lld × %lld", h->type, (long long)h->m,
                             (long long)h->k);
  return ASPARSE_OK;
}

static asparse_status parse_formats(const asparse_text *text, const char *line, header *h) {
  static const char *const names[] = {"pointers", "indices", "values"};
  asparse_fortran_format *const formats[] = {&h->pointers, &h->indices, &h->values};
  const char *p = line;
  for (int i = 0; i < (h->type[0] == 'p' ? 2 : 3); i++) {
    const char *at = asparse_skip_blanks(p);
    p = at;
    if (!asparse_fortran_parse(&p, formats[i]))
      return asparse_text_fail(text, at, "found \"%s\" as the format of the %s; expected one like (16I5)%s",
                               asparse_quoted(at).word, names[i], i == 2 ? " or (1P5D16.8)" : "");
    if (i < 2 && formats[i]->kind != 'I')
      return asparse_text_fail(text, at, "the %s have format %s; expected integers, like (16I5)", names[i],
                               asparse_quoted(at).word);
  }
  return ASPARSE_OK;
}

/* A supplementary file of Rutherford-Boeing: "rhsr  name r ..." in its second line. */
static asparse_status check_supplement(const asparse_text *text, const char *line) {
  const char *p = asparse_skip_blanks(line);
  if (!isalpha((unsigned char)*p)) return ASPARSE_OK;
  return asparse_text_fail(text, p,
                           "a Rutherford-Boeing file of \"%s\" (orderings, right-hand sides, estimates, …); "
                           "expected one with a matrix",
                           asparse_quoted(p).word);
}

static asparse_status parse_header(const asparse_text *text, header *h) {
  const char *lines[5];
  PASS(check_supplement(text, next_line(text, text->bytes)));
  if (!first_lines(text, lines))
    return asparse_text_fail(text, end_of(text),
                             "the file ends within its header; expected title, numbers of lines, type "
                             "and sizes, formats");
  h->at = lines[2];
  PASS(parse_type(text, h));
  PASS(parse_formats(text, lines[3], h));
  /* A fifth line describes right-hand sides: "F…" or "M…", where pointers would be digits. */
  h->right_hand_sides = isalpha((unsigned char)*asparse_skip_blanks(lines[4]));
  h->data = h->right_hand_sides ? next_line(text, lines[4]) : lines[4];
  return ASPARSE_OK;
}

/* ---- sections -------------------------------------------------------------------------------- */

/* Starts of the lines of a section, so that threads share them: starts[n_lines]. */
static asparse_status find_lines(reader *r, const section *s, int64_t n_lines, const char **starts) {
  const char *p = r->cursor;
  for (int64_t i = 0; i < n_lines; i++) {
    if (p >= end_of(&r->text))
      return asparse_text_fail(&r->text, p, "the file ends within its %s, after %lld of %lld lines of them", s->what,
                               (long long)i, (long long)n_lines);
    starts[i] = p;
    const char *end = memchr(p, '\n', (size_t)(end_of(&r->text) - p) + 1);
    p = end < end_of(&r->text) ? end + 1 : end_of(&r->text);
  }
  r->cursor = p;
  return ASPARSE_OK;
}

static asparse_status read_section(reader *r, const section *s) {
  asparse_status status = ASPARSE_OK;
  const int per_line = s->format->per_line;
  const int64_t n_lines = (s->count + per_line - 1) / per_line;
  const char **starts = NULL;
  asparse_text_error first = {NULL, ""};
  /* A number takes a character at least. */
  TRY_THAT(s->count <= end_of(&r->text) - r->cursor, ASPARSE_ERR_DATA,
           "%s: %lld %s in a file of %lld bytes; expected "
           "them all: it is cut off or its header is wrong",
           r->text.name, (long long)s->count, s->what, (long long)r->text.length);
  ALLOC(starts, n_lines);
  TRY(find_lines(r, s, n_lines, starts));
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n_lines; i++) {
    asparse_text_error error = {NULL, ""};
    const int64_t begin = i * per_line, left = s->count - begin;
    const int n = left < per_line ? (int)left : per_line;
    if (s->integers ? asparse_fortran_integers(s->format, starts[i], n, s->integers + begin, &error)
                    : asparse_fortran_reals(s->format, starts[i], n, s->reals + begin, &error))
      continue;
#pragma omp critical
    if (!first.at || error.at < first.at) first = error;
  }
  if (first.at) status = asparse_text_fail(&r->text, first.at, "%s: %s", s->what, first.message);
cleanup:
  asparse_free(starts);
  return status;
}

static asparse_status read_pointers(reader *r) {
  asparse_status status = ASPARSE_OK;
  const header *h = &r->header;
  TRY(asparse_budget_allows(r->text.name, 8 * (h->k + 1), "its pointers"));
  TRY_THAT(h->k < r->text.length, ASPARSE_ERR_DATA,
           "%s: %lld columns in a file of %lld bytes; expected a pointer for "
           "each",
           r->text.name, (long long)h->k, (long long)r->text.length);
  ALLOC(r->col_ptr, h->k + 1);
  TRY(read_section(r, &(section){"pointers", &h->pointers, h->k + 1, r->col_ptr, NULL}));
  TRY_THAT(r->col_ptr[0] == 1, ASPARSE_ERR_DATA, "%s: the first pointer is %lld; expected 1", r->text.name,
           (long long)r->col_ptr[0]);
  for (int64_t j = 0; j < h->k; j++)
    TRY_THAT(r->col_ptr[j + 1] >= r->col_ptr[j] && r->col_ptr[j + 1] <= h->nnz + 1, ASPARSE_ERR_DATA,
             "%s: pointer %lld is %lld; expected %lld to %lld", r->text.name, (long long)j + 2,
             (long long)r->col_ptr[j + 1], (long long)r->col_ptr[j], (long long)h->nnz + 1);
  TRY_THAT(r->col_ptr[h->k] == h->nnz + 1, ASPARSE_ERR_DATA,
           "%s: the last pointer is %lld; expected %lld, one more than "
           "the entries",
           r->text.name, (long long)r->col_ptr[h->k], (long long)h->nnz + 1);
cleanup:
  return status;
}

/* Rows from 0 and columns; one triangle of a symmetric matrix, either. */
static asparse_status place_columns(reader *r) {
  const header *h = &r->header;
  asparse_coordinates *entries = &r->entries;
  const bool triangle = h->type[1] == 's' || h->type[1] == 'z';
  int64_t bad = h->nnz, lower = h->nnz, upper = h->nnz;
#pragma omp parallel for schedule(dynamic, 1024) reduction(min : bad, lower, upper)
  for (int64_t j = 0; j < h->k; j++) {
    for (int64_t e = r->col_ptr[j] - 1; e < r->col_ptr[j + 1] - 1; e++) {
      int64_t i = --entries->rows[e];
      entries->cols[e] = j;
      if ((uint64_t)i >= (uint64_t)h->m && e < bad) bad = e;
      if (i > j && e < lower) lower = e;
      if (i < j && e < upper) upper = e;
    }
  }
  if (bad < h->nnz)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: row index %lld (in column %lld) is %lld; expected 1 to %lld",
                        r->text.name, (long long)bad + 1, (long long)entries->cols[bad] + 1,
                        (long long)entries->rows[bad] + 1, (long long)h->m);
  if (triangle && lower < h->nnz && upper < h->nnz)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "%s: type %s stores one triangle, but entry %lld is below the diagonal and entry "
                        "%lld above it",
                        r->text.name, h->type, (long long)lower + 1, (long long)upper + 1);
  if (triangle) entries->structure = h->type[1] == 's' ? ASPARSE_SYMMETRIC_LOWER : ASPARSE_SKEW_SYMMETRIC_LOWER;
  return ASPARSE_OK;
}

static asparse_status check_skew(const reader *r) {
  const asparse_coordinates *entries = &r->entries;
  if (entries->structure != ASPARSE_SKEW_SYMMETRIC_LOWER) return ASPARSE_OK;
  for (int64_t e = 0; e < entries->n; e++) {
    if (entries->rows[e] == entries->cols[e] && (!entries->values || entries->values[e] != 0.0))
      return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                          "%s: entry %lld is on the diagonal of a skew-symmetric matrix; expected none "
                          "or 0",
                          r->text.name, (long long)e + 1);
  }
  return ASPARSE_OK;
}

static asparse_status read_entries(reader *r) {
  const header *h = &r->header;
  const bool pattern = h->type[0] == 'p';
  if (h->nnz > r->text.length)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "%s: %lld entries in a file of %lld bytes; expected them all: it is cut off or "
                        "its header is wrong",
                        r->text.name, (long long)h->nnz, (long long)r->text.length);
  PASS(asparse_coordinates_create(r->text.name, h->nnz, !pattern, &r->entries));
  r->entries.m = h->m;
  r->entries.k = h->k;
  PASS(read_section(r, &(section){"row indices", &h->indices, h->nnz, r->entries.rows, NULL}));
  if (!pattern) PASS(read_section(r, &(section){"values", &h->values, h->nnz, NULL, r->entries.values}));
  PASS(place_columns(r));
  return check_skew(r);
}

static asparse_status import(asparse_input *input, const asparse_import_options *options, asparse_csr **a,
                             asparse_source *source) {
  asparse_status status = ASPARSE_OK;
  reader r = {.col_ptr = NULL};
  (void)options;
  TRY(asparse_text_load(input, &r.text));
  TRY(parse_header(&r.text, &r.header));
  r.cursor = r.header.data;
  TRY(read_pointers(&r));
  TRY(read_entries(&r));
  *source = (asparse_source){.format = "Harwell-Boeing", .stored_entries = r.header.nnz};
  strcpy(source->value_type, r.header.type[0] == 'p' ? "pattern" : r.header.type[0] == 'i' ? "integer" : "real");
  strcpy(source->structure, r.header.type[1] == 's'   ? "symmetric"
                            : r.header.type[1] == 'z' ? "skew-symmetric"
                                                      : "general");
  if (r.header.right_hand_sides) strcpy(source->note, "right-hand sides were left out");
  TRY(asparse_coordinates_to_csr(r.text.name, &r.entries, a));
cleanup:
  reader_free(&r);
  return status;
}

/* Numbers of lines in the second line and formats in the fourth; or a supplementary file, to be refused by name. */
static asparse_match detect(const asparse_input *input) {
  static const char *const supplements[] = {"ord", "rhs", "sln", "est", "evl", "svl", "evc",
                                            "svc", "sbv", "sbm", "sbp", "ppt", "pat", "aux"};
  const asparse_text text = {.name = input->name, .bytes = input->head, .length = input->head_length};
  const char *lines[5], *second = asparse_skip_blanks(next_line(&text, text.bytes));
  for (size_t i = 0; i < sizeof supplements / sizeof *supplements; i++) {
    if (strncmp(second, supplements[i], 3) == 0 && isalpha((unsigned char)second[3]) &&
        asparse_is_blank(second[4 + (second[4] != ' ')]))
      return ASPARSE_MATCH_YES;
  }
  if (!first_lines(&text, lines) || !asparse_is_digit(*second)) return ASPARSE_MATCH_NO;
  bool type = isalpha((unsigned char)*asparse_skip_blanks(lines[2])), formats = *asparse_skip_blanks(lines[3]) == '(';
  return type && formats ? ASPARSE_MATCH_YES : ASPARSE_MATCH_NO;
}

const asparse_importer asparse_harwell_boeing_importer = {
    .name = "hb", .title = "Harwell-Boeing or Rutherford-Boeing", .detect = detect, .read = import};
