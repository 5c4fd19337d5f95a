/* Edge lists as SNAP has them: a line for each edge, "from to" or "from to weight", and comments (# or %). One set of
 * vertices, so the matrix is square: a(from, to) = weight, or 1. */
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "io/coordinates.h"
#include "io/importer.h"
#include "io/text.h"
#include "io/unique.h"

enum { MIN_PIECE_BYTES = 64 << 10 };

typedef struct piece {
  const char *begin, *end; /* whole lines */
  int64_t first, n_edges;  /* edges before it and in it */
  int64_t max_id;
  asparse_text_error error;
} piece;

typedef struct reader {
  asparse_text text;
  bool weighted;
  int n_pieces;
  piece *pieces; /* [n_pieces] */
  asparse_coordinates edges;
} reader;

static void reader_free(reader *r) {
  asparse_coordinates_free(&r->edges);
  FREE(r->pieces);
  asparse_text_free(&r->text);
}

/* The next line with an edge; NULL: none before end. */
static const char *next_edge(const char *p, const char *end) {
  for (;;) {
    while (p < end && (asparse_is_blank(*p) || asparse_is_line_end(*p))) p++;
    if (p >= end) return NULL;
    if (*p != '#' && *p != '%') return p;
    p = asparse_skip_line(p);
  }
}

static bool fail(piece *piece, const char *at, const char *expected) {
  if (asparse_is_line_end(*at)) return asparse_text_note(&piece->error, at, "the line ends; expected %s", expected);
  return asparse_text_note(&piece->error, at, "found \"%s\"; expected %s", asparse_quoted(at).word, expected);
}

static bool read_id(piece *piece, const char **cursor, int64_t *id) {
  const char *at = *cursor = asparse_skip_blanks(*cursor);
  bool negative = false;
  uint64_t magnitude = 0;
  if (asparse_number_integer(cursor, &negative, &magnitude) != ASPARSE_NUMBER_OK || (negative && magnitude > 0) ||
      magnitude >= INT64_MAX)
    return fail(piece, at, "a vertex: a whole number from 0 to 9223372036854775806");
  *id = (int64_t)magnitude;
  if (*id > piece->max_id) piece->max_id = *id;
  return true;
}

static bool read_edge(piece *piece, const char **cursor, asparse_coordinates *edges, int64_t e) {
  if (!read_id(piece, cursor, &edges->rows[e]) || !read_id(piece, cursor, &edges->cols[e])) return false;
  const char *at = *cursor = asparse_skip_blanks(*cursor);
  if (edges->values) {
    if (asparse_number_real(cursor, &edges->values[e]) != ASPARSE_NUMBER_OK)
      return fail(piece, at, "a weight, as the first edge has one");
    at = *cursor = asparse_skip_blanks(*cursor);
  }
  if (asparse_is_line_end(*at)) return true;
  return fail(piece, at,
              edges->values ? "the end of the line after \"from to weight\""
                            : "the end of the line after \"from to\", as the first edge has no weight");
}

static void count_piece(piece *piece) {
  for (const char *p = piece->begin; (p = next_edge(p, piece->end)); p = asparse_skip_line(p)) piece->n_edges++;
}

static void read_piece(piece *piece, asparse_coordinates *edges) {
  const char *p = piece->begin;
  int64_t e = piece->first;
  piece->max_id = -1;
  while ((p = next_edge(p, piece->end))) {
    if (!read_edge(piece, &p, edges, e++)) return;
  }
}

static asparse_status cut_pieces(reader *r) {
  asparse_status status = ASPARSE_OK;
  const char *begin = r->text.bytes, *end = begin + r->text.length;
  int64_t most = r->text.length / MIN_PIECE_BYTES + 1, threads = omp_get_max_threads();
  if (strncmp(begin, "\xef\xbb\xbf", 3) == 0) begin += 3; /* UTF-8 byte order mark */
  r->n_pieces = (int)(threads < most ? threads : most);
  ALLOC_ZERO(r->pieces, r->n_pieces);
  for (int p = 0; p < r->n_pieces; p++) {
    r->pieces[p].begin = asparse_text_cut(begin, end, r->n_pieces, p);
    r->pieces[p].end = asparse_text_cut(begin, end, r->n_pieces, p + 1);
  }
cleanup:
  return status;
}

/* The first edge says whether edges have weights. */
static bool has_third(const reader *r) {
  const char *p = next_edge(r->pieces[0].begin, r->text.bytes + r->text.length);
  for (int word = 0; p && word < 2; word++) {
    p = asparse_skip_blanks(p);
    while (!asparse_is_blank(*p) && !asparse_is_line_end(*p)) p++;
  }
  return p && !asparse_is_line_end(*asparse_skip_blanks(p));
}

