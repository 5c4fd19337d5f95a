#include "plan/cover_move.h"

#include <string.h>

#include "plan/matching.h"

typedef struct mover {
  const asparse_matrix *a;
  asparse_comm *comm; /* the ranks with this block of columns */
  const asparse_local_csr *offd;
  int *owner;    /* [offd->k] rank that has each column's row of B */
  bool *covered; /* [offd->k] that row travels */
  /* [comm->size] each, one block: partial rows and entries that leave for each rank, and that arrive. Entries go to
   * where rows of C come from. */
  int64_t *rows_out, *entries_out, *rows_in, *entries_in;
  int64_t *lengths; /* [Σ rows_out] entries of each */
  int32_t *columns; /* [Σ entries_out] of the owner's rows of B */
  void *values;
} mover;

static int64_t sum(const int64_t *counts, int n) {
  int64_t total = 0;
  for (int r = 0; r < n; r++) total += counts[r];
  return total;
}

static asparse_status mover_create(const asparse_matrix *a, mover *m) {
  asparse_status status = ASPARSE_OK;
  *m = (mover){.a = a, .comm = a->grid.column_comm, .offd = a->part.offd};
  const int size = m->comm->size;
  ALLOC(m->owner, m->offd->k);
  ALLOC(m->covered, m->offd->k);
  ALLOC_ZERO(m->rows_out, 4 * (int64_t)size);
  m->entries_out = m->rows_out + size;
  m->rows_in = m->entries_out + size;
  m->entries_in = m->rows_in + size;
  for (int32_t c = 0; c < m->offd->k; c++) m->owner[c] = asparse_owner(a->col_starts, size, a->part.col_map_offd[c]);
cleanup:
  return status;
}

static void mover_free(mover *m) {
  asparse_free(m->owner);
  asparse_free(m->covered);
  asparse_free(m->rows_out);
  asparse_free(m->lengths);
  asparse_free(m->columns);
  asparse_free(m->values);
}

/* ---- the covers ------------------------------------------------------------------------------- */

/* Rows of every column, ascending: col_ptr [k + 2], of which the first k + 1 are filled; rows [entries]. */
static void transpose_pattern(const asparse_local_csr *a, int64_t *col_ptr, int32_t *rows) {
  for (int64_t e = 0; e < a->row_ptr[a->m]; e++) col_ptr[a->col_idx[e] + 2]++;
  for (int32_t c = 1; c <= a->k; c++) col_ptr[c + 1] += col_ptr[c];
  for (int32_t i = 0; i < a->m; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) rows[col_ptr[a->col_idx[e] + 1]++] = i;
  }
}

/* A minimum cover for every owner; where a graph exceeds 32-bit numbers, all columns. Local. */
static asparse_status choose_columns(mover *m, int row_weight) {
  asparse_status status = ASPARSE_OK;
  const int32_t k = m->offd->k;
  int64_t *col_ptr = NULL;
  int32_t *rows = NULL, *pair_ptr = NULL;
  asparse_matching matching = {0};
  ALLOC_ZERO(col_ptr, k + (int64_t)2);
  ALLOC(rows, m->offd->row_ptr[m->offd->m]);
  ALLOC(pair_ptr, k + (int64_t)1);
  TRY(asparse_matching_create(&matching, m->offd->m, k, row_weight));
  transpose_pattern(m->offd, col_ptr, rows);
  for (int32_t begin = 0, end = 0; begin < k; begin = end) {
    while (end < k && m->owner[end] == m->owner[begin]) end++;
    if ((col_ptr[end] - col_ptr[begin]) * row_weight > INT32_MAX) {
      memset(m->covered + begin, true, (size_t)(end - begin));
      continue;
    }
    for (int32_t c = begin; c <= end; c++) pair_ptr[c - begin] = (int32_t)(col_ptr[c] - col_ptr[begin]);
    const asparse_bipartite graph = {end - begin, pair_ptr, rows + col_ptr[begin], row_weight};
    asparse_matching_cover(&graph, &matching, m->covered + begin);
  }
cleanup:
  asparse_matching_free(&matching);
  asparse_free(col_ptr);
  asparse_free(rows);
  asparse_free(pair_ptr);
  return status;
}

/* ---- what stays ------------------------------------------------------------------------------- */

static void copy_value(const asparse_local_csr *a, int64_t e, void *to, int64_t at) {
  const size_t size = asparse_dtype_size(a->dtype);
  memcpy((char *)to + (size_t)at * size, (const char *)a->values + (size_t)e * size, size);
}

static void fill_kept(const mover *m, const int32_t *number, asparse_local_csr *kept) {
  for (int32_t i = 0; i < kept->m; i++) {
    int64_t at = kept->row_ptr[i];
    for (int64_t e = m->offd->row_ptr[i]; e < m->offd->row_ptr[i + 1]; e++) {
      const int32_t c = m->offd->col_idx[e];
      if (!m->covered[c]) continue;
      copy_value(m->offd, e, kept->values, at);
      kept->col_idx[at++] = number[c];
    }
  }
}

