#include <omp.h>

#include "partition/partition.h"
#include "partition/row_units.h"

static asparse_status check_height(int32_t h) {
  if (h == 8 || h == 16 || h == 32 || h == 64) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "WCSR window height %d: use 8, 16, 32 or 64", h);
}

static int64_t padded(int64_t columns) {
  return (columns + ASPARSE_TILE_COLUMNS - 1) / ASPARSE_TILE_COLUMNS * ASPARSE_TILE_COLUMNS;
}

/* One window's tiles and masks from its rows; inlined with a constant value size. */
static inline __attribute__((always_inline)) void fill_tiles(const asparse_local_csr *a, asparse_wcsr *out, int32_t w,
                                                             const asparse_column_set *set, size_t size) {
  int32_t h = out->window_height, begin = w * h, end = asparse_unit_end(w, h, a->m);
  int64_t first = out->window_row_ptr[w];
  char *tiles = (char *)out->values + (size_t)(first * h) * size;
  for (int32_t i = begin; i < end; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      int64_t c = asparse_column_set_position(set, a->col_idx[e]), in_tile = c % ASPARSE_TILE_COLUMNS;
      int64_t at = (c - in_tile) * h + (i - begin) * ASPARSE_TILE_COLUMNS + in_tile;
      memcpy(tiles + (size_t)at * size, (const char *)a->values + (size_t)e * size, size);
      out->row_mask[first + c] |= (uint64_t)1 << (i - begin);
    }
  }
}

static void fill_window(const asparse_local_csr *a, asparse_wcsr *out, int32_t w, asparse_column_set *set) {
  int32_t h = out->window_height;
  int64_t first = out->window_row_ptr[w], width = out->window_row_ptr[w + 1] - first;
  size_t size = asparse_dtype_size(a->dtype);
  asparse_unit_insert(set, a, h, 0, w);
  int32_t distinct = asparse_column_set_list(set, out->window_col_idx + first);
  for (int64_t c = distinct; c < width; c++) out->window_col_idx[first + c] = -1;
  memset(out->row_mask + first, 0, (size_t)width * sizeof *out->row_mask);
  memset((char *)out->values + (size_t)(first * h) * size, 0, (size_t)(width * h) * size);
  if (size == 8) fill_tiles(a, out, w, set, 8);
  else if (size == 4) fill_tiles(a, out, w, set, 4);
  else fill_tiles(a, out, w, set, 2);
  asparse_column_set_clear(set);
}

asparse_status asparse_wcsr_build(const asparse_local_csr *a, int32_t h, asparse_wcsr **out) {
  asparse_status status = ASPARSE_OK;
  asparse_column_set *sets = NULL;
  asparse_wcsr *built = NULL;
  int64_t *distinct = NULL, n_columns = 0;
  PASS(check_height(h));
  int32_t n_windows = asparse_units_over(a->m, h);
  TRY(asparse_column_sets_create(&sets, asparse_unit_threads(n_windows), a->k));
  ALLOC(distinct, n_windows);
  asparse_units_count(a, h, 0, sets, distinct);
  for (int32_t w = 0; w < n_windows; w++) n_columns += padded(distinct[w]);

  TRY(asparse_wcsr_create(&built, a->m, a->k, h, n_columns, a->dtype));
  built->nnz = a->row_ptr[a->m];
  for (int32_t w = 0; w < n_windows; w++) built->window_row_ptr[w + 1] = built->window_row_ptr[w] + padded(distinct[w]);
#pragma omp parallel for schedule(dynamic, ASPARSE_UNIT_CHUNK) num_threads(asparse_unit_threads(n_windows))
  for (int32_t w = 0; w < n_windows; w++) fill_window(a, built, w, &sets[omp_get_thread_num()]);
  *out = built;
cleanup:
  asparse_column_sets_destroy(&sets);
  asparse_free(distinct);
  return status;
}

asparse_status asparse_count_window_columns(const asparse_local_csr *a, int32_t h, asparse_window_counts *counts) {
  asparse_status status = ASPARSE_OK;
  int64_t *distinct = NULL;
  PASS(check_height(h));
  int32_t n_windows = asparse_units_over(a->m, h);
  ALLOC(distinct, n_windows);
  TRY(asparse_units_distinct(a, h, 0, distinct));
  *counts = (asparse_window_counts){0};
  for (int32_t w = 0; w < n_windows; w++) {
    counts->columns += distinct[w];
    counts->padded += padded(distinct[w]);
    if (distinct[w] > counts->widest) counts->widest = distinct[w];
    counts->used += distinct[w] > 0;
  }
cleanup:
  asparse_free(distinct);
  return status;
}
