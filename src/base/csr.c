#include "base/csr.h"

#include <omp.h>
#include <stdlib.h>

asparse_status asparse_csr_create(asparse_csr **out, int64_t m, int64_t k, int64_t row_begin, int64_t n_rows,
                                  int64_t nnz_local, asparse_dtype dtype) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *a = NULL;
  ALLOC_ZERO(a, 1);
  a->m = m;
  a->k = k;
  a->row_begin = row_begin;
  a->n_rows = n_rows;
  a->dtype = dtype;
  ALLOC_ZERO(a->row_ptr, n_rows + 1);
  ALLOC(a->col_idx, nnz_local);
  ALLOC_BYTES(a->values, nnz_local, asparse_dtype_size(dtype));
  *out = a;
  return ASPARSE_OK;
cleanup:
  asparse_csr_destroy(&a);
  return status;
}

void asparse_csr_destroy(asparse_csr **a) {
  if (!a || !*a) return;
  asparse_free((*a)->row_ptr);
  asparse_free((*a)->col_idx);
  asparse_free((*a)->values);
  FREE(*a);
}

int64_t asparse_csr_nnz_local(const asparse_csr *a) { return a->row_ptr[a->n_rows]; }

static bool row_is_sorted(const int64_t *col_idx, int64_t begin, int64_t end) {
  for (int64_t e = begin + 1; e < end; e++) {
    if (col_idx[e - 1] >= col_idx[e]) return false;
  }
  return true;
}

/* Places where columns do not ascend: all of entries (begin, end), less those where a row of [first, last) begins. */
static int64_t count_unsorted(const asparse_csr *a, int64_t first, int64_t last) {
  const int64_t *col_idx = a->col_idx, begin = a->row_ptr[first], end = a->row_ptr[last];
  int64_t n = 0;
#pragma omp simd reduction(+ : n)
  for (int64_t e = begin + 1; e < end; e++) n += (int64_t)((uint64_t)(col_idx[e] - col_idx[e - 1] - 1) >> 63);
  for (int64_t i = first; i < last; i++) {
    int64_t e = a->row_ptr[i];
    n -= e > begin && e < a->row_ptr[i + 1] && col_idx[e - 1] >= col_idx[e];
  }
  return n;
}

/* Rows are looked at in blocks, which stay in cache for the second look. */
static bool all_rows_are_sorted(const asparse_csr *a) {
  enum { BLOCK = 256 };
  int64_t unsorted = 0;
#pragma omp parallel for schedule(static) reduction(+ : unsorted)
  for (int64_t i = 0; i < a->n_rows; i += BLOCK)
    unsorted += count_unsorted(a, i, i + BLOCK < a->n_rows ? i + BLOCK : a->n_rows);
  return unsorted == 0;
}

typedef struct entry {
  int64_t col, position; /* position keeps the order of duplicates, so that sums are reproducible */
} entry;

static int compare_entries(const void *left, const void *right) {
  const entry *a = left, *b = right;
  if (a->col != b->col) return a->col < b->col ? -1 : 1;
  return a->position < b->position ? -1 : a->position > b->position;
}

/* Sorts and sums entries [begin, end) in place; returns how many remain. order and sums: [end - begin]. */
static int64_t sort_row(asparse_csr *a, int64_t begin, int64_t end, entry *order, double *sums) {
  int64_t n = end - begin;
  for (int64_t i = 0; i < n; i++) order[i] = (entry){a->col_idx[begin + i], i};
  qsort(order, (size_t)n, sizeof *order, compare_entries);
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++) {
    double value = asparse_load(a->dtype, a->values, begin + order[i].position);
    if (i > 0 && order[i].col == order[kept - 1].col) {
      sums[kept - 1] += value;
    } else {
      order[kept].col = order[i].col;
      sums[kept++] = value;
    }
  }
  for (int64_t i = 0; i < kept; i++) {
    a->col_idx[begin + i] = order[i].col;
    asparse_store(a->dtype, a->values, begin + i, sums[i]);
  }
  return kept;
}

