#include "partition/cluster.h"

#include <omp.h>
#include <string.h>

#include "base/memory.h"

/* Rows are clustered among CHUNK_ROWS neighbours, chunks by different threads. Chunks of 16384 keep 0.98 of the gain in
 * gathered columns of whole matrices, of 4096 0.94 (geometric means over 63 matrices of the collection). */
enum { WINDOW_ROWS = 16, CHUNK_ROWS = 32768 };

/* Columns of more rows of the chunk suggest no row, and no more candidates are compared for a place: both bound the
 * work, neither costs 1 % of the gain. */
enum { MOST_COLUMN_ROWS = 512, MOST_CANDIDATES = 1024 };

/* A thread's view of one chunk of rows. */
typedef struct chunk {
  const asparse_local_csr *a;
  int32_t begin, end;     /* rows */
  int64_t *column_ptr;    /* [k + 1] */
  int32_t *column_rows;   /* [entries of the chunk] rows of each column */
  int32_t *column_window; /* [k] the last window that has the column, counted over all chunks of the thread */
  int32_t *shared;        /* [CHUNK_ROWS] columns a row of the chunk shares with the window */
  int32_t *candidates;    /* [CHUNK_ROWS] rows with shared > 0, placed ones among them */
  bool *placed;           /* [CHUNK_ROWS] */
  int32_t n_candidates, window;
  int64_t room; /* of column_rows */
} chunk;

static void chunk_free(chunk *c) {
  asparse_free(c->column_ptr);
  asparse_free(c->column_rows);
  asparse_free(c->column_window);
  asparse_free(c->shared);
  asparse_free(c->candidates);
  asparse_free(c->placed);
}

static asparse_status chunk_create(const asparse_local_csr *a, int64_t room, chunk *c) {
  asparse_status status = ASPARSE_OK;
  *c = (chunk){.a = a, .room = room};
  ALLOC(c->column_ptr, a->k + INT64_C(1));
  ALLOC(c->column_rows, room);
  ALLOC_ZERO(c->column_window, a->k);
  ALLOC(c->shared, CHUNK_ROWS);
  ALLOC(c->candidates, CHUNK_ROWS);
  ALLOC(c->placed, CHUNK_ROWS);
cleanup:
  return status;
}

/* The rows of each column of the chunk: its transpose, without values. */
static void transpose(chunk *c) {
  const asparse_local_csr *a = c->a;
  const int64_t first = a->row_ptr[c->begin], last = a->row_ptr[c->end];
  memset(c->column_ptr, 0, ((size_t)a->k + 1) * sizeof *c->column_ptr);
  for (int64_t e = first; e < last; e++) c->column_ptr[a->col_idx[e]]++;
  for (int32_t j = 1; j <= a->k; j++) c->column_ptr[j] += c->column_ptr[j - 1];
  /* Filled from the end, after which every pointer stands at its column's start. */
  for (int32_t i = c->end - 1; i >= c->begin; i--) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) c->column_rows[--c->column_ptr[a->col_idx[e]]] = i;
  }
}

/* The window takes row i: rows of its new columns become candidates. */
static void place(chunk *c, int32_t i) {
  const asparse_local_csr *a = c->a;
  c->placed[i - c->begin] = true;
  for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
    const int32_t col = a->col_idx[e];
    if (c->column_window[col] == c->window) continue;
    c->column_window[col] = c->window;
    const int64_t begin = c->column_ptr[col], end = c->column_ptr[col + 1];
    if (end - begin > MOST_COLUMN_ROWS) continue;
    for (int64_t r = begin; r < end; r++) {
      const int32_t row = c->column_rows[r] - c->begin;
      if (!c->placed[row] && c->shared[row]++ == 0) c->candidates[c->n_candidates++] = row;
    }
  }
}

/* The candidate that shares most and adds least, 2·shared − added; -1: none. A placed one gives way to the last. */
static int32_t best_candidate(chunk *c) {
  const int64_t *row_ptr = c->a->row_ptr + c->begin;
  int64_t best_score = INT64_MIN;
  int32_t best = -1;
  for (int32_t i = 0; i < c->n_candidates && i < MOST_CANDIDATES; i++) {
    while (i < c->n_candidates && c->placed[c->candidates[i]]) c->candidates[i] = c->candidates[--c->n_candidates];
    if (i == c->n_candidates) break;
    const int32_t row = c->candidates[i];
    const int64_t score = 3 * (int64_t)c->shared[row] - (row_ptr[row + 1] - row_ptr[row]);
    if (score > best_score || (score == best_score && row < best)) best = row, best_score = score;
  }
  return best < 0 ? -1 : best + c->begin;
}

