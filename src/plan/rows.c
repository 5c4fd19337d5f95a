#include "plan/rows.h"

#include <string.h>

#include "base/dense.h"
#include "plan/columns.h"

/* Byte counts and displacements of one all-to-all, [4 · size] in one block. */
typedef struct transfer {
  int64_t *send_bytes, *send_displs, *receive_bytes, *receive_displs; /* [size] each */
} transfer;

static asparse_status transfer_create(transfer *t, int size) {
  asparse_status status = ASPARSE_OK;
  ALLOC_ZERO(t->send_bytes, 4 * (int64_t)size);
  t->send_displs = t->send_bytes + size;
  t->receive_bytes = t->send_displs + size;
  t->receive_displs = t->receive_bytes + size;
cleanup:
  return status;
}

static void transfer_destroy(transfer *t) { FREE(t->send_bytes); }

/* Fills the receiving half from the sending half of all ranks. Returns bytes to receive. */
static asparse_status transfer_agree(asparse_comm *comm, transfer *t, int64_t *bytes) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_comm_alltoall_int64(comm, t->send_bytes, t->receive_bytes));
  *bytes = 0;
  for (int r = 0; r < comm->size; r++) {
    t->receive_displs[r] = *bytes;
    *bytes += t->receive_bytes[r];
  }
cleanup:
  return status;
}

/* ---- CSR rows to the owners of parts --------------------------------------------------------- */

/* Rows of the slab by destination: count[r] rows from position first[r] of order, or, without an
 * order (rows not permuted), the slab's own rows from first[r]. */
typedef struct row_moves {
  int64_t *first, *count, *entries; /* [size]; entries: non-zeros of those rows */
  int64_t *order;                   /* [slab rows that move] or NULL */
} row_moves;

