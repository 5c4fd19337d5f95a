/* Reading Matrix Market files: the text is cut at line ends into a piece for each thread; one pass counts
 * the entries of each row, a second puts them into place, in the order of the file. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "io/importer.h"
#include "io/mtx_piece.h"
#include "io/row_counts.h"

enum { MIN_PIECE_BYTES = 64 << 10 };

typedef struct reader {
  asparse_text text;
  asparse_mtx_header header;
  int n_pieces;
  asparse_mtx_piece *pieces; /* [n_pieces], in the order of the text */
  int64_t *row_counts;       /* [n_pieces][m]: entries of each row in each piece, then where its next one goes */
} reader;

static void reader_free(reader *r) {
  FREE(r->row_counts);
  FREE(r->pieces);
  asparse_text_free(&r->text);
}

static asparse_status cut_pieces(reader *r) {
  asparse_status status = ASPARSE_OK;
  const char *begin = r->header.entries, *end = r->text.bytes + r->text.length;
  TRY(asparse_row_counts_pieces(r->text.name, r->header.m, r->text.length / MIN_PIECE_BYTES + 1, &r->n_pieces));
  ALLOC_ZERO(r->pieces, r->n_pieces);
  for (int p = 0; p < r->n_pieces; p++) {
    r->pieces[p].begin = asparse_text_cut(begin, end, r->n_pieces, p);
    r->pieces[p].end = asparse_text_cut(begin, end, r->n_pieces, p + 1);
  }
cleanup:
  return status;
}

/* The earliest error of the pieces. */
static asparse_status first_error(const reader *r) {
  for (int p = 0; p < r->n_pieces; p++) {
    if (r->pieces[p].error) return asparse_text_fail(&r->text, r->pieces[p].error, "%s", r->pieces[p].message);
  }
  return ASPARSE_OK;
}

static asparse_status check_entry_count(const reader *r) {
  int64_t declared = r->header.n_entries, found = 0;
  const char *end = r->text.bytes + r->text.length;
  for (int p = 0; p < r->n_pieces; p++) {
    const asparse_mtx_piece *piece = &r->pieces[p];
    if (found + piece->n_entries > declared) {
      const char *line = asparse_next_line(piece->begin, piece->end);
      for (; found < declared; found++) line = asparse_next_line(asparse_skip_line(line), piece->end);
      return asparse_text_fail(&r->text, line,
                               "more entries than the %lld that the size line declares; correct it "
                               "or remove what is too much",
                               (long long)declared);
    }
    found += piece->n_entries;
  }
  if (found == declared) return ASPARSE_OK;
  return asparse_text_fail(&r->text, end,
                           "the file ends after %lld of %lld entries; it is cut off or its size line "
                           "is wrong",
                           (long long)found, (long long)declared);
}

/* A file with symmetry holds one triangle; with entries in both it would be unclear what is meant. */
static asparse_status check_triangle(const reader *r) {
  const char *lower = NULL, *upper = NULL;
  for (int p = 0; p < r->n_pieces; p++) {
    if (!lower) lower = r->pieces[p].first_lower;
    if (!upper) upper = r->pieces[p].first_upper;
  }
  if (!lower || !upper) return ASPARSE_OK;
  return asparse_text_fail(&r->text, lower > upper ? lower : upper,
                           "an entry %s the diagonal of a %s matrix, of which entries %s it came before; store one "
                           "triangle only, or all entries as \"general\"",
                           lower > upper ? "below" : "above", r->header.symmetry_name,
                           lower > upper ? "above" : "below");
}

