/* The cost of a row: predicted time of its share of the padded shard.
 *
 *   cost(i) = n · (ENTRY · nnz(i) + COLUMN · columns(w) · nnz(i) / nnz(w) + ROW)
 *
 * w is the 16-row window (counted from the matrix's first row) of row i, columns(w) its distinct columns, each of which
 * brings a row of B into cache; ROW is the writing of a row of C. */
#include "partition/partition.h"
#include "partition/row_units.h"
#include "partition/sort_keys.h"

/* Picoseconds for each dense column. Measured: least squares of the relative error of the faster of CSR, WCSR 8 and
 * WCSR 16 in fp32 at n = 128, one thread of a 2.3 GHz Xeon (AVX-512), over 13 matrices of 5 thousand to 3.2 million
 * entries (FEM, circuits, graphs); it predicts each within 0.67 to 1.23 of the measurement, where time over entries
 * alone varies tenfold. */
enum { ENTRY = 11, COLUMN = 139, ROW = 172, WINDOW_HEIGHT = 16 };

/* A factor that all rows share moves no cut; beyond this one it could only overflow. */
enum { MOST_COLUMNS = 1024 };

/* Windows of a slab are counted from the matrix's first row: `head` rows belong to a window that begins in an earlier
 * slab, then come n_windows that begin in this one. */
typedef struct windows {
  int64_t head, n_windows;
  int64_t *columns, *entries; /* [1 + n_windows], the head's window first; of all its rows, whatever their slab */
} windows;

static int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }

/* Windows as far as they lie in the slab. */
static asparse_status count_own(const asparse_csr *a, windows *w) {
  asparse_status status = ASPARSE_OK;
  const int64_t before = a->row_begin % WINDOW_HEIGHT; /* rows of the head's window in earlier slabs */
  w->head = before > 0 ? smaller(WINDOW_HEIGHT - before, a->n_rows) : 0;
  asparse_csr body = *a;
  body.n_rows = a->n_rows - w->head;
  body.row_ptr = a->row_ptr + w->head;
  w->n_windows = body.n_rows / WINDOW_HEIGHT + (body.n_rows % WINDOW_HEIGHT != 0);
  ALLOC_ZERO(w->columns, 1 + w->n_windows);
  ALLOC_ZERO(w->entries, 1 + w->n_windows);
  TRY(asparse_slab_units_count(&body, WINDOW_HEIGHT, 0, w->columns + 1));
  for (int64_t i = 0; i < w->n_windows; i++)
    w->entries[1 + i] = body.row_ptr[smaller((i + 1) * WINDOW_HEIGHT, body.n_rows)] - body.row_ptr[i * WINDOW_HEIGHT];
cleanup:
  return status;
}

/* Distinct columns of own[n_own] and others[n_others]. */
static asparse_status count_together(const int64_t *own, int64_t n_own, const int64_t *others, int64_t n_others,
                                     int64_t k, int64_t *distinct) {
  asparse_status status = ASPARSE_OK;
  uint64_t *keys = NULL, *scratch = NULL;
  ALLOC(keys, n_own + n_others);
  ALLOC(scratch, n_own + n_others);
  for (int64_t i = 0; i < n_own; i++) keys[i] = (uint64_t)own[i];
  for (int64_t i = 0; i < n_others; i++) keys[n_own + i] = (uint64_t)others[i];
  *distinct = asparse_sort_unique(keys, scratch, n_own + n_others, (uint64_t)k);
cleanup:
  asparse_free(keys);
  asparse_free(scratch);
  return status;
}

/* Collective. Heads send their columns to the rank where their window begins, which counts the window and answers. */
static asparse_status join_heads(asparse_comm *comm, const asparse_csr *a, windows *w) {
  asparse_status status = ASPARSE_OK;
  const int size = comm->size;
  int64_t *lists = asparse_calloc(5 * (int64_t)size + 1, sizeof *lists, "slab starts"), *heads = NULL, total = 0;
  int64_t(*counts)[2] = asparse_calloc(size, sizeof *counts, "columns and entries of windows"), own[2] = {0};
  TRY(asparse_comm_agree(comm, lists && counts ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  int64_t *send = lists, *receive = send + size, *displs = receive + size, *zeros = displs + size;
  int64_t *starts = zeros + size; /* [size + 1] */
  TRY_MPI(MPI_Allgather(&a->row_begin, 1, MPI_INT64_T, starts, 1, MPI_INT64_T, comm->mpi));
  starts[size] = a->m;
  const int begins_at = w->head > 0 ? asparse_owner(starts, size, a->row_begin / WINDOW_HEIGHT * WINDOW_HEIGHT) : -1;
  if (w->head > 0) send[begins_at] = 8 * (a->row_ptr[w->head] - a->row_ptr[0]);
  TRY(asparse_comm_alltoall_int64(comm, send, receive));
  for (int r = 0; r < size; total += receive[r++] / 8) displs[r] = 8 * total;
  heads = asparse_malloc(total, sizeof *heads, "columns of windows");
  TRY(asparse_comm_agree(comm, heads ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_comm_alltoallv(comm, a->col_idx, send, zeros, heads, receive, displs));
  if (total > 0) { /* of this slab's last window */
    const int64_t n = w->entries[w->n_windows], nnz = a->row_ptr[a->n_rows];
    status = count_together(a->col_idx + nnz - n, n, heads, total, a->k, &w->columns[w->n_windows]);
    w->entries[w->n_windows] += total;
  }
  TRY(asparse_comm_agree(comm, status));
  for (int r = 0; r < size; r++) {
    counts[r][0] = receive[r] > 0 ? w->columns[w->n_windows] : 0;
    counts[r][1] = receive[r] > 0 ? w->entries[w->n_windows] : 0;
    displs[r] = r * (int64_t)sizeof *counts;
    receive[r] = receive[r] > 0 ? (int64_t)sizeof *counts : 0;
    send[r] = send[r] > 0 ? (int64_t)sizeof own : 0;
  }
  TRY(asparse_comm_alltoallv(comm, counts, receive, displs, own, send, zeros));
  w->columns[0] = own[0];
  w->entries[0] = own[1];
cleanup:
  asparse_free(lists);
  asparse_free(heads);
  asparse_free(counts);
  return status;
}

asparse_status asparse_partition_row_cost(asparse_comm *comm, const asparse_csr *a, int64_t n, int64_t *cost) {
  asparse_status status = ASPARSE_OK;
  windows w = {0};
  const double n_counted = (double)(n < MOST_COLUMNS ? n : MOST_COLUMNS);
  TRY(asparse_comm_agree(comm, count_own(a, &w)));
  TRY(join_heads(comm, a, &w));
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < a->n_rows; i++) {
    const int64_t window = i < w.head ? 0 : 1 + (i - w.head) / WINDOW_HEIGHT;
    const double nnz = (double)(a->row_ptr[i + 1] - a->row_ptr[i]);
    const double share = nnz > 0 ? nnz / (double)w.entries[window] : 0;
    cost[i] = (int64_t)(n_counted * (ENTRY * nnz + COLUMN * (double)w.columns[window] * share + ROW));
  }
cleanup:
  asparse_free(w.columns);
  asparse_free(w.entries);
  return status;
}
