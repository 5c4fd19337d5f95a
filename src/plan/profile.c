#include "plan/profile.h"

#include <string.h>

#include "base/memory.h"
#include "partition/partition.h"

enum { SAMPLE_RUNS = 8, SAMPLE_FRACTION = 8 };

static int64_t larger(int64_t x, int64_t y) { return x > y ? x : y; }

/* counts[4]: heights 8, 16, 32, 64. */
static asparse_status add_windows(const asparse_local_csr *rows, asparse_window_counts *counts) {
  for (int i = 0; i < 4; i++) {
    asparse_window_counts more;
    PASS(asparse_count_window_columns(rows, 8 << i, &more));
    counts[i].columns += more.columns;
    counts[i].padded += more.padded;
    counts[i].widest = larger(counts[i].widest, more.widest);
    counts[i].used += more.used;
  }
  return ASPARSE_OK;
}

static int64_t used_rows(const asparse_local_csr *a) {
  int64_t used = 0;
#pragma omp parallel for schedule(static) reduction(+ : used)
  for (int32_t i = 0; i < a->m; i++) used += a->row_ptr[i + 1] > a->row_ptr[i];
  return used;
}

/* Adds rows [begin, end). */
static asparse_status add_rows(const asparse_local_csr *a, int32_t begin, int32_t end, asparse_profile *profile) {
  static const int32_t sizes[] = {16, 32, 64};
  asparse_local_csr rows = *a;
  rows.m = end - begin;
  rows.row_ptr = a->row_ptr + begin;
  PASS(add_windows(&rows, profile->windows));
  for (int i = 0; i < 3; i++) {
    int64_t blocks = 0;
    PASS(asparse_count_blocks(&rows, sizes[i], &blocks));
    profile->blocks[i] += blocks;
  }
  for (int32_t i = 0; i < rows.m; i++)
    profile->longest_row = larger(profile->longest_row, rows.row_ptr[i + 1] - rows.row_ptr[i]);
  profile->used_rows += used_rows(&rows);
  profile->m += rows.m;
  profile->nnz += rows.row_ptr[rows.m] - rows.row_ptr[0];
  return ASPARSE_OK;
}

asparse_status asparse_profile_create(const asparse_local_csr *a, int64_t n, bool sample, asparse_profile *profile) {
  *profile = (asparse_profile){.n = n};
  if (!a) return ASPARSE_OK;
  profile->k = a->k;
  profile->dtype = a->dtype;
  profile->c_dtype = asparse_dtype_result(a->dtype);
  /* The few rows of a halo part that have entries would be missed. */
  const bool is_sparse = used_rows(a) < a->m / 2;
  if (!sample || is_sparse || a->m < SAMPLE_RUNS * SAMPLE_FRACTION * 64) return add_rows(a, 0, a->m, profile);
  int32_t stride = a->m / SAMPLE_RUNS;
  for (int run = 0; run < SAMPLE_RUNS; run++)
    PASS(add_rows(a, run * stride, run * stride + stride / SAMPLE_FRACTION, profile));
  return ASPARSE_OK;
}

asparse_status asparse_profile_add_clustered(const asparse_local_csr *rows, asparse_profile *profile) {
  memset(profile->clustered, 0, sizeof profile->clustered);
  profile->has_clustered = true;
  return add_windows(rows, profile->clustered);
}

/* Touches come in generations of half as many rows as the cache holds; a row is there if this generation or the one
 * before touched it, which keeps between half and all of the rows that were touched last. */
asparse_status asparse_profile_add_rereads(const asparse_local_csr *a, asparse_profile *profile) {
  asparse_status status = ASPARSE_OK;
  const int64_t cached = asparse_device_cached_rows(profile->n, profile->dtype);
  int32_t *touched = NULL, generation = 2; /* touched[k]: the last that did; 0: none */
  int64_t in_generation = 0;
  profile->b_rereads = 0;
  if (!a || a->k <= cached) return ASPARSE_OK;
  ALLOC_ZERO(touched, a->k);
  for (int64_t e = a->row_ptr[0]; e < a->row_ptr[a->m]; e++) {
    int32_t *last = touched + a->col_idx[e];
    if (*last == generation) continue;
    profile->b_rereads += *last > 0 && *last < generation - 1;
    *last = generation;
    if (++in_generation >= cached / 2) generation++, in_generation = 0;
  }
cleanup:
  asparse_free(touched);
  return status;
}

asparse_status asparse_profile_pattern(const asparse_csr *slab, asparse_local_csr *pattern) {
  asparse_status status = ASPARSE_OK;
  const int64_t nnz = asparse_csr_nnz_local(slab);
  *pattern = (asparse_local_csr){
      .m = (int32_t)slab->n_rows, .k = (int32_t)slab->k, .dtype = slab->dtype, .row_ptr = slab->row_ptr};
  ALLOC(pattern->col_idx, nnz);
#pragma omp parallel for schedule(static)
  for (int64_t e = 0; e < nnz; e++) pattern->col_idx[e] = (int32_t)slab->col_idx[e];
cleanup:
  return status;
}
