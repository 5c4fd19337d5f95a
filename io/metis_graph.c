/* METIS graphs (Karypis, METIS 5.1 manual, section 4.1.1): a header "vertices edges [fmt [ncon]]" and a line for each
 * vertex: its size and weights, which are left out, and its neighbours, each with the edge's weight where fmt says so.
 * The matrix is the adjacency matrix. */
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "io/importer.h"
#include "io/text.h"

enum { MIN_PIECE_BYTES = 64 << 10 };

typedef struct header {
  int64_t n, n_edges;                       /* an edge is listed twice */
  bool sizes, vertex_weights, edge_weights; /* the digits of fmt */
  bool multigraph;                          /* fmt 1xx as METIS 4 has it: loops and multiple edges, no sizes */
  int64_t n_weights;                        /* ncon, 0 without vertex weights */
  const char *at;                           /* in the text */
  const char *vertices;                     /* what follows */
} header;

typedef struct piece {
  const char *begin, *end; /* whole lines */
  int64_t first_vertex, n_vertices;
  int64_t first_entry, n_entries;
  int64_t n_inexact;
  asparse_text_error error;
} piece;

typedef struct reader {
  asparse_text text;
  header header;
  int n_pieces;
  piece *pieces; /* [n_pieces] */
  asparse_csr *a;
} reader;