/* Closes the gaps that summing left; kept [n_rows] entries remain of each row. */
static void close_gaps(asparse_csr *a, const int64_t *kept) {
  size_t size = asparse_dtype_size(a->dtype);
  int64_t target = 0, begin = 0;
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t end = a->row_ptr[i + 1];
    if (begin != target) {
      memmove(a->col_idx + target, a->col_idx + begin, (size_t)kept[i] * sizeof *a->col_idx);
      memmove((char *)a->values + (size_t)target * size, (char *)a->values + (size_t)begin * size,
              (size_t)kept[i] * size);
    }
    a->n_duplicates += end - begin - kept[i];
    target += kept[i];
    begin = end;
    a->row_ptr[i + 1] = target;
  }
}

asparse_status asparse_csr_sort_rows(asparse_csr *a) {
  asparse_status status = ASPARSE_OK;
  entry *order = NULL;
  double *sums = NULL;
  int64_t *kept = NULL, longest = 0;
  if (all_rows_are_sorted(a)) return ASPARSE_OK;
#pragma omp parallel for schedule(static) reduction(max : longest)
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t length = a->row_ptr[i + 1] - a->row_ptr[i];
    if (length > longest && !row_is_sorted(a->col_idx, a->row_ptr[i], a->row_ptr[i + 1])) longest = length;
  }

  int threads = omp_get_max_threads();
  ALLOC(order, threads * longest);
  ALLOC(sums, threads * longest);
  ALLOC(kept, a->n_rows);
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t begin = a->row_ptr[i], end = a->row_ptr[i + 1], scratch = omp_get_thread_num() * longest;
    kept[i] =
        row_is_sorted(a->col_idx, begin, end) ? end - begin : sort_row(a, begin, end, order + scratch, sums + scratch);
  }
  close_gaps(a, kept);
cleanup:
  asparse_free(order);
  asparse_free(sums);
  asparse_free(kept);
  return status;
}

asparse_status asparse_csr_convert(asparse_csr *a, asparse_dtype dtype) {
  asparse_status status = ASPARSE_OK;
  void *converted = NULL;
  if (a->dtype == dtype) return ASPARSE_OK;
  int64_t nnz = asparse_csr_nnz_local(a);
  ALLOC_BYTES(converted, nnz, asparse_dtype_size(dtype));
  asparse_convert_values(dtype, converted, a->dtype, a->values, nnz);
  asparse_free(a->values);
  a->values = converted;
  a->dtype = dtype;
cleanup:
  return status;
}

asparse_status asparse_local_csr_create(asparse_local_csr **out, int32_t m, int32_t k, int64_t nnz,
                                        asparse_dtype dtype) {
  asparse_status status = ASPARSE_OK;
  asparse_local_csr *a = NULL;
  ALLOC_ZERO(a, 1);
  a->m = m;
  a->k = k;
  a->dtype = dtype;
  ALLOC_ZERO(a->row_ptr, (int64_t)m + 1);
  ALLOC(a->col_idx, nnz);
  ALLOC_BYTES(a->values, nnz, asparse_dtype_size(dtype));
  *out = a;
  return ASPARSE_OK;
cleanup:
  asparse_local_csr_destroy(&a);
  return status;
}

void asparse_local_csr_destroy(asparse_local_csr **a) {
  if (!a || !*a) return;
  asparse_free((*a)->row_ptr);
  asparse_free((*a)->col_idx);
  asparse_free((*a)->values);
  FREE(*a);
}

asparse_status asparse_local_csr_reserve_columns(asparse_local_csr *a) {
  asparse_status status = ASPARSE_OK;
  FREE(a->col_idx);
  ALLOC(a->col_idx, a->row_ptr[a->m]);
cleanup:
  return status;
}

asparse_status asparse_local_csr_reserve_values(asparse_local_csr *a) {
  asparse_status status = ASPARSE_OK;
  FREE(a->values);
  ALLOC_BYTES(a->values, a->row_ptr[a->m], asparse_dtype_size(a->dtype));
cleanup:
  return status;
}

int64_t asparse_local_csr_bytes(const asparse_local_csr *a) {
  int64_t nnz = a->row_ptr[a->m];
  return ((int64_t)a->m + 1) * 8 + nnz * (4 + (int64_t)asparse_dtype_size(a->dtype));
}

asparse_status asparse_int32_from(int64_t global, const char *what, int32_t *local) {
  if (global < 0 || global > INT32_MAX)
    return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "%s is %lld on one rank, at most %d fit; use more ranks", what,
                        (long long)global, INT32_MAX);
  *local = (int32_t)global;
  return ASPARSE_OK;
}
