#include "plan/columns.h"

#include <stdlib.h>

/* A bit per column and its count (2 bits in all) cost less than the entries themselves up to here. */
enum { COLUMNS_PER_ENTRY = 48 };

static asparse_status create_bits(asparse_columns *set, int64_t k, const int64_t *col_idx, int64_t count,
                                  int64_t skip_begin, int64_t skip_end) {
  asparse_status status = ASPARSE_OK;
  int64_t words = k / 64 + (k % 64 != 0);
  ALLOC_ZERO(set->bits, words);
  ALLOC(set->bits_before, words);
  for (int64_t e = 0; e < count; e++) {
    int64_t col = col_idx[e];
    if (col < skip_begin || col >= skip_end) set->bits[col / 64] |= UINT64_C(1) << col % 64;
  }
  for (int64_t w = 0; w < words; w++) {
    set->bits_before[w] = set->n;
    set->n += __builtin_popcountll(set->bits[w]);
  }
  ALLOC(set->sorted, set->n);
  int64_t at = 0;
  for (int64_t w = 0; w < words; w++) {
    for (uint64_t bits = set->bits[w]; bits; bits &= bits - 1) set->sorted[at++] = 64 * w + __builtin_ctzll(bits);
  }
cleanup:
  return status;
}

static int compare_columns(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return a < b ? -1 : a > b;
}

static asparse_status create_sorted(asparse_columns *set, const int64_t *col_idx, int64_t count, int64_t skip_begin,
                                    int64_t skip_end) {
  asparse_status status = ASPARSE_OK;
  ALLOC(set->sorted, count);
  for (int64_t e = 0; e < count; e++) {
    if (col_idx[e] < skip_begin || col_idx[e] >= skip_end) set->sorted[set->n++] = col_idx[e];
  }
  qsort(set->sorted, (size_t)set->n, sizeof *set->sorted, compare_columns);
  int64_t kept = 0;
  for (int64_t i = 0; i < set->n; i++) {
    if (i == 0 || set->sorted[i] != set->sorted[i - 1]) set->sorted[kept++] = set->sorted[i];
  }
  set->n = kept;
cleanup:
  return status;
}

asparse_status asparse_columns_create(asparse_columns *set, int64_t k, const int64_t *col_idx, int64_t count,
                                      int64_t skip_begin, int64_t skip_end) {
  *set = (asparse_columns){0};
  bool dense_enough = k / COLUMNS_PER_ENTRY <= count;
  asparse_status status = dense_enough ? create_bits(set, k, col_idx, count, skip_begin, skip_end)
                                       : create_sorted(set, col_idx, count, skip_begin, skip_end);
  if (status != ASPARSE_OK) asparse_columns_destroy(set);
  return status;
}

void asparse_columns_destroy(asparse_columns *set) {
  FREE(set->sorted);
  FREE(set->bits);
  FREE(set->bits_before);
  set->n = 0;
}

int64_t asparse_columns_position(const asparse_columns *set, int64_t col) {
  if (set->bits) {
    uint64_t below = set->bits[col / 64] & ((UINT64_C(1) << col % 64) - 1);
    return set->bits_before[col / 64] + __builtin_popcountll(below);
  }
  int64_t low = 0, high = set->n; /* sorted[low] ≤ col < sorted[high] */
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (set->sorted[middle] <= col) low = middle;
    else high = middle;
  }
  return low;
}