static asparse_status keep(const mover *m, asparse_cover_parts *parts) {
  asparse_status status = ASPARSE_OK;
  const asparse_local_csr *offd = m->offd;
  int32_t *number = NULL, n = 0;
  ALLOC(number, offd->k);
  for (int32_t c = 0; c < offd->k; c++) number[c] = m->covered[c] ? n++ : -1;
  ALLOC(parts->wanted, n);
  for (int32_t c = 0; c < offd->k; c++) {
    if (m->covered[c]) parts->wanted[number[c]] = m->a->part.col_map_offd[c];
  }
  TRY(asparse_local_csr_create(&parts->kept, offd->m, n, 0, offd->dtype));
  for (int32_t i = 0; i < offd->m; i++) {
    int64_t length = 0;
    for (int64_t e = offd->row_ptr[i]; e < offd->row_ptr[i + 1]; e++) length += m->covered[offd->col_idx[e]];
    parts->kept->row_ptr[i + 1] = parts->kept->row_ptr[i] + length;
  }
  TRY(asparse_local_csr_reserve_columns(parts->kept));
  TRY(asparse_local_csr_reserve_values(parts->kept));
  fill_kept(m, number, parts->kept);
cleanup:
  asparse_free(number);
  return status;
}

/* ---- what moves ------------------------------------------------------------------------------- */

static void count_moves(mover *m, int32_t *last_row) {
  for (int32_t i = 0; i < m->offd->m; i++) {
    for (int64_t e = m->offd->row_ptr[i]; e < m->offd->row_ptr[i + 1]; e++) {
      const int32_t c = m->offd->col_idx[e], r = m->owner[c];
      if (m->covered[c]) continue;
      m->entries_out[r]++;
      m->rows_out[r] += last_row[r] != i;
      last_row[r] = i;
    }
  }
}

/* row_at, entry_at [comm->size]: where each rank's next partial row and entry go. */
static void fill_moves(mover *m, int64_t *row_at, int64_t *entry_at, int32_t *last_row, int32_t *received_row) {
  const asparse_local_csr *offd = m->offd;
  for (int32_t i = 0; i < offd->m; i++) {
    for (int64_t e = offd->row_ptr[i]; e < offd->row_ptr[i + 1]; e++) {
      const int32_t c = offd->col_idx[e], r = m->owner[c];
      if (m->covered[c]) continue;
      if (last_row[r] != i) {
        last_row[r] = received_row[row_at[r]] = i;
        m->lengths[row_at[r]++] = 0;
      }
      m->lengths[row_at[r] - 1]++;
      m->columns[entry_at[r]] = (int32_t)(m->a->part.col_map_offd[c] - m->a->col_starts[r]);
      copy_value(offd, e, m->values, entry_at[r]++);
    }
  }
}

/* The entries that leave, by rank and row. Local. */
static asparse_status collect_moves(mover *m, asparse_cover_parts *parts) {
  asparse_status status = ASPARSE_OK;
  const int size = m->comm->size;
  int32_t *last_row = NULL;
  int64_t *at = NULL;
  ALLOC(last_row, size);
  ALLOC_ZERO(at, 2 * (int64_t)size);
  memset(last_row, -1, (size_t)size * sizeof *last_row);
  count_moves(m, last_row);
  parts->n_received = sum(m->rows_out, size);
  ALLOC(parts->received_row, parts->n_received);
  ALLOC(m->lengths, parts->n_received);
  ALLOC(m->columns, sum(m->entries_out, size));
  ALLOC_BYTES(m->values, sum(m->entries_out, size), asparse_dtype_size(m->offd->dtype));
  for (int r = 1; r < size; r++) {
    at[r] = at[r - 1] + m->rows_out[r - 1];
    at[size + r] = at[size + r - 1] + m->entries_out[r - 1];
  }
  memset(last_row, -1, (size_t)size * sizeof *last_row);
  fill_moves(m, at, at + size, last_row, parts->received_row);
cleanup:
  asparse_free(last_row);
  asparse_free(at);
  return status;
}

