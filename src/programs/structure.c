#include "programs/structure.h"

#include <stdlib.h>

#include "partition/row_units.h"
#include "plan/rows.h"
#include "programs/mirror.h"

const int32_t structure_heights[STRUCTURE_HEIGHTS] = {8, 16, 32, 64};
const int32_t structure_sizes[STRUCTURE_SIZES] = {16, 32, 64};

enum { ALIGNMENT = 64 };

asparse_status structure_align(asparse_comm *comm, asparse_csr **slab) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *aligned = NULL;
  int64_t *starts = NULL, *row_map = NULL, begin = (*slab)->row_begin, m = (*slab)->m;
  int *part_of_rank = NULL;
  starts = asparse_malloc((int64_t)comm->size + 1, sizeof *starts, "slab starts");
  part_of_rank = asparse_malloc(comm->size, sizeof *part_of_rank, "part of each rank");
  TRY(asparse_comm_agree(comm, starts && part_of_rank ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY_MPI(MPI_Allgather(&begin, 1, MPI_INT64_T, starts, 1, MPI_INT64_T, comm->mpi));
  starts[comm->size] = m;
  for (int r = 0; r < comm->size; r++) {
    int64_t up = starts[r] / ALIGNMENT * ALIGNMENT + (starts[r] % ALIGNMENT ? ALIGNMENT : 0);
    starts[r] = up < m ? up : m;
    part_of_rank[r] = r;
  }
  const asparse_partition even = {.parts = comm->size, .m = m, .k = (*slab)->k, .row_starts = starts};
  TRY(asparse_rows_gather(comm, *slab, &even, part_of_rank, true, &aligned, &row_map));
  aligned->nnz = (*slab)->nnz;
  aligned->n_duplicates = (*slab)->n_duplicates;
  aligned->n_inexact = (*slab)->n_inexact;
  asparse_csr_destroy(slab);
  *slab = aligned;
cleanup:
  asparse_free(starts);
  asparse_free(part_of_rank);
  asparse_free(row_map);
  return status;
}

/* ---- degrees ------------------------------------------------------------------------------ */

static int64_t degree(const int64_t *counts, const int64_t *row_ptr, int64_t i) {
  return counts ? counts[i] : row_ptr[i + 1] - row_ptr[i];
}

/* Collective. Degrees of `own` items of this rank, given as counts or as row pointers; `all` over ranks. */
static asparse_status measure_degrees(asparse_comm *comm, const int64_t *counts, const int64_t *row_ptr, int64_t own,
                                      int64_t all, int64_t nnz, degrees *d) {
  asparse_status status = ASPARSE_OK;
  *d = (degrees){.count = all, .least = INT64_MAX};
  for (int64_t i = 0; i < own; i++) {
    int64_t n = degree(counts, row_ptr, i);
    if (n < d->least) d->least = n;
    if (n > d->largest) d->largest = n;
    d->empty += n == 0;
  }
  TRY(asparse_comm_min(comm, &d->least, 1));
  TRY(asparse_comm_max(comm, &d->largest, 1));
  TRY(asparse_comm_sum(comm, &d->empty, 1));
  if (all == 0) d->least = 0;
  if (all > 0) d->mean = (double)nnz / (double)all;

  /* Median: the least n such that at least half of the items have at most n, by bisection. */
  int64_t low = d->least, high = d->largest;
  while (low < high) {
    int64_t middle = low + (high - low) / 2, at_most = 0;
    for (int64_t i = 0; i < own; i++) at_most += degree(counts, row_ptr, i) <= middle;
    TRY(asparse_comm_sum(comm, &at_most, 1));
    if (at_most >= all - at_most) high = middle;
    else low = middle + 1;
  }
  d->median = low;
cleanup:
  return status;
}

/* ---- distance from the diagonal ----------------------------------------------------------- */

/* Collective. */
static asparse_status measure_distance(asparse_comm *comm, const asparse_csr *a, structure *s) {
  /* The sum of distances in two parts, exact for 2^39 entries in 2^48 rows. */
  int64_t high = 0, low = 0, largest = 0, diagonal = 0;
#pragma omp parallel for schedule(static) reduction(+ : high, low, diagonal) reduction(max : largest)
  for (int64_t i = 0; i < a->n_rows; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      int64_t distance = llabs(a->col_idx[e] - (a->row_begin + i));
      high += distance >> 24;
      low += distance & 0xffffff;
      diagonal += distance == 0;
      if (distance > largest) largest = distance;
    }
  }
  int64_t sums[] = {high, low, diagonal};
  PASS(asparse_comm_sum(comm, sums, 3));
  PASS(asparse_comm_max(comm, &largest, 1));
  s->diagonal = sums[2];
  s->bandwidth = largest;
  s->mean_distance = s->nnz > 0 ? ((double)sums[0] * 16777216.0 + (double)sums[1]) / (double)s->nnz : 0;
  return ASPARSE_OK;
}

