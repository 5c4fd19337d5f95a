#include "plan/profile.h"

#include "partition/partition.h"

enum { SAMPLE_RUNS = 8, SAMPLE_FRACTION = 8 };

static int64_t larger(int64_t x, int64_t y) { return x > y ? x : y; }

/* Adds rows [begin, end). */
static asparse_status add_rows(const asparse_local_csr *a, int32_t begin, int32_t end, asparse_profile *profile) {
  static const int32_t heights[] = {8, 16, 32, 64}, sizes[] = {16, 32, 64};
  asparse_local_csr rows = *a;
  rows.m = end - begin;
  rows.row_ptr = a->row_ptr + begin;
  for (int i = 0; i < 4; i++) {
    asparse_window_counts counts;
    PASS(asparse_count_window_columns(&rows, heights[i], &counts));
    profile->window_columns[i] += counts.columns;
    profile->window_padded[i] += counts.padded;
    profile->window_widest[i] = larger(profile->window_widest[i], counts.widest);
  }
  for (int i = 0; i < 3; i++) {
    int64_t blocks = 0;
    PASS(asparse_count_blocks(&rows, sizes[i], &blocks));
    profile->blocks[i] += blocks;
  }
  for (int32_t i = 0; i < rows.m; i++)
    profile->longest_row = larger(profile->longest_row, rows.row_ptr[i + 1] - rows.row_ptr[i]);
  profile->m += rows.m;
  profile->nnz += rows.row_ptr[rows.m] - rows.row_ptr[0];
  return ASPARSE_OK;
}

asparse_status asparse_profile_create(const asparse_local_csr *a, int64_t n, bool sample, asparse_profile *profile) {
  *profile = (asparse_profile){.n = n};
  if (!a) return ASPARSE_OK;
  profile->k = a->k;
  profile->dtype = a->dtype;
  if (!sample || a->m < SAMPLE_RUNS * SAMPLE_FRACTION * 64) return add_rows(a, 0, a->m, profile);
  int32_t stride = a->m / SAMPLE_RUNS;
  for (int run = 0; run < SAMPLE_RUNS; run++)
    PASS(add_rows(a, run * stride, run * stride + stride / SAMPLE_FRACTION, profile));
  return ASPARSE_OK;
}
