#include "generate/generate.h"

#include <string.h>

#include "base/comm.h"
#include "generate/draw.h"
#include "generate/kind.h"

int64_t asparse_generator_cut(const asparse_generator *g, int parts, int part) {
  if (part <= 0) return 0;
  if (part >= parts) return g->m;
  return g->kind->cut ? g->kind->cut(g, parts, part) : asparse_even_start(g->m, parts, part);
}

/* Rows that one thread makes at a time; that few are not worth waking others. */
enum { ROWS_AT_A_TIME = 64 };

/* room_ptr[n_rows + 1]: where each row may begin, were all as long as they can be. */
static asparse_status count_rows(const asparse_generator *g, int64_t row_begin, int64_t n_rows, int64_t *room_ptr) {
  enum { CHUNK = 1 << 14 };
  room_ptr[0] = 0;
#pragma omp parallel for schedule(dynamic) if (n_rows > CHUNK)
  for (int64_t first = 0; first < n_rows; first += CHUNK)
    g->kind->count(g, row_begin + first, first + CHUNK < n_rows ? CHUNK : n_rows - first, room_ptr + first + 1);
  for (int64_t i = 0; i < n_rows; i++) {
    if (__builtin_add_overflow(room_ptr[i], room_ptr[i + 1], &room_ptr[i + 1]))
      return ASPARSE_FAIL(ASPARSE_ERR_MEMORY, "%s: rows %lld … %lld have more than 2^63 entries; use more ranks",
                          g->kind->name, (long long)row_begin, (long long)(row_begin + n_rows - 1));
  }
  return ASPARSE_OK;
}

/* Columns of each row where it may begin; then row_ptr as they are, and the gaps closed. */
static void fill_columns(const asparse_generator *g, const int64_t *room_ptr, asparse_csr *a) {
#pragma omp parallel for schedule(dynamic, ROWS_AT_A_TIME) if (a->n_rows > ROWS_AT_A_TIME)
  for (int64_t i = 0; i < a->n_rows; i++)
    a->row_ptr[i + 1] = g->kind->columns(g, a->row_begin + i, room_ptr[i + 1] - room_ptr[i], a->col_idx + room_ptr[i]);
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t length = a->row_ptr[i + 1], begin = a->row_ptr[i];
    if (begin != room_ptr[i])
      memmove(a->col_idx + begin, a->col_idx + room_ptr[i], (size_t)length * sizeof *a->col_idx);
    a->row_ptr[i + 1] = begin + length;
  }
}

static void fill_values(const asparse_generator *g, asparse_csr *a) {
#pragma omp parallel for schedule(dynamic, ROWS_AT_A_TIME) if (a->n_rows > ROWS_AT_A_TIME)
  for (int64_t i = 0; i < a->n_rows; i++) {
    if (g->values == ASPARSE_VALUES_SPD) {
      g->kind->spd_values(g, a, i);
      continue;
    }
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      uint64_t key = draw_key(g->seed, DRAW_VALUE, a->row_begin + i, a->col_idx[e]);
      asparse_store(a->dtype, a->values, e, g->values == ASPARSE_VALUES_ONE ? 1.0 : draw_signed(key));
    }
  }
}

asparse_status asparse_generate_slab(const asparse_generator *g, int64_t row_begin, int64_t n_rows,
                                     asparse_csr **slab) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *a = NULL;
  int64_t *room_ptr = NULL;
  TRY_THAT(row_begin >= 0 && n_rows >= 0 && row_begin <= g->m - n_rows, ASPARSE_ERR_USAGE,
           "%s: %lld rows from %lld on are not rows of a matrix of %lld", g->kind->name, (long long)n_rows,
           (long long)row_begin, (long long)g->m);
  ALLOC(room_ptr, n_rows + 1);
  TRY(count_rows(g, row_begin, n_rows, room_ptr));
  TRY(asparse_csr_create(&a, g->m, g->k, row_begin, n_rows, room_ptr[n_rows], g->dtype));
  fill_columns(g, room_ptr, a);
  fill_values(g, a);
  a->nnz = asparse_csr_nnz_local(a);
  *slab = a;
cleanup:
  asparse_free(room_ptr);
  return status;
}