/* ---- windows and blocks ------------------------------------------------------------------- */

static int64_t sum(const int64_t *values, int64_t n) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) total += values[i];
  return total;
}

static asparse_window_counts count_windows(const int64_t *distinct, int64_t n) {
  asparse_window_counts counts = {0};
  for (int64_t w = 0; w < n; w++) {
    const int64_t padded = (distinct[w] + ASPARSE_TILE_COLUMNS - 1) / ASPARSE_TILE_COLUMNS * ASPARSE_TILE_COLUMNS;
    counts.columns += distinct[w];
    counts.padded += padded;
    if (distinct[w] > counts.widest) counts.widest = distinct[w];
  }
  return counts;
}

/* Local. Sums over this rank's windows and blocks. */
static asparse_status count_units(const asparse_csr *a, structure *s) {
  asparse_status status = ASPARSE_OK;
  int64_t *distinct = NULL;
  ALLOC(distinct, a->n_rows / structure_heights[0] + 1);
  for (int i = 0; i < STRUCTURE_HEIGHTS; i++) {
    int32_t h = structure_heights[i];
    TRY(asparse_slab_units_count(a, h, 0, distinct));
    s->windows[i] = count_windows(distinct, (a->n_rows + h - 1) / h);
  }
  for (int i = 0; i < STRUCTURE_SIZES; i++) {
    int32_t r = structure_sizes[i];
    TRY(asparse_slab_units_count(a, r, __builtin_ctz((unsigned)r), distinct));
    s->blocks[i] = sum(distinct, (a->n_rows + r - 1) / r);
  }
cleanup:
  asparse_free(distinct);
  return status;
}

/* Collective. This rank's counts to those of all ranks. */
static asparse_status add_windows(asparse_comm *comm, asparse_window_counts *windows) {
  int64_t sums[2 * STRUCTURE_HEIGHTS], widest[STRUCTURE_HEIGHTS];
  for (int i = 0; i < STRUCTURE_HEIGHTS; i++) {
    sums[2 * i] = windows[i].columns;
    sums[2 * i + 1] = windows[i].padded;
    widest[i] = windows[i].widest;
  }
  PASS(asparse_comm_sum(comm, sums, 2 * STRUCTURE_HEIGHTS));
  PASS(asparse_comm_max(comm, widest, STRUCTURE_HEIGHTS));
  for (int i = 0; i < STRUCTURE_HEIGHTS; i++)
    windows[i] = (asparse_window_counts){.columns = sums[2 * i], .padded = sums[2 * i + 1], .widest = widest[i]};
  return ASPARSE_OK;
}

asparse_status structure_measure(asparse_comm *comm, const asparse_csr *slab, structure *s) {
  asparse_status status = ASPARSE_OK;
  mirror found = {0};
  *s = (structure){.m = slab->m, .k = slab->k, .nnz = slab->nnz};
  TRY(measure_degrees(comm, NULL, slab->row_ptr, slab->n_rows, slab->m, slab->nnz, &s->rows));
  TRY(measure_distance(comm, slab, s));
  TRY(asparse_comm_agree(comm, count_units(slab, s)));
  TRY(add_windows(comm, s->windows));
  TRY(asparse_comm_sum(comm, s->blocks, STRUCTURE_SIZES));
  TRY(mirror_measure(comm, slab, &found));
  TRY(measure_degrees(comm, found.column_counts, NULL, found.n_columns, slab->k, slab->nnz, &s->columns));
  s->mirrored = found.mirrored;
  s->equal = found.equal;
  s->opposite = found.opposite;
cleanup:
  mirror_free(&found);
  return status;
}

bool structure_pattern_symmetric(const structure *s) { return s->m == s->k && s->mirrored == s->nnz - s->diagonal; }

double structure_window_fill(const structure *s, int height) {
  int64_t stored = s->windows[height].columns * structure_heights[height];
  return stored > 0 ? (double)s->nnz / (double)stored : 0;
}

double structure_block_fill(const structure *s, int size) {
  int64_t stored = s->blocks[size] * structure_sizes[size] * structure_sizes[size];
  return stored > 0 ? (double)s->nnz / (double)stored : 0;
}
