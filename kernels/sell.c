#include "kernels/sell.h"

#include "base/memory.h"

enum { QUARTERS = 4, MOST_RESIDUES = 8, ZERO_BYTES = 128, PIECE_BYTES = 16 };

/* Column indices modulo this tell apart the banks that rows of B start in. */
static int32_t residues_of(int32_t columns) { return 64 / columns; }

int32_t asparse_sell_most_k(int32_t columns) { return (ASPARSE_SELL_SHARED_BYTES - ZERO_BYTES) / (2 * columns); }

/* ---- slices ------------------------------------------------------------------------------- */

/* A slice before it has its place: rows by_length[first … first + n_rows). */
typedef struct cut {
  int32_t first, n_rows;
  uint16_t n_quads, parts;
} cut;

typedef struct layout {
  const asparse_local_csr *a;
  int32_t height, most_steps;
  int32_t *by_length; /* [m], longest row first, equal ones in order */
  int32_t n_cuts;
  cut *cuts; /* [n_cuts] */
} layout;

static int64_t row_length(const asparse_local_csr *a, int32_t row) { return a->row_ptr[row + 1] - a->row_ptr[row]; }

/* order[0 … n) = 0 … n-1, largest key first, equal ones in order; keys are 0 … most. */
static asparse_status sort_descending(int32_t n, const int32_t *keys, int32_t most, int32_t *order) {
  asparse_status status = ASPARSE_OK;
  int64_t *starts = NULL; /* [most + 2], where the keys above start */
  ALLOC_ZERO(starts, (int64_t)most + 2);
  for (int32_t i = 0; i < n; i++) starts[most - keys[i] + 1]++;
  for (int32_t key = 0; key <= most; key++) starts[key + 1] += starts[key];
  for (int32_t i = 0; i < n; i++) order[starts[most - keys[i]]++] = i;
cleanup:
  asparse_free(starts);
  return status;
}

static asparse_status sort_rows(layout *l) {
  asparse_status status = ASPARSE_OK;
  const asparse_local_csr *a = l->a;
  int32_t *lengths = NULL;
  ALLOC(lengths, a->m);
  ALLOC(l->by_length, a->m);
  for (int32_t i = 0; i < a->m; i++) lengths[i] = (int32_t)row_length(a, i); /* ≤ k */
  TRY(sort_descending(a->m, lengths, a->k, l->by_length));
cleanup:
  asparse_free(lengths);
  return status;
}

static int32_t parts_of(const layout *l, int64_t length) {
  int32_t parts = 1;
  while (parts < l->height && length > (int64_t)parts * l->most_steps) parts *= 2;
  return parts;
}

/* The slice that starts with row by_length[first]: rows of as many parts. */
static cut cut_at(const layout *l, int32_t first) {
  const int64_t longest = row_length(l->a, l->by_length[first]);
  const int32_t parts = parts_of(l, longest);
  const int64_t steps = (longest + parts - 1) / parts;
  cut c = {first, 1, (uint16_t)((steps + ASPARSE_SELL_QUAD - 1) / ASPARSE_SELL_QUAD), (uint16_t)parts};
  while (c.n_rows < l->height / parts && first + c.n_rows < l->a->m &&
         parts_of(l, row_length(l->a, l->by_length[first + c.n_rows])) == parts)
    c.n_rows++;
  return c;
}

/* Cuts in order of rows, then the slices' own order, longest first. */
static asparse_status cut_rows(layout *l, int32_t *most_quads) {
  asparse_status status = ASPARSE_OK;
  *most_quads = 0;
  for (int32_t first = 0; first < l->a->m; l->n_cuts++) first += cut_at(l, first).n_rows;
  ALLOC(l->cuts, l->n_cuts);
  for (int32_t i = 0, first = 0; i < l->n_cuts; i++) {
    l->cuts[i] = cut_at(l, first);
    first += l->cuts[i].n_rows;
    if (l->cuts[i].n_quads > *most_quads) *most_quads = l->cuts[i].n_quads;
  }
cleanup:
  return status;
}

/* ---- entries ------------------------------------------------------------------------------ */

/* The segments that read shared memory together, and what is left of them. */
typedef struct quarter {
  int32_t residues; /* and segments */
  int32_t left[MOST_RESIDUES];
  int32_t count[MOST_RESIDUES][MOST_RESIDUES]; /* [segment][residue] entries left */
  int32_t total[MOST_RESIDUES];                /* [residue] over the segments */
  int64_t next[MOST_RESIDUES][MOST_RESIDUES];  /* [segment][residue] where to look for the next one */
} quarter;