static void reader_free(reader *r) {
  asparse_csr_destroy(&r->a);
  FREE(r->pieces);
  asparse_text_free(&r->text);
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* The line at p unless it is a comment, which is passed over; NULL: none before end. Empty lines count: they are
 * vertices without neighbours. */
static const char *next_vertex(const char *p, const char *end) {
  while (p < end && *asparse_skip_blanks(p) == '%') p = asparse_skip_line_end(asparse_skip_line(p));
  return p < end ? p : NULL;
}

static int64_t count_words(const char *p) {
  int64_t n = 0;
  for (p = asparse_skip_blanks(p); !asparse_is_line_end(*p); p = asparse_skip_blanks(p)) {
    n++;
    while (!asparse_is_blank(*p) && !asparse_is_line_end(*p)) p++;
  }
  return n;
}

static int64_t words_before_edges(const header *h) { return h->n_weights + (h->sizes && !h->multigraph); }

/* ---- header --------------------------------------------------------------------------------- */

static asparse_status parse_format(const asparse_text *text, const char *at, uint64_t fmt, header *h) {
  if (fmt > 111 || fmt % 10 > 1 || fmt / 10 % 10 > 1)
    return asparse_text_fail(text, at,
                             "fmt is %s; expected up to three digits 0 or 1: vertex sizes, vertex weights, "
                             "edge weights",
                             asparse_quoted(at).word);
  h->sizes = fmt >= 100;
  h->vertex_weights = fmt / 10 % 10;
  h->edge_weights = fmt % 10;
  h->n_weights = h->vertex_weights;
  return ASPARSE_OK;
}

static asparse_status parse_header(const asparse_text *text, header *h) {
  static const char *const names[] = {"vertices", "edges", "fmt", "ncon"};
  const char *end = text->bytes + text->length, *p = text->bytes;
  uint64_t numbers[4] = {0};
  int n = 0;
  do p = next_vertex(p, end);
  while (p && count_words(p) == 0 && (p = asparse_skip_line_end(asparse_skip_line(p))));
  if (!p) return asparse_text_fail(text, end, "no header; expected \"vertices edges [fmt [ncon]]\"");
  h->at = p;
  for (p = asparse_skip_blanks(p); !asparse_is_line_end(*p); p = asparse_skip_blanks(p)) {
    const char *at = p;
    bool negative = false;
    if (n == 4) return asparse_text_fail(text, p, "the header goes on; expected \"vertices edges [fmt [ncon]]\"");
    if (asparse_number_integer(&p, &negative, &numbers[n]) != ASPARSE_NUMBER_OK || (negative && numbers[n] > 0) ||
        numbers[n] >= INT64_MAX / 4)
      return asparse_text_fail(text, at, "found \"%s\" as the number of %s in the header; expected a whole number ≥ 0",
                               asparse_quoted(at).word, names[n]);
    if (n == 2) PASS(parse_format(text, at, numbers[2], h));
    n++;
  }
  if (n < 2) return asparse_text_fail(text, p, "the header ends; expected \"vertices edges [fmt [ncon]]\"");
  if (n == 4 && numbers[3] > 0) {
    if (!h->vertex_weights || numbers[3] > INT32_MAX)
      return asparse_text_fail(text, h->at, "ncon is %llu, but fmt says that vertices have no weights",
                               (unsigned long long)numbers[3]);
    h->n_weights = (int64_t)numbers[3];
  }
  h->n = (int64_t)numbers[0];
  h->n_edges = (int64_t)numbers[1];
  h->vertices = asparse_skip_line_end(p);
  return ASPARSE_OK;
}

/* ---- counting ------------------------------------------------------------------------------- */

/* Vertices up to the last line that is not empty, and entries. */
static void count_piece(piece *piece, const header *h) {
  const int64_t before = words_before_edges(h), each = 1 + h->edge_weights;
  int64_t empty = 0;
  piece->n_vertices = piece->n_entries = 0;
  piece->error.at = NULL;
  for (const char *p = piece->begin; (p = next_vertex(p, piece->end));
       p = asparse_skip_line_end(asparse_skip_line(p))) {
    int64_t words = count_words(p);
    if (words > 0 && (words < before || (words - before) % each != 0)) {
      asparse_text_note(&piece->error, p, "found %lld numbers; expected %lld of the vertex and %s for each neighbour",
                        (long long)words, (long long)before, h->edge_weights ? "2" : "1");
      return;
    }
    if (words > 0) {
      piece->n_vertices += empty + 1;
      piece->n_entries += (words - before) / each;
      empty = 0;
    } else {
      empty++;
    }
  }
  piece->n_vertices += empty;
}

static asparse_status first_error(const reader *r) {
  for (int p = 0; p < r->n_pieces; p++) {
    const asparse_text_error *error = &r->pieces[p].error;
    if (error->at) return asparse_text_fail(&r->text, error->at, "%s", error->message);
  }
  return ASPARSE_OK;
}

static void count(reader *r) {
#pragma omp parallel for schedule(static, 1)
  for (int p = 0; p < r->n_pieces; p++) count_piece(&r->pieces[p], &r->header);
  for (int p = 1; p < r->n_pieces; p++) {
    const piece *last = &r->pieces[p - 1];
    r->pieces[p].first_vertex = last->first_vertex + last->n_vertices;
    r->pieces[p].first_entry = last->first_entry + last->n_entries;
  }
}

static int64_t entries(const reader *r) {
  const piece *last = &r->pieces[r->n_pieces - 1];
  return last->first_entry + last->n_entries;
}

static bool fits(const reader *r) {
  for (int p = 0; p < r->n_pieces; p++) {
    if (r->pieces[p].error.at) return false;
  }
  return entries(r) == 2 * r->header.n_edges;
}

/* The first digit of fmt means vertex sizes in METIS 5 and a multigraph before; the number of edges tells. */
static asparse_status count_entries(reader *r) {
  header *h = &r->header;
  count(r);
  if (h->sizes && !fits(r)) {
    h->multigraph = true;
    count(r);
    h->multigraph = fits(r);
    if (!h->multigraph) count(r);
  }
  PASS(first_error(r));
  if (entries(r) != 2 * h->n_edges)
    return asparse_text_fail(&r->text, h->at,
                             "the header declares %lld edges, each listed twice; found %lld entries, "
                             "expected %lld",
                             (long long)h->n_edges, (long long)entries(r), (long long)(2 * h->n_edges));
  return ASPARSE_OK;
}

static asparse_status cut_pieces(reader *r) {
  asparse_status status = ASPARSE_OK;
  const char *end = r->text.bytes + r->text.length;
  const char *begin = r->header.vertices < end ? r->header.vertices : end;
  int64_t most = r->text.length / MIN_PIECE_BYTES + 1, threads = omp_get_max_threads();
  r->n_pieces = (int)(threads < most ? threads : most);
  ALLOC_ZERO(r->pieces, r->n_pieces);
  for (int p = 0; p < r->n_pieces; p++) {
    r->pieces[p].begin = asparse_text_cut(begin, end, r->n_pieces, p);
    r->pieces[p].end = asparse_text_cut(begin, end, r->n_pieces, p + 1);
  }
cleanup:
  return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool read_whole(piece *piece, const char **cursor, const char *what, uint64_t low, uint64_t high,
                       uint64_t *number) {
  const char *at = *cursor = asparse_skip_blanks(*cursor);
  bool negative = false;
  if (asparse_number_integer(cursor, &negative, number) == ASPARSE_NUMBER_OK && (!negative || *number == 0) &&
      *number >= low && *number <= high)
    return true;
  if (asparse_is_line_end(*at)) return asparse_text_note(&piece->error, at, "the line ends before %s", what);
  return asparse_text_note(&piece->error, at, "found \"%s\" as %s; expected a whole number from %llu to %llu",
                           asparse_quoted(at).word, what, (unsigned long long)low, (unsigned long long)high);
}

static bool read_vertex(piece *piece, const header *h, const char *p, int64_t vertex, int64_t *next, asparse_csr *a) {
  const int64_t before = words_before_edges(h);
  uint64_t number = 0;
  double *values = a->values;
  for (int64_t w = 0; w < before; w++) {
    if (!read_whole(piece, &p, "a weight of the vertex", 0, INT64_MAX, &number)) return false;
  }
  for (p = asparse_skip_blanks(p); !asparse_is_line_end(*p); p = asparse_skip_blanks(p)) {
    const char *at = p;
    uint64_t weight = 1;
    if (!read_whole(piece, &p, "a neighbour", 1, (uint64_t)h->n, &number)) return false;
    if ((int64_t)number == vertex + 1 && !h->multigraph)
      return asparse_text_note(&piece->error, at, "vertex %lld lists itself; expected a graph without loops",
                               (long long)number);
    if (h->edge_weights && !read_whole(piece, &p, "the weight of an edge", 1, INT64_MAX, &weight)) return false;
    a->col_idx[*next] = (int64_t)number - 1;
    values[*next] = (double)weight;
    piece->n_inexact += weight >> 53 != 0 && (uint64_t)values[*next] != weight;
    ++*next;
  }
  return true;
}

/* Empty lines after the last vertex are passed over. */
static void read_piece(piece *piece, const header *h, asparse_csr *a) {
  int64_t vertex = piece->first_vertex, next = piece->first_entry;
  for (const char *p = piece->begin; (p = next_vertex(p, piece->end));
       p = asparse_skip_line_end(asparse_skip_line(p))) {
    if (vertex < h->n) {
      if (!read_vertex(piece, h, p, vertex, &next, a)) return;
      a->row_ptr[++vertex] = next;
    } else if (count_words(p) > 0) {
      asparse_text_note(&piece->error, p, "more lines than the %lld vertices that the header declares",
                        (long long)h->n);
      return;
    }
  }
}

static asparse_status read_vertices(reader *r) {
  const header *h = &r->header;
  const piece *last = &r->pieces[r->n_pieces - 1];
  int64_t found = last->first_vertex + last->n_vertices, nnz = entries(r);
  if (found < h->n)
    return asparse_text_fail(&r->text, r->text.bytes + r->text.length, "the file ends after %lld of %lld vertices",
                             (long long)found, (long long)h->n);
  PASS(asparse_budget_allows(r->text.name, 16 * nnz + 8 * h->n, "the matrix"));
  PASS(asparse_csr_create(&r->a, h->n, h->n, 0, h->n, nnz, ASPARSE_FP64));
#pragma omp parallel for schedule(static, 1)
  for (int p = 0; p < r->n_pieces; p++) read_piece(&r->pieces[p], h, r->a);
  for (int p = 0; p < r->n_pieces; p++) r->a->n_inexact += r->pieces[p].n_inexact;
  return first_error(r);
}

/* ---- the graph ------------------------------------------------------------------------------ */

/* Where vertex v begins in the text. */
static const char *line_of(const reader *r, int64_t v) {
  const char *end = r->text.bytes + r->text.length, *p = next_vertex(r->header.vertices, end);
  for (; v > 0; v--) p = next_vertex(asparse_skip_line_end(asparse_skip_line(p)), end);
  return p;
}

static asparse_status check_multiple(const reader *r) {
  const header *h = &r->header;
  if (h->multigraph || r->a->n_duplicates == 0) return ASPARSE_OK;
  int64_t v = 0;
  for (; v < h->n; v++) {
    int64_t listed = count_words(line_of(r, v)), kept = r->a->row_ptr[v + 1] - r->a->row_ptr[v];
    if ((listed - words_before_edges(h)) / (1 + h->edge_weights) != kept) break;
  }
  return asparse_text_fail(&r->text, line_of(r, v), "vertex %lld lists a neighbour twice; expected each edge once",
                           (long long)v + 1);
}

/* a(j, i); 0 where there is no entry, as weights are positive. */
static double find(const asparse_csr *a, int64_t j, int64_t i) {
  int64_t low = a->row_ptr[j], high = a->row_ptr[j + 1];
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (a->col_idx[middle] == i) return ((const double *)a->values)[middle];
    if (a->col_idx[middle] < i) low = middle + 1;
    else high = middle;
  }
  return 0.0;
}

static asparse_status check_symmetry(const reader *r) {
  const asparse_csr *a = r->a;
  const double *values = a->values;
  int64_t bad = asparse_csr_nnz_local(a), row = a->m;
#pragma omp parallel for schedule(dynamic, 1024) reduction(min : bad, row)
  for (int64_t i = 0; i < a->m; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      if (find(a, a->col_idx[e], i) == values[e]) continue;
      if (e < bad) bad = e;
      if (i < row) row = i;
    }
  }
  if (row == a->m) return ASPARSE_OK;
  return asparse_text_fail(
      &r->text, line_of(r, row),
      "vertex %lld lists %lld with weight %.17g, but that one lists it with weight %.17g (0: not at "
      "all); expected each edge at both ends",
      (long long)row + 1, (long long)a->col_idx[bad] + 1, values[bad], find(a, a->col_idx[bad], row));
}

