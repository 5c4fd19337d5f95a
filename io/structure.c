#include "io/structure.h"

#include <string.h>

#include "io/budget.h"
#include "io/entries.h"

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

asparse_structure asparse_structure_transposed(asparse_structure structure) {
  static const asparse_structure other[] = {ASPARSE_GENERAL,
                                            ASPARSE_SYMMETRIC_UPPER,
                                            ASPARSE_SYMMETRIC_LOWER,
                                            ASPARSE_SKEW_SYMMETRIC_UPPER,
                                            ASPARSE_SKEW_SYMMETRIC_LOWER,
                                            ASPARSE_HERMITIAN_UPPER,
                                            ASPARSE_HERMITIAN_LOWER};
  return other[structure];
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

/* The mirror image of every entry off the diagonal, sorted by row; where rows were sorted, with ascending columns. */
static asparse_status mirror(const asparse_comm *comm, bool skew, const asparse_csr *a, asparse_entries *mirrored) {
  asparse_status status = ASPARSE_OK;
  int64_t count = 0;
  for (int64_t i = 0; i < a->n_rows; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) count += a->col_idx[e] != a->row_begin + i;
  }
  TRY(asparse_entries_create(comm, count, "expanding the symmetric matrix", mirrored));
  count = 0;
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t row = a->row_begin + i;
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      if (a->col_idx[e] == row) continue;
      double value = asparse_load(a->dtype, a->values, e);
      mirrored->list[count++] = (asparse_entry){a->col_idx[e], row, skew ? -value : value};
    }
  }
  TRY(asparse_entries_sort_by_row(comm, a->m, mirrored));
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
static asparse_status merge(const asparse_comm *comm, bool lower, const asparse_entries *mirrored, asparse_csr **a) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *old = *a, *whole = NULL;
  int64_t *next = NULL; /* where the next received entry of each row goes */
  int64_t nnz = asparse_csr_nnz_local(old) + mirrored->count;
  TRY(asparse_budget_check(comm, nnz, 8 + (int64_t)asparse_dtype_size(old->dtype), "expanding the symmetric matrix"));
  TRY(asparse_csr_create(&whole, old->m, old->k, old->row_begin, old->n_rows, nnz, old->dtype));
  ALLOC(next, old->n_rows);
  for (int64_t i = 0; i < mirrored->count; i++) whole->row_ptr[mirrored->list[i].row - old->row_begin + 1]++;
  for (int64_t i = 0; i < old->n_rows; i++) {
    int64_t own = old->row_ptr[i + 1] - old->row_ptr[i], received = whole->row_ptr[i + 1];
    int64_t begin = whole->row_ptr[i];
    copy_row(old, i, whole, lower ? begin : begin + received);
    next[i] = lower ? begin + own : begin;
    whole->row_ptr[i + 1] = begin + own + received;
  }
  for (int64_t i = 0; i < mirrored->count; i++) {
    int64_t position = next[mirrored->list[i].row - old->row_begin]++;
    whole->col_idx[position] = mirrored->list[i].col;
    asparse_store(whole->dtype, whole->values, position, mirrored->list[i].value);
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
  asparse_entries mirrored = {0};
  int64_t *starts = NULL; /* [size + 1] first row of each rank */
  if (structure == ASPARSE_GENERAL) return ASPARSE_OK;
  status = check_triangle(structure, *a);
  if (status == ASPARSE_OK) status = mirror(comm, is_skew(structure), *a, &mirrored);
  if (status == ASPARSE_OK) {
    starts = asparse_malloc((int64_t)comm->size + 1, sizeof *starts, "starts");
    if (!starts) status = ASPARSE_ERR_MEMORY;
  }
  TRY(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Allgather(&(*a)->row_begin, 1, MPI_INT64_T, starts, 1, MPI_INT64_T, comm->mpi));
  starts[comm->size] = (*a)->m;
  TRY(asparse_entries_exchange(comm, starts, &mirrored));
  TRY(asparse_comm_agree(comm, merge(comm, is_lower(structure), &mirrored, a)));
cleanup:
  asparse_free(starts);
  asparse_entries_free(&mirrored);
  return status;
}
