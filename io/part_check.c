#include "io/part_file.h"

static asparse_status damaged(const char *array, int64_t position, const char *expected) {
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: element %lld is damaged, expected %s", array, (long long)position,
                      expected);
}

/* ptr[0 … n]: from 0 to total in multiples of unit, never decreasing. */
static asparse_status check_ptr(const char *name, const int64_t *ptr, int64_t n, int64_t total, int64_t unit) {
  if (ptr[0] != 0) return damaged(name, 0, "0");
  for (int64_t i = 0; i < n; i++) {
    if (ptr[i + 1] < ptr[i] || ptr[i + 1] > total || ptr[i + 1] % unit != 0)
      return damaged(name, i + 1, "a pointer that does not decrease or pass the end");
  }
  if (ptr[n] != total) return damaged(name, n, "the number of entries");
  return ASPARSE_OK;
}

/* Columns begin … end-1 ascend strictly within 0 … k-1. */
static asparse_status check_columns(const char *name, const int32_t *columns, int64_t begin, int64_t end, int32_t k) {
  for (int64_t e = begin; e < end; e++) {
    if (columns[e] < 0 || columns[e] >= k || (e > begin && columns[e] <= columns[e - 1]))
      return damaged(name, e, "ascending columns within the part");
  }
  return ASPARSE_OK;
}

static asparse_status check_csr(const char *name, const asparse_local_csr *a, int64_t nnz) {
  if (!a) return ASPARSE_OK;
  PASS(check_ptr(name, a->row_ptr, a->m, nnz, 1));
  for (int32_t i = 0; i < a->m; i++) PASS(check_columns(name, a->col_idx, a->row_ptr[i], a->row_ptr[i + 1], a->k));
  return ASPARSE_OK;
}

/* Bits below `used` of 64. */
static uint64_t low_bits(int32_t used) { return used >= 64 ? UINT64_MAX : (UINT64_C(1) << used) - 1; }

/* Rows (or columns) of the last unit that exist. */
static int32_t unit_extent(int32_t total, int32_t unit, int32_t index) {
  int64_t left = (int64_t)total - (int64_t)index * unit;
  return left < unit ? (int32_t)left : unit;
}

/* Columns, then padding (-1 with an empty mask) to a whole tile. */
static asparse_status check_window(const char *name, const asparse_wcsr *a, int32_t window, int64_t *nnz) {
  uint64_t rows = low_bits(unit_extent(a->m, a->window_height, window));
  int64_t begin = a->window_row_ptr[window], end = a->window_row_ptr[window + 1], used = begin;
  while (used < end && a->window_col_idx[used] != -1) used++;
  PASS(check_columns(name, a->window_col_idx, begin, used, a->k));
  for (int64_t c = begin; c < end; c++) {
    if (c >= used && (a->window_col_idx[c] != -1 || a->row_mask[c] != 0)) return damaged(name, c, "padding");
    if (a->row_mask[c] & ~rows) return damaged(name, c, "a mask of existing rows");
    *nnz += __builtin_popcountll(a->row_mask[c]);
  }
  return ASPARSE_OK;
}

static asparse_status check_wcsr(const char *name, const asparse_wcsr *a, int64_t n_columns) {
  int64_t nnz = 0;
  PASS(check_ptr(name, a->window_row_ptr, a->n_windows, n_columns, ASPARSE_TILE_COLUMNS));
  for (int32_t w = 0; w < a->n_windows; w++) PASS(check_window(name, a, w, &nnz));
  return nnz == a->nnz ? ASPARSE_OK : damaged(name, nnz, "masks that add up to the entries");
}

static asparse_status check_bcsr(const char *name, const asparse_bcsr *a, int64_t n_blocks) {
  int64_t nnz = 0;
  int32_t r = a->block_size, n_block_columns = a->k / r + (a->k % r != 0);
  PASS(check_ptr(name, a->block_row_ptr, a->n_block_rows, n_blocks, 1));
  for (int32_t i = 0; i < a->n_block_rows; i++) {
    int32_t rows = unit_extent(a->m, r, i);
    PASS(check_columns(name, a->block_col_idx, a->block_row_ptr[i], a->block_row_ptr[i + 1], n_block_columns));
    for (int64_t b = a->block_row_ptr[i]; b < a->block_row_ptr[i + 1]; b++) {
      uint64_t columns = low_bits(unit_extent(a->k, r, a->block_col_idx[b]));
      for (int32_t row = 0; row < r; row++) {
        uint64_t mask = a->entry_mask[b * r + row];
        if (mask & ~(row < rows ? columns : 0)) return damaged(name, b * r + row, "a mask of existing entries");
        nnz += __builtin_popcountll(mask);
      }
    }
  }
  return nnz == a->nnz ? ASPARSE_OK : damaged(name, nnz, "masks that add up to the entries");
}

static asparse_status check_shard(const char *name, const asparse_shard *shard, const asparse_local_csr *csr,
                                  int64_t extent) {
  if (!shard) return ASPARSE_OK;
  if (csr && asparse_shard_nnz(shard) != csr->row_ptr[csr->m])
    return damaged(name, asparse_shard_nnz(shard), "as many entries as the CSR form has");
  return shard->wcsr ? check_wcsr(name, shard->wcsr, extent) : check_bcsr(name, shard->bcsr, extent);
}

asparse_status asparse_part_check(const asparse_part_header *header, int part, const asparse_part *data,
                                  const asparse_part_array arrays[ASPARSE_PART_ARRAYS]) {
  if ((!data->diag && !data->diag_shard) ||
      (data->n_halo > 0 && (!data->col_map_offd || (!data->offd && !data->offd_shard))))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "diag, offd or col_map_offd is missing");
  PASS(check_csr("diag", data->diag, arrays[1].count));
  PASS(check_csr("offd", data->offd, arrays[4].count));
  PASS(check_shard("diag_shard", data->diag_shard, data->diag, arrays[7].count));
  PASS(check_shard("offd_shard", data->offd_shard, data->offd, arrays[11].count));
  int64_t own_begin = header->col_starts[part], own_end = header->col_starts[part + 1];
  for (int64_t i = 0; data->col_map_offd && i < data->n_halo; i++) {
    int64_t column = data->col_map_offd[i];
    if (column < 0 || column >= header->k || (column >= own_begin && column < own_end))
      return damaged("col_map_offd", i, "a column of another part");
  }
  for (int64_t i = 0; data->row_map && i < data->m_local; i++) {
    if (data->row_map[i] < 0 || data->row_map[i] >= header->m) return damaged("row_map", i, "a row of the matrix");
  }
  return ASPARSE_OK;
}