static void describe(const reader *r, asparse_source *source) {
  const header *h = &r->header;
  *source = (asparse_source){.format = "METIS graph", .structure = "symmetric", .stored_entries = entries(r)};
  strcpy(source->value_type, h->edge_weights ? "integer" : "pattern");
  bool sizes = h->sizes && !h->multigraph;
  if (words_before_edges(h) > 0)
    snprintf(source->note, sizeof source->note, "%s%s%s of vertices were left out", sizes ? "sizes" : "",
             sizes && h->n_weights ? " and " : "", h->n_weights ? "weights" : "");
}

static asparse_status import(asparse_input *input, const asparse_import_options *options, asparse_csr **a,
                             asparse_source *source) {
  asparse_status status = ASPARSE_OK;
  reader r = {0};
  (void)options;
  TRY(asparse_text_load(input, &r.text));
  TRY(parse_header(&r.text, &r.header));
  TRY(cut_pieces(&r));
  TRY(count_entries(&r));
  TRY(read_vertices(&r));
  TRY(asparse_csr_sort_rows(r.a));
  TRY(check_multiple(&r));
  TRY(check_symmetry(&r));
  describe(&r, source);
  *a = r.a;
  r.a = NULL;
cleanup:
  reader_free(&r);
  return status;
}

/* ---- detection ------------------------------------------------------------------------------ */

