#include "io/structure.h"

#include <string.h>

#include "io/budget.h"

static const char *const names[] = {
    "general",         "symmetric_lower", "symmetric_upper", "skew_symmetric_lower", "skew_symmetric_upper",
    "hermitian_lower", "hermitian_upper"};

const char *asparse_structure_name(asparse_structure structure) { return names[structure]; }

bool asparse_structure_parse(const char *name, asparse_structure *structure) {
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
    if (strcmp(name, names[i]) != 0) continue;
    *structure = (asparse_structure)i;
    return true;
  }
  return false;
}

static bool is_lower(asparse_structure structure) {
  return structure == ASPARSE_SYMMETRIC_LOWER || structure == ASPARSE_SKEW_SYMMETRIC_LOWER ||
         structure == ASPARSE_HERMITIAN_LOWER;
}

static bool is_skew(asparse_structure structure) {
  return structure == ASPARSE_SKEW_SYMMETRIC_LOWER || structure == ASPARSE_SKEW_SYMMETRIC_UPPER;
}

static asparse_status check_triangle(asparse_structure structure, const asparse_csr *a) {
  if (a->m != a->k)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "the matrix is said to be %s, but is %lld × %lld", names[structure],
                        (long long)a->m, (long long)a->k);
  bool lower = is_lower(structure);
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t row = a->row_begin + i;
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      if (lower ? a->col_idx[e] <= row : a->col_idx[e] >= row) continue;
      return ASPARSE_FAIL(
          ASPARSE_ERR_DATA,
          "the matrix is said to be %s, but entry (%lld, %lld), counted from 0, is in the other triangle",
          names[structure], (long long)row, (long long)a->col_idx[e]);
    }
  }
  return ASPARSE_OK;
}

typedef struct mirrored {
  int64_t row, col;
  double value;
} mirrored;

/* Mirrored entries on their way to the owners of their rows. */
typedef struct exchange {
  int64_t *starts;                                                    /* [size + 1] first row of each rank */
  int64_t *send_bytes, *send_displs, *receive_bytes, *receive_displs; /* [size] */
  mirrored *send, *receive;
  int64_t n_receive;
} exchange;

static void exchange_free(exchange *x) {
  asparse_free(x->starts);
  asparse_free(x->send_bytes);
  asparse_free(x->send_displs);
  asparse_free(x->receive_bytes);
  asparse_free(x->receive_displs);
  asparse_free(x->send);
  asparse_free(x->receive);
}

static asparse_status exchange_create(const asparse_comm *comm, exchange *x) {
  asparse_status status = ASPARSE_OK;
  ALLOC_ZERO(x->starts, comm->size + 1);
  ALLOC_ZERO(x->send_bytes, comm->size);
  ALLOC_ZERO(x->send_displs, comm->size);
  ALLOC_ZERO(x->receive_bytes, comm->size);
  ALLOC_ZERO(x->receive_displs, comm->size);
cleanup:
  return status;
}

/* Entries are packed in row order, so each destination gets its entries with ascending columns. */
static asparse_status pack(const asparse_comm *comm, bool skew, const asparse_csr *a, exchange *x) {
  asparse_status status = ASPARSE_OK;
  int64_t *position = NULL, n_send = 0;
  ALLOC_ZERO(position, comm->size);
  for (int64_t i = 0; i < a->n_rows; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      if (a->col_idx[e] != a->row_begin + i) position[asparse_owner(x->starts, comm->size, a->col_idx[e])]++;
    }
  }
  for (int r = 0; r < comm->size; r++) {
    x->send_displs[r] = n_send * (int64_t)sizeof(mirrored);
    x->send_bytes[r] = position[r] * (int64_t)sizeof(mirrored);
    int64_t count = position[r];
    position[r] = n_send;
    n_send += count;
  }
  TRY(asparse_budget_check(comm, n_send, sizeof(mirrored), "expanding the symmetric matrix"));
  ALLOC(x->send, n_send);
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t row = a->row_begin + i;
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      int64_t col = a->col_idx[e];
      if (col == row) continue;
      double value = asparse_load(a->dtype, a->values, e);
      x->send[position[asparse_owner(x->starts, comm->size, col)]++] = (mirrored){col, row, skew ? -value : value};
    }
  }
