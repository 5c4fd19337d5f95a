#include "io/mtx_piece.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct entry {
  const char *line;
  int64_t row, col; /* from 0 */
  double value;
  bool inexact;
} entry;

/* A walk over the entries of a piece. */
typedef struct walk {
  asparse_mtx_piece *piece;
  const asparse_mtx_header *header;
  const char *cursor;
  int64_t row, col; /* of the next value of an array */
  bool with_values;
} walk;

__attribute__((format(printf, 3, 4), cold)) static bool fail(walk *w, const char *at, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(w->piece->message, sizeof w->piece->message, format, arguments);
  va_end(arguments);
  w->piece->error = at;
  return false;
}

__attribute__((cold)) static bool fail_index(walk *w, const char *at, const char *what, int64_t size) {
  asparse_quote found = asparse_quoted(at);
  const char *p = at;
  uint64_t magnitude = 1;
  bool negative = false;
  if (asparse_is_line_end(*at)) return fail(w, at, "the line ends before its %s index", what);
  if (asparse_number_integer(&p, &negative, &magnitude) == ASPARSE_NUMBER_BAD)
    return fail(w, at, "found \"%s\" as %s index; expected a whole number", found.word, what);
  return fail(w, at, "the %s index is %s; expected 1 to %lld%s", what, found.word, (long long)size,
              magnitude == 0 ? ", since indices count from 1" : "");
}

/* One index, from 1 in the text and from 0 in the result. */
static inline bool read_index(walk *w, const char *what, int64_t size, int64_t *index) {
  const char *at = asparse_skip_blanks(w->cursor);
  uint64_t magnitude = 0;
  bool negative = false;
  w->cursor = at;
  asparse_number result = asparse_number_integer(&w->cursor, &negative, &magnitude);
  if (result != ASPARSE_NUMBER_OK || negative || magnitude - 1 >= (uint64_t)size) return fail_index(w, at, what, size);
  *index = (int64_t)(magnitude - 1);
  return true;
}

__attribute__((cold)) static bool fail_value(walk *w, const char *at, asparse_number result) {
  asparse_quote found = asparse_quoted(at);
  bool integer = w->header->field == ASPARSE_MTX_INTEGER;
  if (asparse_is_line_end(*at))
    return fail(w, at, "the line ends before its value; entries without values need \"pattern\" in the banner");
  if (result == ASPARSE_NUMBER_OVERFLOW)
    return fail(w, at, "the value %s is out of range; the largest that can be held is %s", found.word,
                integer ? "18446744073709551615 (64 bits)" : "1.7976931348623157e308 (fp64)");
  return fail(w, at, "found \"%s\" as value; expected %s", found.word,
              integer ? "a whole number, as the banner says \"integer\" (other numbers need \"real\")" : "a number");
}

/* fp64 holds an integer exactly when its odd part is below 2^53. */
static inline bool is_exact(uint64_t x) { return x == 0 || x >> __builtin_ctzll(x) >> 53 == 0; }

static inline bool read_value(walk *w, entry *e) {
  e->inexact = false;
  e->value = 1.0;
  if (w->header->field == ASPARSE_MTX_PATTERN) return true;
  const char *at = w->cursor = asparse_skip_blanks(w->cursor);
  asparse_number result;
  if (w->header->field == ASPARSE_MTX_INTEGER) {
    uint64_t magnitude = 0;
    bool negative = false;
    result = asparse_number_integer(&w->cursor, &negative, &magnitude);
    e->value = negative ? -(double)magnitude : (double)magnitude;
    e->inexact = !is_exact(magnitude);
  } else {
    result = asparse_number_real(&w->cursor, &e->value);
  }
  return result == ASPARSE_NUMBER_OK || fail_value(w, at, result);
}

static inline bool read_line_end(walk *w) {
  w->cursor = asparse_skip_blanks(w->cursor);
  if (asparse_is_line_end(*w->cursor)) return true;
  return fail(w, w->cursor, "\"%s\" follows the end of the entry; expected a line end%s",
              asparse_quoted(w->cursor).word,
              w->header->field == ASPARSE_MTX_PATTERN ? ", as the banner says \"pattern\"" : "");
}