/* Words of the lines after the header, as far as the head goes. */
typedef struct shape {
  int64_t n_lines, words;
  bool uniform; /* all lines have as many words as the header */
} shape;

static shape measure(const asparse_input *input, const header *h) {
  const char *end = input->head + input->head_length;
  const int64_t header_words = count_words(h->at);
  shape s = {.uniform = true};
  for (const char *p = h->vertices; (p = next_vertex(p, end)); p = asparse_skip_line_end(asparse_skip_line(p))) {
    int64_t words = count_words(p);
    if (!input->head_is_all && asparse_skip_line(p) == end) break; /* a line cut off by the head's end */
    s.n_lines += words > 0 || s.n_lines < h->n;
    s.words += words;
    s.uniform &= words == header_words;
  }
  return s;
}

/* A header, and lines that agree with it. Where all lines look like the header it may also be a list of edges. */
static asparse_match detect(const asparse_input *input) {
  const asparse_text text = {.name = input->name, .bytes = input->head, .length = input->head_length};
  header h = {0};
  if (asparse_input_is_named(input, ".graph") || asparse_input_is_named(input, ".metis")) return ASPARSE_MATCH_YES;
  if (input->head[0] == '#' || parse_header(&text, &h) != ASPARSE_OK) {
    asparse_error_clear();
    return ASPARSE_MATCH_NO;
  }
  shape s = measure(input, &h);
  bool agrees = s.n_lines <= h.n;
  if (input->head_is_all || s.uniform) {
    int64_t n = h.n, words = input->head_is_all ? s.words : n * count_words(h.at);
    int64_t bare = words - n * words_before_edges(&h), listed = 2 * h.n_edges * (1 + h.edge_weights);
    agrees = agrees && (!input->head_is_all || s.n_lines == n) && (bare == listed || (h.sizes && words == listed));
  }
  if (!agrees) return ASPARSE_MATCH_NO;
  return s.uniform ? ASPARSE_MATCH_MAYBE : ASPARSE_MATCH_YES;
}

const asparse_importer asparse_metis_importer = {
    .name = "metis", .title = "METIS graph", .detect = detect, .read = import};