static quarter quarter_of(const asparse_local_csr *a, int32_t residues, const int64_t *begins, const int64_t *ends) {
  quarter q = {.residues = residues};
  for (int32_t s = 0; s < residues; s++) {
    q.left[s] = (int32_t)(ends[s] - begins[s]);
    for (int64_t e = begins[s]; e < ends[s]; e++) q.count[s][a->col_idx[e] % residues]++;
    for (int32_t r = 0; r < residues; r++) {
      q.total[r] += q.count[s][r];
      q.next[s][r] = begins[s];
    }
  }
  return q;
}

/* Removes and returns the next entry of that segment and residue. */
static int64_t take(const asparse_local_csr *a, quarter *q, int32_t s, int32_t r) {
  int64_t e = q->next[s][r];
  while (a->col_idx[e] % q->residues != r) e++;
  q->next[s][r] = e + 1;
  q->left[s]--;
  q->count[s][r]--;
  q->total[r]--;
  return e;
}

/* The fullest residue that is not used yet. */
static int32_t fullest(const quarter *q, const bool *used) {
  int32_t best = -1;
  for (int32_t r = 0; r < q->residues; r++)
    if (!used[r] && (best < 0 || q->total[r] > q->total[best])) best = r;
  return best;
}

/* One step: picks[s] = an entry of segment s, or -1; returns a residue that no pick has where there are -1.
 * The fullest residues choose first, and of the segments the longest, so that the last steps are not left with one
 * residue. A segment that can still wait does so rather than share a bank. */
static int32_t pick_step(const asparse_local_csr *a, quarter *q, int32_t steps_left, int64_t *picks) {
  bool used[MOST_RESIDUES] = {false};
  int32_t free_residue = 0;
  for (int32_t s = 0; s < q->residues; s++) picks[s] = -1;
  for (int32_t i = 0; i < q->residues; i++) {
    const int32_t r = fullest(q, used);
    int32_t best = -1;
    for (int32_t s = 0; s < q->residues; s++)
      if (picks[s] < 0 && q->count[s][r] > 0 && (best < 0 || q->left[s] > q->left[best])) best = s;
    used[r] = true;
    if (best < 0) free_residue = r;
    else picks[best] = take(a, q, best, r);
  }
  for (int32_t s = 0; s < q->residues; s++) {
    if (picks[s] >= 0 || q->left[s] < steps_left) continue;
    int32_t r = 0;
    for (int32_t i = 1; i < q->residues; i++)
      if (q->count[s][i] > q->count[s][r]) r = i;
    picks[s] = take(a, q, s, r);
  }
  return free_residue;
}

static uint32_t entry_of(const asparse_sell *sell, int32_t col, uint16_t value) {
  return (uint32_t)value << 16 | (uint32_t)(col * (2 * sell->columns / PIECE_BYTES));
}

/* Segments first … of slice `index`, the part of them that starts with segment `begin`. */
static void fill_quarter(const layout *l, asparse_sell *sell, int32_t index, const int64_t *begins, const int64_t *ends,
                         int32_t begin) {
  const int32_t residues = residues_of(sell->columns);
  const asparse_sell_slice *slice = &sell->slices[index];
  const uint16_t *values = l->a->values;
  /* Rows of zeros from k on: the first of residue 0. */
  const int32_t zeros = sell->k + (residues - sell->k % residues) % residues;
  const int32_t steps = slice->n_quads * ASPARSE_SELL_QUAD;
  quarter q = quarter_of(l->a, residues, begins, ends);
  for (int32_t j = 0; j < steps; j++) {
    int64_t picks[MOST_RESIDUES];
    const int32_t free_residue = pick_step(l->a, &q, steps - j, picks);
    int32_t zero_row = zeros + free_residue;
    if (zero_row >= sell->k + residues) zero_row -= residues;
    const int64_t quad = ((int64_t)slice->first_quad + j / ASPARSE_SELL_QUAD) * sell->height + begin;
    for (int32_t s = 0; s < residues; s++)
      sell->entries[(quad + s) * ASPARSE_SELL_QUAD + j % ASPARSE_SELL_QUAD] =
          picks[s] < 0 ? entry_of(sell, zero_row, 0) : entry_of(sell, l->a->col_idx[picks[s]], values[picks[s]]);
  }
}

