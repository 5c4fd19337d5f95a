#include "io/coordinates.h"

#include <string.h>

#include "io/budget.h"
#include "io/row_counts.h"

enum { MIN_PIECE_ENTRIES = 4096 };

asparse_status asparse_coordinates_create(const char *name, int64_t n, bool with_values, asparse_coordinates *c) {
  asparse_status status = ASPARSE_OK;
  int64_t entry_bytes = with_values ? 24 : 16;
  *c = (asparse_coordinates){.n = n};
  TRY(asparse_budget_allows(name, n < INT64_MAX / entry_bytes ? n * entry_bytes : INT64_MAX, "its list of entries"));
  ALLOC(c->rows, n);
  ALLOC(c->cols, n);
  if (with_values) ALLOC(c->values, n);
cleanup:
  return status;
}

void asparse_coordinates_free(asparse_coordinates *c) {
  FREE(c->rows);
  FREE(c->cols);
  FREE(c->values);
}

static bool is_mirrored(const asparse_coordinates *c, int64_t e) {
  return c->structure != ASPARSE_GENERAL && c->rows[e] != c->cols[e];
}

/* counts[m] += entries of each row. */
static void count(const asparse_coordinates *c, int64_t begin, int64_t end, int64_t *counts) {
  for (int64_t e = begin; e < end; e++) {
    counts[c->rows[e]]++;
    if (is_mirrored(c, e)) counts[c->cols[e]]++;
  }
}

static void place(const asparse_coordinates *c, int64_t begin, int64_t end, int64_t *next, asparse_csr *a) {
  const bool skew = c->structure == ASPARSE_SKEW_SYMMETRIC_LOWER || c->structure == ASPARSE_SKEW_SYMMETRIC_UPPER;
  double *values = a->values;
  for (int64_t e = begin; e < end; e++) {
    double value = c->values ? c->values[e] : 1.0;
    int64_t to = next[c->rows[e]]++;
    a->col_idx[to] = c->cols[e];
    values[to] = value;
    if (!is_mirrored(c, e)) continue;
    to = next[c->cols[e]]++;
    a->col_idx[to] = c->rows[e];
    values[to] = skew ? -value : value;
  }
}

asparse_status asparse_coordinates_to_csr(const char *name, asparse_coordinates *c, asparse_csr **out) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *a = NULL;
  int64_t *counts = NULL, m = c->m, nnz = 0;
  int n_pieces = 1;
  TRY(asparse_row_counts_pieces(name, m, c->n / MIN_PIECE_ENTRIES + 1, &n_pieces));
  ALLOC(counts, n_pieces * m);
#pragma omp parallel for schedule(static, 1) reduction(+ : nnz)
  for (int p = 0; p < n_pieces; p++) {
    int64_t begin = asparse_even_start(c->n, n_pieces, p), end = asparse_even_start(c->n, n_pieces, p + 1);
    memset(counts + p * m, 0, (size_t)m * sizeof *counts);
    count(c, begin, end, counts + p * m);
    for (int64_t e = begin; e < end; e++) nnz += 1 + is_mirrored(c, e);
  }
  TRY(asparse_budget_allows(name, nnz * (int64_t)(sizeof *a->col_idx + sizeof(double)), "the matrix"));
  TRY(asparse_csr_create(&a, m, c->k, 0, m, nnz, ASPARSE_FP64));
  asparse_row_counts_lay_out(n_pieces, m, counts, a->row_ptr);
#pragma omp parallel for schedule(static, 1)
  for (int p = 0; p < n_pieces; p++)
    place(c, asparse_even_start(c->n, n_pieces, p), asparse_even_start(c->n, n_pieces, p + 1), counts + p * m, a);
  FREE(counts);
  asparse_coordinates_free(c);
  TRY(asparse_csr_sort_rows(a));
  *out = a;
  a = NULL;
cleanup:
  asparse_free(counts);
  asparse_csr_destroy(&a);
  return status;
}