/* An array of out[r] elements for every rank r; in[r] arrive. Collective. */
static asparse_status move_array(const mover *m, const int64_t *out, const int64_t *in, size_t element,
                                 const void *leaving, void *arriving) {
  asparse_status status = ASPARSE_OK;
  const int size = m->comm->size;
  int64_t *bytes = asparse_calloc(4 * (int64_t)size, sizeof *bytes, "bytes to move");
  TRY(asparse_comm_agree(m->comm, bytes ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  int64_t *send = bytes, *send_displs = send + size, *receive = send_displs + size, *receive_displs = receive + size;
  for (int r = 0; r < size; r++) {
    send[r] = out[r] * (int64_t)element;
    receive[r] = in[r] * (int64_t)element;
    if (r > 0) send_displs[r] = send_displs[r - 1] + send[r - 1];
    if (r > 0) receive_displs[r] = receive_displs[r - 1] + receive[r - 1];
  }
  TRY(asparse_comm_alltoallv(m->comm, leaving, send, send_displs, arriving, receive, receive_displs));
cleanup:
  asparse_free(bytes);
  return status;
}

static asparse_status create_sent(const mover *m, asparse_cover_parts *parts) {
  asparse_status status = ASPARSE_OK;
  int32_t rows = 0, own = 0;
  TRY(asparse_int32_from(sum(m->rows_in, m->comm->size), "the number of partial rows of C", &rows));
  TRY(asparse_int32_from(m->a->part.k_local, "the number of own rows of B", &own));
  TRY(asparse_local_csr_create(&parts->sent, rows, own, sum(m->entries_in, m->comm->size), m->offd->dtype));
cleanup:
  return status;
}

/* Collective. */
static asparse_status move(mover *m, asparse_cover_parts *parts) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_comm_alltoall_int64(m->comm, m->rows_out, m->rows_in));
  TRY(asparse_comm_alltoall_int64(m->comm, m->entries_out, m->entries_in));
  TRY(asparse_comm_agree(m->comm, create_sent(m, parts)));
  asparse_local_csr *sent = parts->sent;
  TRY(move_array(m, m->rows_out, m->rows_in, 8, m->lengths, sent->row_ptr + 1));
  TRY(move_array(m, m->entries_out, m->entries_in, sizeof *m->columns, m->columns, sent->col_idx));
  TRY(move_array(m, m->entries_out, m->entries_in, asparse_dtype_size(sent->dtype), m->values, sent->values));
  for (int32_t i = 0; i < sent->m; i++) sent->row_ptr[i + 1] += sent->row_ptr[i];
cleanup:
  return status;
}

/* Numbers of the partial rows: those of rank 0 first. Collective. */
static asparse_status number_partial_rows(const mover *m, asparse_cover_parts *parts) {
  asparse_status status = ASPARSE_OK;
  const int size = m->comm->size;
  int64_t *first = NULL, *theirs = NULL, rows = parts->sent->m;
  parts->sent_starts = asparse_calloc(size + (int64_t)1, sizeof *parts->sent_starts, "partial rows");
  parts->received_from = asparse_malloc(parts->n_received, sizeof *parts->received_from, "partial rows");
  first = asparse_calloc(2 * (int64_t)size, sizeof *first, "partial rows");
  if (!parts->sent_starts || !parts->received_from || !first) status = ASPARSE_ERR_MEMORY;
  TRY(asparse_comm_agree(m->comm, status));
  theirs = first + size;
  TRY_MPI(MPI_Allgather(&rows, 1, MPI_INT64_T, parts->sent_starts + 1, 1, MPI_INT64_T, m->comm->mpi));
  for (int r = 0; r < size; r++) parts->sent_starts[r + 1] += parts->sent_starts[r];
  for (int r = 1; r < size; r++) first[r] = first[r - 1] + m->rows_in[r - 1];
  TRY(asparse_comm_alltoall_int64(m->comm, first, theirs));
  for (int64_t r = 0, at = 0; r < size; r++) {
    for (int64_t i = 0; i < m->rows_out[r]; i++) parts->received_from[at++] = parts->sent_starts[r] + theirs[r] + i;
  }
cleanup:
  asparse_free(first);
  return status;
}

asparse_status asparse_cover_split(const asparse_matrix *a, int row_weight, asparse_cover_parts *parts) {
  asparse_status status = ASPARSE_OK;
  mover m = {0};
  *parts = (asparse_cover_parts){0};
  status = mover_create(a, &m);
  if (status == ASPARSE_OK) status = choose_columns(&m, row_weight);
  if (status == ASPARSE_OK) status = keep(&m, parts);
  if (status == ASPARSE_OK) status = collect_moves(&m, parts);
  TRY(asparse_comm_agree(m.comm, status));
  TRY(move(&m, parts));
  TRY(number_partial_rows(&m, parts));
cleanup:
  if (status != ASPARSE_OK) asparse_cover_parts_free(parts);
  mover_free(&m);
  return status;
}

void asparse_cover_parts_free(asparse_cover_parts *parts) {
  asparse_local_csr_destroy(&parts->kept);
  asparse_local_csr_destroy(&parts->sent);
  FREE(parts->wanted);
  FREE(parts->received_row);
  FREE(parts->received_from);
  FREE(parts->sent_starts);
}