static void fill_slice(const layout *l, asparse_sell *sell, int32_t index, const cut *c) {
  const int32_t residues = residues_of(sell->columns);
  int32_t *rows = sell->rows + (int64_t)index * sell->height;
  for (int32_t begin = 0; begin < sell->height; begin += residues) {
    int64_t begins[MOST_RESIDUES] = {0}, ends[MOST_RESIDUES] = {0};
    for (int32_t s = 0; s < residues; s++) {
      const int32_t in_slice = (begin + s) / c->parts, part = (begin + s) % c->parts;
      rows[begin + s] = -1;
      if (in_slice >= c->n_rows) continue;
      const int32_t row = l->by_length[c->first + in_slice];
      const int64_t length = row_length(l->a, row);
      rows[begin + s] = row;
      begins[s] = l->a->row_ptr[row] + length * part / c->parts;
      ends[s] = l->a->row_ptr[row] + length * (part + 1) / c->parts;
    }
    fill_quarter(l, sell, index, begins, ends, begin);
  }
}

/* ---- building ----------------------------------------------------------------------------- */

static asparse_status check(const asparse_local_csr *a, int32_t columns, int32_t most_steps) {
  if (a->dtype != ASPARSE_BF16) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "SELL: the matrix is not bf16; convert it");
  if (columns != 8 && columns != 16 && columns != 32 && columns != 64)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "SELL with %d columns: use 8, 16, 32 or 64", columns);
  if (most_steps < 1) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "SELL with %d steps: use 1 or more", most_steps);
  if (a->k > asparse_sell_most_k(columns))
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE,
                        "SELL: %d rows of B times %d columns exceed shared memory, which holds %d rows (%d at 8 "
                        "columns); use fewer columns, CSR or WCSR",
                        a->k, columns, asparse_sell_most_k(columns), asparse_sell_most_k(8));
  return ASPARSE_OK;
}

/* Slices without entries, and where their entries go. */
static asparse_status place_slices(const layout *l, const int32_t *order, asparse_sell *sell) {
  asparse_status status = ASPARSE_OK;
  int64_t quads = 0;
  sell->n_slices = l->n_cuts;
  ALLOC(sell->slices, l->n_cuts);
  ALLOC(sell->rows, (int64_t)l->n_cuts * sell->height);
  for (int32_t i = 0; i < l->n_cuts; i++) {
    const cut *c = &l->cuts[order[i]];
    sell->slices[i] = (asparse_sell_slice){(uint32_t)quads, c->n_quads, c->parts};
    quads += c->n_quads;
  }
  TRY_THAT(quads <= UINT32_MAX, ASPARSE_ERR_RUNTIME, "SELL with %lld quads: a slice's offset holds %u; use more ranks",
           (long long)quads, UINT32_MAX);
  sell->n_stored = quads * sell->height * ASPARSE_SELL_QUAD;
  ALLOC(sell->entries, sell->n_stored + 2 * sell->height * ASPARSE_SELL_QUAD);
  for (int64_t e = sell->n_stored; e < sell->n_stored + 2 * sell->height * ASPARSE_SELL_QUAD; e++)
    sell->entries[e] = entry_of(sell, sell->k, 0);
cleanup:
  return status;
}

asparse_status asparse_sell_build(const asparse_local_csr *a, int32_t columns, int32_t most_steps, asparse_sell **out) {
  asparse_status status = ASPARSE_OK;
  layout l = {.a = a, .height = 0, .most_steps = most_steps};
  asparse_sell *sell = NULL;
  int32_t *keys = NULL, *order = NULL, most_quads;
  PASS(check(a, columns, most_steps));
  l.height = 256 / columns;
  ALLOC_ZERO(sell, 1);
  sell->m = a->m;
  sell->k = a->k;
  sell->columns = columns;
  sell->height = l.height;
  sell->nnz = a->row_ptr[a->m];
  TRY(sort_rows(&l));
  TRY(cut_rows(&l, &most_quads));
  ALLOC(keys, l.n_cuts);
  ALLOC(order, l.n_cuts);
  for (int32_t i = 0; i < l.n_cuts; i++) keys[i] = l.cuts[i].n_quads;
  TRY(sort_descending(l.n_cuts, keys, most_quads, order));
  TRY(place_slices(&l, order, sell));
#pragma omp parallel for schedule(dynamic, 16)
  for (int32_t i = 0; i < l.n_cuts; i++) fill_slice(&l, sell, i, &l.cuts[order[i]]);
  *out = sell;
  sell = NULL;
cleanup:
  asparse_sell_destroy(&sell);
  asparse_free(l.by_length);
  asparse_free(l.cuts);
  asparse_free(keys);
  asparse_free(order);
  return status;
}

void asparse_sell_destroy(asparse_sell **a) {
  if (!a || !*a) return;
  asparse_free((*a)->slices);
  asparse_free((*a)->rows);
  asparse_free((*a)->entries);
  FREE(*a);
}