/* order[0 …]: the rows of the chunk. */
static void cluster_chunk(chunk *c, int32_t *order) {
  const int32_t rows = c->end - c->begin;
  int32_t next = c->begin, suggested = -1;
  transpose(c);
  memset(c->placed, 0, (size_t)rows * sizeof *c->placed);
  memset(c->shared, 0, (size_t)rows * sizeof *c->shared);
  for (int32_t n = 0; n < rows; n++) {
    if (n % WINDOW_ROWS == 0) {
      for (int32_t i = 0; i < c->n_candidates; i++) c->shared[c->candidates[i]] = 0;
      c->n_candidates = 0;
      c->window++;
    }
    int32_t row = suggested;
    if (row < 0) {
      while (c->placed[next - c->begin]) next++;
      row = next;
    }
    place(c, row);
    order[n] = row;
    suggested = best_candidate(c);
  }
  for (int32_t i = 0; i < c->n_candidates; i++) c->shared[c->candidates[i]] = 0;
  c->n_candidates = 0;
}

/* Most entries of a chunk. */
static int64_t largest_chunk(const asparse_local_csr *a) {
  int64_t most = 0;
  for (int64_t begin = 0; begin < a->m; begin += CHUNK_ROWS) {
    const int64_t end = begin + CHUNK_ROWS < a->m ? begin + CHUNK_ROWS : a->m, n = a->row_ptr[end] - a->row_ptr[begin];
    most = n > most ? n : most;
  }
  return most;
}

static asparse_status cluster(const asparse_local_csr *a, int32_t *order) {
  asparse_status status = ASPARSE_OK;
  const int32_t n_chunks = a->m / CHUNK_ROWS + (a->m % CHUNK_ROWS != 0);
  const int64_t room = largest_chunk(a);
#pragma omp parallel num_threads(n_chunks < omp_get_max_threads() ? n_chunks : omp_get_max_threads())
  {
    chunk c;
    const asparse_status made = chunk_create(a, room, &c);
    if (made != ASPARSE_OK) {
#pragma omp atomic write
      status = made;
    }
#pragma omp barrier
    asparse_status all;
#pragma omp atomic read
    all = status;
#pragma omp for schedule(dynamic)
    for (int32_t i = 0; i < n_chunks; i++) {
      if (all != ASPARSE_OK) continue;
      c.begin = i * CHUNK_ROWS;
      c.end = i < n_chunks - 1 ? c.begin + CHUNK_ROWS : a->m;
      cluster_chunk(&c, order + c.begin);
    }
    chunk_free(&c);
  }
  return status;
}

/* rows = a in the order. */
static asparse_status permute(const asparse_local_csr *a, const int32_t *order, asparse_local_csr **rows) {
  asparse_status status = ASPARSE_OK;
  const size_t size = asparse_dtype_size(a->dtype);
  asparse_local_csr *out = NULL;
  TRY(asparse_local_csr_create(&out, a->m, a->k, a->row_ptr[a->m], a->dtype));
  out->row_ptr[0] = 0;
  for (int32_t i = 0; i < a->m; i++)
    out->row_ptr[i + 1] = out->row_ptr[i] + a->row_ptr[order[i] + 1] - a->row_ptr[order[i]];
#pragma omp parallel for schedule(static)
  for (int32_t i = 0; i < a->m; i++) {
    const int64_t from = a->row_ptr[order[i]], to = out->row_ptr[i];
    const size_t n = (size_t)(out->row_ptr[i + 1] - to);
    memcpy(out->col_idx + to, a->col_idx + from, n * sizeof *a->col_idx);
    memcpy((char *)out->values + (size_t)to * size, (const char *)a->values + (size_t)from * size, n * size);
  }
  *rows = out;
cleanup:
  return status;
}

asparse_status asparse_rows_cluster(const asparse_local_csr *a, asparse_clustered *out) {
  asparse_status status = ASPARSE_OK;
  *out = (asparse_clustered){0};
  ALLOC(out->order, a->m);
  TRY(cluster(a, out->order));
  TRY(permute(a, out->order, &out->rows));
  return ASPARSE_OK;
cleanup:
  asparse_clustered_free(out);
  return status;
}

void asparse_clustered_free(asparse_clustered *clustered) {
  FREE(clustered->order);
  asparse_local_csr_destroy(&clustered->rows);
}
