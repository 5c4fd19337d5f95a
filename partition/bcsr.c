#include <omp.h>

#include "partition/partition.h"
#include "partition/row_units.h"

static asparse_status check_size(int32_t r) {
  if (r == 16 || r == 32 || r == 64) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "BCSR block size %d: use 16, 32 or 64", r);
}

static int log2_of(int32_t r) { return __builtin_ctz((unsigned)r); }

/* One block row's values and masks; inlined with a constant value size. */
static inline __attribute__((always_inline)) void fill_blocks(const asparse_local_csr *a, asparse_bcsr *out,
                                                              int32_t block_row, const asparse_column_set *set,
                                                              size_t size) {
  int32_t r = out->block_size, begin = block_row * r, end = asparse_unit_end(block_row, r, a->m);
  int shift = log2_of(r);
  int64_t first = out->block_row_ptr[block_row];
  for (int32_t i = begin; i < end; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      int32_t col = a->col_idx[e], in_block = col & (r - 1);
      int64_t row_of_block = (first + asparse_column_set_position(set, col >> shift)) * r + (i - begin);
      memcpy((char *)out->blocks + (size_t)(row_of_block * r + in_block) * size,
             (const char *)a->values + (size_t)e * size, size);
      out->entry_mask[row_of_block] |= (uint64_t)1 << in_block;
    }
  }
}

static void fill_block_row(const asparse_local_csr *a, asparse_bcsr *out, int32_t block_row, asparse_column_set *set) {
  int64_t r = out->block_size, first = out->block_row_ptr[block_row];
  int64_t n_blocks = out->block_row_ptr[block_row + 1] - first;
  size_t size = asparse_dtype_size(a->dtype);
  asparse_unit_insert(set, a, out->block_size, log2_of(out->block_size), block_row);
  asparse_column_set_list(set, out->block_col_idx + first);
  memset(out->entry_mask + first * r, 0, (size_t)(n_blocks * r) * sizeof *out->entry_mask);
  memset((char *)out->blocks + (size_t)(first * r * r) * size, 0, (size_t)(n_blocks * r * r) * size);
  if (size == 8) fill_blocks(a, out, block_row, set, 8);
  else if (size == 4) fill_blocks(a, out, block_row, set, 4);
  else fill_blocks(a, out, block_row, set, 2);
  asparse_column_set_clear(set);
}

asparse_status asparse_bcsr_build(const asparse_local_csr *a, int32_t r, asparse_bcsr **out) {
  asparse_status status = ASPARSE_OK;
  asparse_column_set *sets = NULL;
  asparse_bcsr *built = NULL;
  int64_t *n_blocks = NULL, all_blocks = 0;
  PASS(check_size(r));
  int32_t n_block_rows = asparse_units_over(a->m, r);
  TRY(asparse_column_sets_create(&sets, asparse_unit_threads(n_block_rows), asparse_units_over(a->k, r)));
  ALLOC(n_blocks, n_block_rows);
  asparse_units_count(a, r, log2_of(r), sets, n_blocks);
  for (int32_t b = 0; b < n_block_rows; b++) all_blocks += n_blocks[b];

  TRY(asparse_bcsr_create(&built, a->m, a->k, r, all_blocks, a->dtype));
  built->nnz = a->row_ptr[a->m];
  for (int32_t b = 0; b < n_block_rows; b++) built->block_row_ptr[b + 1] = built->block_row_ptr[b] + n_blocks[b];
#pragma omp parallel for schedule(dynamic, ASPARSE_UNIT_CHUNK) num_threads(asparse_unit_threads(n_block_rows))
  for (int32_t b = 0; b < n_block_rows; b++) fill_block_row(a, built, b, &sets[omp_get_thread_num()]);
  *out = built;
cleanup:
  asparse_column_sets_destroy(&sets);
  asparse_free(n_blocks);
  return status;
}

asparse_status asparse_count_blocks(const asparse_local_csr *a, int32_t r, int64_t *blocks) {
  asparse_status status = ASPARSE_OK;
  int64_t *distinct = NULL;
  PASS(check_size(r));
  int32_t n_block_rows = asparse_units_over(a->m, r);
  ALLOC(distinct, n_block_rows);
  TRY(asparse_units_distinct(a, r, log2_of(r), distinct));
  *blocks = 0;
  for (int32_t i = 0; i < n_block_rows; i++) *blocks += distinct[i];
cleanup:
  asparse_free(distinct);
  return status;
}
