#include "programs/mirror.h"

/* Entries a rank sends in one round, shared evenly by the destinations: what a rank receives in a round is
 * bounded by it as well, however the columns are crowded. */
enum { ROUND_ENTRIES = 1 << 20 };

/* An entry at its transposed place. */
typedef struct transposed {
  int64_t row, col;
  double value;
} transposed;

typedef struct exchange {
  asparse_comm *comm;
  const asparse_csr *a;
  int64_t *col_starts;        /* [size + 1] columns by the rank that counts them */
  int64_t *order;             /* [own entries] entries by destination */
  int64_t *order_starts;      /* [size + 1] */
  int64_t *next, *row;        /* [size] cursor into order, and the row it has reached, of each destination */
  int64_t per_pair;           /* entries of one pair of ranks in a round */
  int64_t *bytes;             /* [2 · size] of a round: to send, to receive */
  int64_t *displs;            /* [size] the same on both sides */
  transposed *send, *receive; /* [size · per_pair] */
} exchange;

static asparse_status allocate(exchange *x) {
  asparse_status status = ASPARSE_OK;
  int64_t size = x->comm->size;
  x->per_pair = ROUND_ENTRIES / size > 0 ? ROUND_ENTRIES / size : 1;
  ALLOC(x->col_starts, size + 1);
  ALLOC(x->order, asparse_csr_nnz_local(x->a));
  ALLOC_ZERO(x->order_starts, size + 1);
  ALLOC(x->next, size);
  ALLOC_ZERO(x->row, size);
  ALLOC(x->bytes, 2 * size);
  ALLOC(x->displs, size);
  ALLOC(x->send, size * x->per_pair);
  ALLOC(x->receive, size * x->per_pair);
cleanup:
  return status;
}

static void release(exchange *x) {
  asparse_free(x->col_starts);
  asparse_free(x->order);
  asparse_free(x->order_starts);
  asparse_free(x->next);
  asparse_free(x->row);
  asparse_free(x->bytes);
  asparse_free(x->displs);
  asparse_free(x->send);
  asparse_free(x->receive);
}

/* Collective. Who counts which columns. */
static asparse_status share_columns(exchange *x) {
  asparse_status status = ASPARSE_OK;
  const asparse_csr *a = x->a;
  int size = x->comm->size;
  if (a->m == a->k) TRY_MPI(MPI_Allgather(&a->row_begin, 1, MPI_INT64_T, x->col_starts, 1, MPI_INT64_T, x->comm->mpi));
  else
    for (int r = 0; r < size; r++) x->col_starts[r] = asparse_even_start(a->k, size, r);
  x->col_starts[size] = a->k;
cleanup:
  return status;
}

/* Counting sort of the entries by destination. */
static void order_entries(exchange *x) {
  int size = x->comm->size;
  int64_t nnz = asparse_csr_nnz_local(x->a);
  for (int64_t e = 0; e < nnz; e++) x->order_starts[asparse_owner(x->col_starts, size, x->a->col_idx[e]) + 1]++;
  for (int r = 0; r < size; r++) x->order_starts[r + 1] += x->order_starts[r];
  for (int r = 0; r < size; r++) x->next[r] = x->order_starts[r];
  for (int64_t e = 0; e < nnz; e++) x->order[x->next[asparse_owner(x->col_starts, size, x->a->col_idx[e])]++] = e;
  for (int r = 0; r < size; r++) x->next[r] = x->order_starts[r];
}

/* Collective. Fills the send buffer with the next entries for every rank and exchanges; *done when nobody has
 * any left. */
static asparse_status exchange_round(exchange *x, bool *done) {
  const asparse_csr *a = x->a;
  int64_t left = 0;
  int size = x->comm->size;
  for (int r = 0; r < size; r++) {
    transposed *to = x->send + r * x->per_pair;
    int64_t end = x->order_starts[r + 1], count = 0;
    for (; x->next[r] < end && count < x->per_pair; count++) {
      int64_t e = x->order[x->next[r]++];
      while (a->row_ptr[x->row[r] + 1] <= e) x->row[r]++;
      to[count] = (transposed){a->col_idx[e], a->row_begin + x->row[r], asparse_load(a->dtype, a->values, e)};
    }
    left += end - x->next[r];
    x->bytes[r] = count * (int64_t)sizeof *to;
    x->displs[r] = r * x->per_pair * (int64_t)sizeof *to;
  }
  PASS(asparse_comm_alltoall_int64(x->comm, x->bytes, x->bytes + size));
  PASS(asparse_comm_alltoallv(x->comm, x->send, x->bytes, x->displs, x->receive, x->bytes + size, x->displs));
  PASS(asparse_comm_max(x->comm, &left, 1));
  *done = left == 0;
  return ASPARSE_OK;
}

/* The entry of the slab at global (row, col), -1 if none is stored. */
static int64_t find_entry(const asparse_csr *a, int64_t row, int64_t col) {
  int64_t low = a->row_ptr[row - a->row_begin], high = a->row_ptr[row - a->row_begin + 1], end = high;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (a->col_idx[middle] < col) low = middle + 1;
    else high = middle;
  }
  return low < end && a->col_idx[low] == col ? low : -1;
}

static void take(const exchange *x, const transposed *t, mirror *found) {
  found->column_counts[t->row - x->col_starts[x->comm->rank]]++;
  if (x->a->m != x->a->k || t->row == t->col) return;
  int64_t e = find_entry(x->a, t->row, t->col);
  if (e < 0) return;
  double value = asparse_load(x->a->dtype, x->a->values, e);
  found->mirrored++;
  found->equal += value == t->value;
  found->opposite += value == -t->value;
}

static void take_round(const exchange *x, mirror *found) {
  for (int r = 0; r < x->comm->size; r++) {
    int64_t count = x->bytes[x->comm->size + r] / (int64_t)sizeof(transposed);
    for (int64_t i = 0; i < count; i++) take(x, x->receive + r * x->per_pair + i, found);
  }
}

asparse_status mirror_measure(asparse_comm *comm, const asparse_csr *slab, mirror *found) {
  asparse_status status = ASPARSE_OK;
  exchange x = {.comm = comm, .a = slab};
  bool done = false;
  *found = (mirror){0};
  TRY(asparse_comm_agree(comm, allocate(&x)));
  TRY(share_columns(&x));
  order_entries(&x);
  found->n_columns = x.col_starts[comm->rank + 1] - x.col_starts[comm->rank];
  found->column_counts = asparse_calloc(found->n_columns, sizeof *found->column_counts, "column degrees");
  TRY(asparse_comm_agree(comm, found->column_counts ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  while (!done) {
    TRY(exchange_round(&x, &done));
    take_round(&x, found);
  }
  int64_t sums[] = {found->mirrored, found->equal, found->opposite};
  TRY(asparse_comm_sum(comm, sums, 3));
  found->mirrored = sums[0];
  found->equal = sums[1];
  found->opposite = sums[2];
cleanup:
  release(&x);
  return status;
}

void mirror_free(mirror *found) { FREE(found->column_counts); }