static void moves_destroy(row_moves *moves) {
  FREE(moves->first);
  FREE(moves->count);
  FREE(moves->entries);
  FREE(moves->order);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

static void moves_contiguous(const asparse_csr *slab, const asparse_partition *partition, const int *part_of_rank,
                             int size, row_moves *moves) {
  for (int r = 0; r < size; r++) {
    int part = part_of_rank[r];
    if (part < 0) continue;
    int64_t begin = clamp(partition->row_starts[part] - slab->row_begin, 0, slab->n_rows);
    int64_t end = clamp(partition->row_starts[part + 1] - slab->row_begin, 0, slab->n_rows);
    moves->first[r] = begin;
    moves->count[r] = end - begin;
    moves->entries[r] = slab->row_ptr[end] - slab->row_ptr[begin];
  }
}

/* Counting sort by part; stable, so that rows stay in ascending order for each. */
static asparse_status moves_permuted(const asparse_csr *slab, const asparse_partition *partition,
                                     const int *part_of_rank, int size, row_moves *moves) {
  asparse_status status = ASPARSE_OK;
  const int parts = partition->parts;
  int64_t *starts = NULL, *next = NULL, *entries = NULL;
  ALLOC_ZERO(starts, parts + (int64_t)1);
  ALLOC(next, parts);
  ALLOC_ZERO(entries, parts);
  ALLOC(moves->order, slab->n_rows);
  for (int64_t i = 0; i < slab->n_rows; i++) {
    const int part = asparse_owner(partition->row_starts, parts, partition->new_row[i]);
    starts[part + 1]++;
    entries[part] += slab->row_ptr[i + 1] - slab->row_ptr[i];
  }
  for (int part = 0; part < parts; part++) {
    next[part] = starts[part];
    starts[part + 1] += starts[part];
  }
  for (int64_t i = 0; i < slab->n_rows; i++)
    moves->order[next[asparse_owner(partition->row_starts, parts, partition->new_row[i])]++] = i;
  for (int r = 0; r < size; r++) {
    const int part = part_of_rank[r];
    if (part < 0) continue;
    moves->first[r] = starts[part];
    moves->count[r] = starts[part + 1] - starts[part];
    moves->entries[r] = entries[part];
  }
cleanup:
  asparse_free(starts);
  asparse_free(next);
  asparse_free(entries);
  return status;
}

static asparse_status moves_create(const asparse_csr *slab, const asparse_partition *partition, const int *part_of_rank,
                                   int size, row_moves *moves) {
  asparse_status status = ASPARSE_OK;
  ALLOC_ZERO(moves->first, size);
  ALLOC_ZERO(moves->count, size);
  ALLOC_ZERO(moves->entries, size);
  if (partition->new_row) TRY(moves_permuted(slab, partition, part_of_rank, size, moves));
  else moves_contiguous(slab, partition, part_of_rank, size, moves);
cleanup:
  return status;
}

/* Sends one int64 for each moving row: its length, or its original number. */
static asparse_status move_row_numbers(asparse_comm *comm, const asparse_csr *slab, const row_moves *moves,
                                       bool lengths, int64_t **received, int64_t *n_received) {
  asparse_status status = ASPARSE_OK;
  transfer t = {0};
  int64_t *numbers = NULL, total = 0, bytes = 0;
  for (int r = 0; r < comm->size; r++) total += moves->count[r];
  status = transfer_create(&t, comm->size);
  if (status == ASPARSE_OK && !(numbers = asparse_malloc(total, sizeof *numbers, "row numbers")))
    status = ASPARSE_ERR_MEMORY;
  TRY(asparse_comm_agree(comm, status));
  int64_t at = 0;
  for (int r = 0; r < comm->size; r++) {
    t.send_bytes[r] = moves->count[r] * 8;
    t.send_displs[r] = at * 8;
    for (int64_t j = 0; j < moves->count[r]; j++, at++) {
      int64_t i = moves->order ? moves->order[moves->first[r] + j] : moves->first[r] + j;
      numbers[at] = lengths ? slab->row_ptr[i + 1] - slab->row_ptr[i] : slab->row_begin + i;
    }
  }
  TRY(transfer_agree(comm, &t, &bytes));
  *n_received = bytes / 8;
  *received = asparse_malloc(*n_received, sizeof **received, "row numbers");
  TRY(asparse_comm_agree(comm, *received ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_comm_alltoallv(comm, numbers, t.send_bytes, t.send_displs, *received, t.receive_bytes, t.receive_displs));
cleanup:
  asparse_free(numbers);
  transfer_destroy(&t);
  return status;
}

static void pack_entries(const asparse_csr *slab, const row_moves *moves, int size, const char *data, size_t element,
                         char *packed) {
  for (int r = 0; r < size; r++) {
    for (int64_t j = 0; j < moves->count[r]; j++) {
      int64_t i = moves->order[moves->first[r] + j];
      size_t bytes = (size_t)(slab->row_ptr[i + 1] - slab->row_ptr[i]) * element;
      memcpy(packed, data + (size_t)slab->row_ptr[i] * element, bytes);
      packed += bytes;
    }
  }
}

/* Moves one array that runs along the entries of the slab. Rows in slab order need no packing. */
static asparse_status move_entries(asparse_comm *comm, const asparse_csr *slab, const row_moves *moves,
                                   const void *data, size_t element, void *received) {
  asparse_status status = ASPARSE_OK;
  transfer t = {0};
  char *packed = NULL;
  int64_t bytes = 0, total = 0;
  for (int r = 0; r < comm->size; r++) total += moves->entries[r];
  status = transfer_create(&t, comm->size);
  if (status == ASPARSE_OK && moves->order && !(packed = asparse_malloc(total, element, "packed rows")))
    status = ASPARSE_ERR_MEMORY;
  TRY(asparse_comm_agree(comm, status));
  total = 0;
  for (int r = 0; r < comm->size; r++) {
    t.send_bytes[r] = moves->entries[r] * (int64_t)element;
    t.send_displs[r] = (packed ? total : slab->row_ptr[moves->first[r]]) * (int64_t)element;
    total += moves->entries[r];
  }
  if (packed) pack_entries(slab, moves, comm->size, data, element, packed);
  TRY(transfer_agree(comm, &t, &bytes));
  TRY(asparse_comm_alltoallv(comm, packed ? packed : data, t.send_bytes, t.send_displs, received, t.receive_bytes,
                             t.receive_displs));
cleanup:
  asparse_free(packed);
  transfer_destroy(&t);
  return status;
}

/* Columns and values to their new owners; each of the slab's arrays goes as soon as it has been sent. */
static asparse_status move_csr(asparse_comm *comm, asparse_csr *slab, const row_moves *moves, bool consume,
                               asparse_csr *rows) {
  asparse_status status = ASPARSE_OK;
  size_t size = asparse_dtype_size(slab->dtype);
  int64_t nnz = asparse_csr_nnz_local(rows);
  rows->col_idx = asparse_malloc(nnz, sizeof *rows->col_idx, "columns");
  TRY(asparse_comm_agree(comm, rows->col_idx ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(move_entries(comm, slab, moves, slab->col_idx, sizeof *slab->col_idx, rows->col_idx));
  if (consume) FREE(slab->col_idx);
  rows->values = asparse_malloc(nnz, size, "values");
  TRY(asparse_comm_agree(comm, rows->values ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(move_entries(comm, slab, moves, slab->values, size, rows->values));
  if (consume) FREE(slab->values);
cleanup:
  return status;
}

static asparse_status rows_start(const asparse_csr *slab, const asparse_partition *partition, int part,
                                 const int64_t *lengths, int64_t n_rows, asparse_csr **out) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *rows = NULL;
  ALLOC_ZERO(rows, 1);
  *out = rows;
  *rows = (asparse_csr){.m = slab->m, .k = slab->k, .nnz = slab->nnz, .n_rows = n_rows, .dtype = slab->dtype};
  rows->row_begin = part < 0 ? 0 : partition->row_starts[part];
  ALLOC_ZERO(rows->row_ptr, n_rows + 1);
  for (int64_t i = 0; i < n_rows; i++) rows->row_ptr[i + 1] = rows->row_ptr[i] + lengths[i];
cleanup:
  return status;
}

asparse_status asparse_rows_gather(asparse_comm *comm, asparse_csr *slab, const asparse_partition *partition,
                                   const int *part_of_rank, bool consume, asparse_csr **out, int64_t **row_map) {
  asparse_status status = ASPARSE_OK;
  row_moves moves = {0};
  asparse_csr *rows = NULL;
  int64_t *lengths = NULL, *map = NULL, n_rows = 0, n_map = 0;
  *row_map = NULL;

  TRY(asparse_comm_agree(comm, moves_create(slab, partition, part_of_rank, comm->size, &moves)));
  TRY(move_row_numbers(comm, slab, &moves, true, &lengths, &n_rows));
  if (partition->new_row) TRY(move_row_numbers(comm, slab, &moves, false, &map, &n_map));
  TRY(asparse_comm_agree(comm, rows_start(slab, partition, part_of_rank[comm->rank], lengths, n_rows, &rows)));
  if (comm->size == 1 && consume && !moves.order) { /* nothing moves: hand the arrays on */
    rows->col_idx = slab->col_idx;
    rows->values = slab->values;
    slab->col_idx = NULL;
    slab->values = NULL;
  } else {
    TRY(move_csr(comm, slab, &moves, consume, rows));
  }
  *out = rows;
  *row_map = map;
  rows = NULL;
  map = NULL;
cleanup:
  asparse_csr_destroy(&rows);
  asparse_free(map);
  asparse_free(lengths);
  moves_destroy(&moves);
  return status;
}

/* ---- new numbers of columns ------------------------------------------------------------------ */

/* [size + 1]: first row of every rank's slab. Collective. */
static asparse_status slab_starts(asparse_comm *comm, const asparse_csr *slab, int64_t *starts) {
  asparse_status status = ASPARSE_OK;
  TRY_MPI(MPI_Allgather(&slab->row_begin, 1, MPI_INT64_T, starts, 1, MPI_INT64_T, comm->mpi));
  starts[comm->size] = slab->m;
cleanup:
  return status;
}

asparse_status asparse_rows_new_numbers(asparse_comm *comm, const asparse_csr *slab, const asparse_partition *partition,
                                        const int64_t *wanted, int64_t n, int64_t *new_numbers) {
  asparse_status status = ASPARSE_OK;
  transfer ask = {0};
  int64_t *starts = NULL, *asked = NULL, bytes = 0;
  if ((status = transfer_create(&ask, comm->size)) == ASPARSE_OK &&
      !(starts = asparse_malloc(comm->size + (int64_t)1, sizeof *starts, "slab starts")))
    status = ASPARSE_ERR_MEMORY;
  TRY(asparse_comm_agree(comm, status));
  TRY(slab_starts(comm, slab, starts));
  for (int64_t i = 0; i < n; i++) ask.send_bytes[asparse_owner(starts, comm->size, wanted[i])] += 8;
  for (int r = 1; r < comm->size; r++) ask.send_displs[r] = ask.send_displs[r - 1] + ask.send_bytes[r - 1];
  TRY(transfer_agree(comm, &ask, &bytes));
  asked = asparse_malloc(bytes / 8, sizeof *asked, "asked rows");
  TRY(asparse_comm_agree(comm, asked ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_comm_alltoallv(comm, wanted, ask.send_bytes, ask.send_displs, asked, ask.receive_bytes,
                             ask.receive_displs));
  for (int64_t i = 0; i < bytes / 8; i++) asked[i] = partition->new_row[asked[i] - slab->row_begin];
  TRY(asparse_comm_alltoallv(comm, asked, ask.receive_bytes, ask.receive_displs, new_numbers, ask.send_bytes,
                             ask.send_displs));
cleanup:
  asparse_free(asked);
  asparse_free(starts);
  transfer_destroy(&ask);
  return status;
}

asparse_status asparse_rows_renumber(asparse_comm *comm, const asparse_csr *slab, const asparse_partition *partition,
                                     const int64_t *col_idx, int64_t count, int64_t *new_col_idx) {
  asparse_status status = ASPARSE_OK;
  asparse_columns used = {0};
  int64_t *new_numbers = NULL;
  status = asparse_columns_create(&used, slab->k, col_idx, count, 0, 0);
  if (status == ASPARSE_OK && !(new_numbers = asparse_malloc(used.n, sizeof *new_numbers, "new columns")))
    status = ASPARSE_ERR_MEMORY;
  TRY(asparse_comm_agree(comm, status));
  TRY(asparse_rows_new_numbers(comm, slab, partition, used.sorted, used.n, new_numbers));
#pragma omp parallel for schedule(static)
  for (int64_t e = 0; e < count; e++) new_col_idx[e] = new_numbers[asparse_columns_position(&used, col_idx[e])];
cleanup:
  asparse_columns_destroy(&used);
  asparse_free(new_numbers);
  return status;
}

/* ---- dense rows between a permuted distribution and even slabs -------------------------------- */

static void copy_rows(bool to_even, const asparse_dense *from, asparse_dense *to, const int64_t *position,
                      int64_t n_rows) {
  size_t size = asparse_dtype_size(from->dtype), bytes = (size_t)from->n * size;
  for (int64_t i = 0; i < n_rows; i++) {
    int64_t source = to_even ? i : position[i], target = to_even ? position[i] : i;
    memcpy((char *)to->values + (size_t)(target * to->ld) * size,
           (const char *)from->values + (size_t)(source * from->ld) * size, bytes);
  }
}

/* Which of this rank's mapped rows lie in the even slab of which rank, and which even rows of this rank
 * other ranks hold (their original numbers, in arrival order). Collective. */
static asparse_status match_even(asparse_comm *comm, const int64_t *row_map, int64_t n_rows, int64_t m_global,
                                 transfer *t, int64_t **theirs, int64_t *n_theirs) {
  asparse_status status = ASPARSE_OK;
  int64_t *starts = NULL, bytes = 0;
  if ((status = transfer_create(t, comm->size)) == ASPARSE_OK &&
      !(starts = asparse_malloc(comm->size + (int64_t)1, sizeof *starts, "even starts")))
    status = ASPARSE_ERR_MEMORY;
  TRY(asparse_comm_agree(comm, status));
  for (int r = 0; r <= comm->size; r++) starts[r] = asparse_even_start(m_global, comm->size, r);
  for (int64_t i = 0; i < n_rows; i++) t->send_bytes[asparse_owner(starts, comm->size, row_map[i])] += 8;
  for (int r = 1; r < comm->size; r++) t->send_displs[r] = t->send_displs[r - 1] + t->send_bytes[r - 1];
  TRY(transfer_agree(comm, t, &bytes));
  *n_theirs = bytes / 8;
  *theirs = asparse_malloc(*n_theirs, sizeof **theirs, "even rows");
  TRY(asparse_comm_agree(comm, *theirs ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_comm_alltoallv(comm, row_map, t->send_bytes, t->send_displs, *theirs, t->receive_bytes,
                             t->receive_displs));
  for (int64_t i = 0; i < *n_theirs; i++) (*theirs)[i] -= starts[comm->rank];
cleanup:
  asparse_free(starts);
  return status;
}

/* From row numbers (8 bytes each) to rows of row_bytes. */
static void transfer_scale(transfer *t, int size, int64_t row_bytes) {
  for (int i = 0; i < 4 * size; i++) t->send_bytes[i] = t->send_bytes[i] / 8 * row_bytes;
}

asparse_status asparse_rows_to_even(asparse_comm *comm, const asparse_dense *from, const int64_t *row_map,
                                    int64_t m_global, asparse_dense **out) {
  asparse_status status = ASPARSE_OK;
  transfer t = {0};
  int64_t *theirs = NULL, n_theirs = 0;
  asparse_dense *arrived = NULL, *to = NULL;
  TRY_THAT(from->ld == from->n, ASPARSE_ERR_RUNTIME, "rows to move must be stored without gaps");
  TRY(match_even(comm, row_map, from->m, m_global, &t, &theirs, &n_theirs));
  int64_t mine =
      asparse_even_start(m_global, comm->size, comm->rank + 1) - asparse_even_start(m_global, comm->size, comm->rank);
  status = asparse_dense_create(&arrived, n_theirs, from->n, from->dtype);
  if (status == ASPARSE_OK) status = asparse_dense_create(&to, mine, from->n, from->dtype);
  TRY(asparse_comm_agree(comm, status));
  transfer_scale(&t, comm->size, from->n * (int64_t)asparse_dtype_size(from->dtype));
  TRY(asparse_comm_alltoallv(comm, from->values, t.send_bytes, t.send_displs, arrived->values, t.receive_bytes,
                             t.receive_displs));
  copy_rows(true, arrived, to, theirs, n_theirs);
  *out = to;
  to = NULL;
cleanup:
  asparse_dense_destroy(&arrived);
  asparse_dense_destroy(&to);
  asparse_free(theirs);
  transfer_destroy(&t);
  return status;
}

asparse_status asparse_rows_from_even(asparse_comm *comm, const asparse_dense *even, const int64_t *row_map,
                                      int64_t m_global, asparse_dense *to) {
  asparse_status status = ASPARSE_OK;
  transfer t = {0};
  int64_t *theirs = NULL, n_theirs = 0;
  asparse_dense *leaving = NULL;
  TRY_THAT(to->ld == to->n, ASPARSE_ERR_RUNTIME, "rows to move must be stored without gaps");
  TRY(match_even(comm, row_map, to->m, m_global, &t, &theirs, &n_theirs));
  TRY(asparse_comm_agree(comm, asparse_dense_create(&leaving, n_theirs, even->n, even->dtype)));
  copy_rows(false, even, leaving, theirs, n_theirs);
  transfer_scale(&t, comm->size, even->n * (int64_t)asparse_dtype_size(even->dtype));
  TRY(asparse_comm_alltoallv(comm, leaving->values, t.receive_bytes, t.receive_displs, to->values, t.send_bytes,
                             t.send_displs));
cleanup:
  asparse_dense_destroy(&leaving);
  asparse_free(theirs);
  transfer_destroy(&t);
  return status;
}