static asparse_status read_edges(reader *r, int64_t *max_id) {
  int64_t n = 0;
  PASS(cut_pieces(r));
  r->weighted = has_third(r);
#pragma omp parallel for schedule(static, 1)
  for (int p = 0; p < r->n_pieces; p++) count_piece(&r->pieces[p]);
  for (int p = 0; p < r->n_pieces; p++) {
    r->pieces[p].first = n;
    n += r->pieces[p].n_edges;
  }
  if (n == 0)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s holds no edge; expected lines \"from to\" or \"from to weight\"",
                        r->text.name);
  PASS(asparse_coordinates_create(r->text.name, n, r->weighted, &r->edges));
#pragma omp parallel for schedule(static, 1)
  for (int p = 0; p < r->n_pieces; p++) read_piece(&r->pieces[p], &r->edges);
  *max_id = -1;
  for (int p = 0; p < r->n_pieces; p++) {
    const asparse_text_error *error = &r->pieces[p].error;
    if (error->at) return asparse_text_fail(&r->text, error->at, "%s", error->message);
    if (r->pieces[p].max_id > *max_id) *max_id = r->pieces[p].max_id;
  }
  return ASPARSE_OK;
}

/* Replaces ids by their rank among the ids that occur. */
static asparse_status compact_ids(reader *r, int64_t *n_vertices) {
  asparse_status status = ASPARSE_OK;
  asparse_coordinates *edges = &r->edges;
  int64_t *ids = NULL, n = edges->n;
  TRY(asparse_budget_allows(r->text.name, n < INT64_MAX / 32 ? n * 32 : INT64_MAX, "sorting its vertices"));
  ALLOC(ids, 2 * n);
  memcpy(ids, edges->rows, (size_t)n * sizeof *ids);
  memcpy(ids + n, edges->cols, (size_t)n * sizeof *ids);
  TRY(asparse_unique_int64(ids, 2 * n, n_vertices));
#pragma omp parallel for schedule(static)
  for (int64_t e = 0; e < n; e++) {
    edges->rows[e] = asparse_unique_find(ids, *n_vertices, edges->rows[e]);
    edges->cols[e] = asparse_unique_find(ids, *n_vertices, edges->cols[e]);
  }
cleanup:
  asparse_free(ids);
  return status;
}

static asparse_status number_vertices(reader *r, const asparse_import_options *options, int64_t max_id) {
  int64_t n_vertices = max_id + 1;
  if (options->ids == ASPARSE_IDS_COMPACT) {
    PASS(compact_ids(r, &n_vertices));
  } else if (n_vertices > asparse_budget_available() / 16) {
    return ASPARSE_FAIL(ASPARSE_ERR_MEMORY,
                        "%s: its largest vertex is %lld, and a matrix of as many rows does not fit into memory; "
                        "\"--ids compact\" numbers only the vertices that occur",
                        r->text.name, (long long)max_id);
  }
  r->edges.m = r->edges.k = n_vertices;
  return ASPARSE_OK;
}

static asparse_status import(asparse_input *input, const asparse_import_options *options, asparse_csr **a,
                             asparse_source *source) {
  asparse_status status = ASPARSE_OK;
  reader r = {0};
  int64_t max_id = -1;
  TRY(asparse_text_load(input, &r.text));
  TRY(read_edges(&r, &max_id));
  TRY(number_vertices(&r, options, max_id));
  *source = (asparse_source){.format = "edge list", .structure = "general", .stored_entries = r.edges.n};
  strcpy(source->value_type, r.weighted ? "real" : "pattern");
  TRY(asparse_coordinates_to_csr(r.text.name, &r.edges, a));
cleanup:
  reader_free(&r);
  return status;
}

/* The first lines of the head are comments or hold two or three numbers, all as many, the first two of them whole. */
static asparse_match detect(const asparse_input *input) {
  enum { LINES = 20 };
  const char *p = input->head, *end = p + input->head_length;
  piece ignored = {.max_id = -1};
  int n = 0, weighted = -1;
  if (asparse_input_is_named(input, ".el") || asparse_input_is_named(input, ".edges") ||
      asparse_input_is_named(input, ".edgelist"))
    return ASPARSE_MATCH_YES;
  for (; n < LINES && (p = next_edge(p, end)); n++) {
    double weight;
    int64_t id;
    if (!input->head_is_all && asparse_skip_line(p) == end) break; /* a line cut off by the head's end */
    if (!read_id(&ignored, &p, &id) || !read_id(&ignored, &p, &id)) return ASPARSE_MATCH_NO;
    p = asparse_skip_blanks(p);
    const int has_weight = !asparse_is_line_end(*p);
    if (weighted >= 0 && has_weight != weighted) return ASPARSE_MATCH_NO;
    weighted = has_weight;
    if (has_weight && asparse_number_real(&p, &weight) != ASPARSE_NUMBER_OK) return ASPARSE_MATCH_NO;
    if (!asparse_is_line_end(*asparse_skip_blanks(p))) return ASPARSE_MATCH_NO;
  }
  return n > 0 ? ASPARSE_MATCH_MAYBE : ASPARSE_MATCH_NO;
}

const asparse_importer asparse_edges_importer = {
    .name = "edges", .title = "edge list", .detect = detect, .read = import};