/* The first row of column j that an array file stores. */
static inline int64_t first_stored_row(const asparse_mtx_header *header, int64_t j) {
  return header->symmetry == ASPARSE_MTX_GENERAL ? 0 : header->symmetry == ASPARSE_MTX_SKEW ? j + 1 : j;
}

/* An array lists its columns one after the other. */
static inline void step_array(walk *w) {
  if (++w->row < w->header->m) return;
  w->col++;
  w->row = first_stored_row(w->header, w->col);
}

/* Row and column of the first value of the piece. */
static void start_array(walk *w) {
  int64_t before = w->piece->first_entry;
  if (w->header->m == 0) return;
  for (w->col = 0; w->col < w->header->k; w->col++) {
    w->row = first_stored_row(w->header, w->col);
    int64_t column = w->header->m - w->row;
    if (before < column) break;
    before -= column;
  }
  w->row += before;
}

static walk start_walk(asparse_mtx_piece *piece, const asparse_mtx_header *header, bool with_values) {
  walk w = {.piece = piece, .header = header, .cursor = piece->begin, .with_values = with_values};
  if (header->array) start_array(&w);
  return w;
}

/* False at the end of the piece, and at an error. */
static inline bool next_entry(walk *w, entry *e) {
  const asparse_mtx_header *header = w->header;
  const char *line = asparse_next_line(w->cursor, w->piece->end);
  if (!line) return false;
  w->cursor = e->line = line;
  if (header->array) {
    e->row = w->row;
    e->col = w->col;
    step_array(w);
  } else {
    e->col = 0;
    if (!read_index(w, "row", header->m, &e->row)) return false;
    if (!header->vector && !read_index(w, "column", header->k, &e->col)) return false;
  }
  if (w->with_values) return read_value(w, e) && read_line_end(w);
  w->cursor = asparse_skip_line(w->cursor);
  return true;
}

/* Zeros of an array are not stored. */
static inline bool is_stored(const asparse_mtx_header *header, const entry *e) {
  return !header->array || e->value != 0.0;
}

static inline bool is_mirrored(const asparse_mtx_header *header, const entry *e) {
  return header->symmetry != ASPARSE_MTX_GENERAL && e->row != e->col;
}

void asparse_mtx_piece_count_lines(asparse_mtx_piece *piece) {
  const char *line = piece->begin;
  piece->n_entries = 0;
  while ((line = asparse_next_line(line, piece->end))) {
    piece->n_entries++;
    line = asparse_skip_line(line);
  }
}

void asparse_mtx_piece_count(asparse_mtx_piece *piece, const asparse_mtx_header *header, int64_t *row_counts) {
  walk w = start_walk(piece, header, header->array || header->field == ASPARSE_MTX_PATTERN);
  entry e;
  int64_t n_entries = 0, n_stored = 0;
  while (next_entry(&w, &e)) {
    n_entries++;
    if (!is_stored(header, &e)) continue;
    row_counts[e.row]++;
    n_stored++;
    if (!is_mirrored(header, &e)) continue;
    row_counts[e.col]++;
    n_stored++;
    const char **first = e.row > e.col ? &piece->first_lower : &piece->first_upper;
    if (!*first) *first = e.line;
  }
  piece->n_entries = n_entries;
  piece->n_stored = n_stored;
}

void asparse_mtx_piece_place(asparse_mtx_piece *piece, const asparse_mtx_header *header, int64_t *next,
                             int64_t *col_idx, double *values) {
  walk w = start_walk(piece, header, true);
  entry e;
  const bool skew = header->symmetry == ASPARSE_MTX_SKEW;
  int64_t n_inexact = 0;
  while (next_entry(&w, &e)) {
    if (!is_stored(header, &e)) continue;
    int64_t place = next[e.row]++;
    col_idx[place] = e.col;
    values[place] = e.value;
    n_inexact += e.inexact;
    if (is_mirrored(header, &e)) {
      int64_t mirror = next[e.col]++;
      col_idx[mirror] = e.row;
      values[mirror] = skew ? -e.value : e.value;
      n_inexact += e.inexact;
    } else if (skew && e.value != 0.0) {
      fail(&w, e.line, "a value on the diagonal of a skew-symmetric matrix; expected none or 0");
      break;
    }
  }
  piece->n_inexact = n_inexact;
}