cleanup:
  asparse_free(position);
  return status;
}

static asparse_status prepare_receive(const asparse_comm *comm, exchange *x) {
  asparse_status status = ASPARSE_OK;
  int64_t bytes = 0;
  for (int r = 0; r < comm->size; r++) {
    x->receive_displs[r] = bytes;
    bytes += x->receive_bytes[r];
  }
  x->n_receive = bytes / (int64_t)sizeof(mirrored);
  TRY(asparse_budget_check(comm, x->n_receive, 2 * sizeof(mirrored), "expanding the symmetric matrix"));
  ALLOC(x->receive, x->n_receive);
cleanup:
  return status;
}

static void copy_row(const asparse_csr *from, int64_t row, asparse_csr *to, int64_t target) {
  int64_t begin = from->row_ptr[row], count = from->row_ptr[row + 1] - begin;
  size_t size = asparse_dtype_size(from->dtype);
  memcpy(to->col_idx + target, from->col_idx + begin, (size_t)count * sizeof *to->col_idx);
  memcpy((char *)to->values + (size_t)target * size, (const char *)from->values + (size_t)begin * size,
         (size_t)count * size);
}

/* Own entries and received ones together; the received columns of a row lie beyond its own ones
 * (lower triangle) or before them (upper). */
static asparse_status merge(bool lower, const exchange *x, asparse_csr **a) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *old = *a, *whole = NULL;
  int64_t *next = NULL; /* where the next received entry of each row goes */
  TRY(asparse_csr_create(&whole, old->m, old->k, old->row_begin, old->n_rows, asparse_csr_nnz_local(old) + x->n_receive,
                         old->dtype));
  ALLOC(next, old->n_rows);
  for (int64_t i = 0; i < x->n_receive; i++) whole->row_ptr[x->receive[i].row - old->row_begin + 1]++;
  for (int64_t i = 0; i < old->n_rows; i++) {
    int64_t own = old->row_ptr[i + 1] - old->row_ptr[i], received = whole->row_ptr[i + 1];
    int64_t begin = whole->row_ptr[i];
    copy_row(old, i, whole, lower ? begin : begin + received);
    next[i] = lower ? begin + own : begin;
    whole->row_ptr[i + 1] = begin + own + received;
  }
  for (int64_t i = 0; i < x->n_receive; i++) {
    int64_t position = next[x->receive[i].row - old->row_begin]++;
    whole->col_idx[position] = x->receive[i].col;
    asparse_store(whole->dtype, whole->values, position, x->receive[i].value);
  }
  whole->n_inexact = old->n_inexact;
  asparse_csr_destroy(a);
  *a = whole;
  whole = NULL;
cleanup:
  asparse_free(next);
  asparse_csr_destroy(&whole);
  return status;
}

asparse_status asparse_structure_expand(asparse_comm *comm, asparse_structure structure, asparse_csr **a) {
  asparse_status status = ASPARSE_OK;
  exchange x = {0};
  if (structure == ASPARSE_GENERAL) return ASPARSE_OK;
  status = check_triangle(structure, *a);
  if (status == ASPARSE_OK) status = exchange_create(comm, &x);
  TRY(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Allgather(&(*a)->row_begin, 1, MPI_INT64_T, x.starts, 1, MPI_INT64_T, comm->mpi));
  x.starts[comm->size] = (*a)->m;
  TRY(asparse_comm_agree(comm, pack(comm, is_skew(structure), *a, &x)));
  TRY(asparse_comm_alltoall_int64(comm, x.send_bytes, x.receive_bytes));
  TRY(asparse_comm_agree(comm, prepare_receive(comm, &x)));
  TRY(asparse_comm_alltoallv(comm, x.send, x.send_bytes, x.send_displs, x.receive, x.receive_bytes, x.receive_displs));
  TRY(asparse_comm_agree(comm, merge(is_lower(structure), &x, a)));
cleanup:
  exchange_free(&x);
  return status;
}