static asparse_status count_rows(reader *r) {
  asparse_status status = ASPARSE_OK;
  int64_t m = r->header.m;
  if (r->header.array) {
#pragma omp parallel for schedule(static, 1)
    for (int p = 0; p < r->n_pieces; p++) asparse_mtx_piece_count_lines(&r->pieces[p]);
    TRY(check_entry_count(r));
    for (int p = 1; p < r->n_pieces; p++)
      r->pieces[p].first_entry = r->pieces[p - 1].first_entry + r->pieces[p - 1].n_entries;
  }
  ALLOC(r->row_counts, r->n_pieces * m);
#pragma omp parallel for schedule(static, 1)
  for (int p = 0; p < r->n_pieces; p++) {
    memset(r->row_counts + p * m, 0, (size_t)m * sizeof *r->row_counts);
    asparse_mtx_piece_count(&r->pieces[p], &r->header, r->row_counts + p * m);
  }
  TRY(first_error(r));
  TRY(check_entry_count(r));
  TRY(check_triangle(r));
cleanup:
  return status;
}

static asparse_status place_entries(reader *r, asparse_csr *a) {
  int64_t m = r->header.m;
  asparse_row_counts_lay_out(r->n_pieces, m, r->row_counts, a->row_ptr);
#pragma omp parallel for schedule(static, 1)
  for (int p = 0; p < r->n_pieces; p++)
    asparse_mtx_piece_place(&r->pieces[p], &r->header, r->row_counts + p * m, a->col_idx, a->values);
  for (int p = 0; p < r->n_pieces; p++) a->n_inexact += r->pieces[p].n_inexact;
  return first_error(r);
}

static void describe(const asparse_mtx_header *header, asparse_source *source) {
  *source = (asparse_source){.format = "Matrix Market", .stored_entries = header->n_entries};
  snprintf(source->value_type, sizeof source->value_type, "%s", header->field_name);
  snprintf(source->structure, sizeof source->structure, "%s", header->symmetry_name);
}

static asparse_status import(asparse_input *input, const asparse_import_options *options, asparse_csr **out,
                             asparse_source *source) {
  asparse_status status = ASPARSE_OK;
  reader r = {0};
  asparse_csr *a = NULL;
  int64_t nnz = 0;
  (void)options;
  TRY(asparse_text_load(input, &r.text));
  TRY(asparse_mtx_header_parse(&r.text, &r.header));
  TRY(cut_pieces(&r));
  TRY(count_rows(&r));
  for (int p = 0; p < r.n_pieces; p++) nnz += r.pieces[p].n_stored;
  TRY(asparse_budget_allows(r.text.name, nnz * (int64_t)(sizeof *a->col_idx + sizeof(double)), "the matrix"));
  TRY(asparse_csr_create(&a, r.header.m, r.header.k, 0, r.header.m, nnz, ASPARSE_FP64));
  TRY(place_entries(&r, a));
  describe(&r.header, source);
  reader_free(&r);
  TRY(asparse_csr_sort_rows(a));
  *out = a;
  a = NULL;
cleanup:
  asparse_csr_destroy(&a);
  reader_free(&r);
  return status;
}

/* The banner; and a name that claims it, so that a file without a banner is told what it lacks. */
static asparse_match detect(const asparse_input *input) {
  const char *p = input->head;
  if (strncmp(p, "\xef\xbb\xbf", 3) == 0) p += 3; /* UTF-8 byte order mark */
  while (p < input->head + input->head_length && (asparse_is_blank(*p) || asparse_is_line_end(*p))) p++;
  bool matches = strncasecmp(p, "%%MatrixMarket", 14) == 0 || strncasecmp(p, "%MatrixMarket", 13) == 0 ||
                 asparse_input_is_named(input, ".mtx") || asparse_input_is_named(input, ".mm");
  return matches ? ASPARSE_MATCH_YES : ASPARSE_MATCH_NO;
}

const asparse_importer asparse_mtx_importer = {
    .name = "mtx", .title = "Matrix Market", .detect = detect, .read = import};

asparse_status asparse_mtx_read(const char *path, asparse_csr **a, asparse_source *source) {
  const asparse_import_options options = {0};
  asparse_source ignored;
  asparse_input input;
  asparse_status status = asparse_input_open(path, &input);
  if (status == ASPARSE_OK) status = import(&input, &options, a, source ? source : &ignored);
  if (status == ASPARSE_OK) (*a)->nnz = asparse_csr_nnz_local(*a);
  asparse_input_close(&input);
  return status;
}
