#include "plan/matrix.h"

#include <string.h>

#include "base/clock.h"
#include "base/dense.h"
#include "plan/columns.h"
#include "plan/rows.h"

/* ---- this rank's part ------------------------------------------------------------------------ */

/* Columns are sorted, so a row's own entries are one run: [below | own | above]. */
static void own_run(const asparse_csr *rows, int64_t i, int64_t col_begin, int64_t col_end, int64_t *begin,
                    int64_t *end) {
  int64_t bounds[2] = {col_begin, col_end}, found[2];
  for (int b = 0; b < 2; b++) {
    int64_t low = rows->row_ptr[i], high = rows->row_ptr[i + 1];
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (rows->col_idx[middle] < bounds[b]) low = middle + 1;
      else high = middle;
    }
    found[b] = low;
  }
  *begin = found[0];
  *end = found[1];
}

/* Columns of one row into the local numbering. */
static void split_row(const asparse_csr *rows, int64_t i, int64_t own_begin, int64_t own_end, int64_t col_begin,
                      const asparse_columns *halo, asparse_part *part) {
  int32_t *own = part->diag->col_idx + part->diag->row_ptr[i], *other = part->offd->col_idx + part->offd->row_ptr[i];
  for (int64_t e = rows->row_ptr[i]; e < own_begin; e++)
    *other++ = (int32_t)asparse_columns_position(halo, rows->col_idx[e]);
  for (int64_t e = own_begin; e < own_end; e++) *own++ = (int32_t)(rows->col_idx[e] - col_begin);
  for (int64_t e = own_end; e < rows->row_ptr[i + 1]; e++)
    *other++ = (int32_t)asparse_columns_position(halo, rows->col_idx[e]);
}

/* Values follow their columns: below and above go to offd. own_begin [rows]. */
static void split_values(const asparse_csr *rows, const int64_t *own_begin, asparse_part *part) {
  size_t size = asparse_dtype_size(rows->dtype);
  const char *values = rows->values;
  char *own = part->diag->values, *other = part->offd->values;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows->n_rows; i++) {
    int64_t begin = rows->row_ptr[i], below = own_begin[i] - begin;
    int64_t n_own = part->diag->row_ptr[i + 1] - part->diag->row_ptr[i];
    int64_t above = rows->row_ptr[i + 1] - own_begin[i] - n_own, to = part->offd->row_ptr[i];
    memcpy(own + (size_t)part->diag->row_ptr[i] * size, values + (size_t)own_begin[i] * size, (size_t)n_own * size);
    memcpy(other + (size_t)to * size, values + (size_t)begin * size, (size_t)below * size);
    memcpy(other + (size_t)(to + below) * size, values + (size_t)(own_begin[i] + n_own) * size, (size_t)above * size);
  }
}

/* Splits rows into diag (own columns) and offd (halo columns), freeing the 64-bit columns before the
 * values are copied. Local. */
static asparse_status split_columns(asparse_csr *rows, int64_t col_begin, int64_t col_end, asparse_part *part) {
  asparse_status status = ASPARSE_OK;
  asparse_columns halo = {0};
  int64_t nnz = asparse_csr_nnz_local(rows), *own_begin = NULL;
  int32_t m, k_own, k_halo;
  TRY(asparse_columns_create(&halo, rows->k, rows->col_idx, nnz, col_begin, col_end));
  TRY(asparse_int32_from(rows->n_rows, "the number of rows", &m));
  TRY(asparse_int32_from(col_end - col_begin, "the number of own rows of B", &k_own));
  TRY(asparse_int32_from(halo.n, "the number of halo rows of B", &k_halo));
  ALLOC(own_begin, rows->n_rows);
  TRY(asparse_local_csr_create(&part->diag, m, k_own, 0, rows->dtype));
  TRY(asparse_local_csr_create(&part->offd, m, k_halo, 0, rows->dtype));
  for (int64_t i = 0; i < rows->n_rows; i++) {
    int64_t own_end, length = rows->row_ptr[i + 1] - rows->row_ptr[i];
    own_run(rows, i, col_begin, col_end, &own_begin[i], &own_end);
    part->diag->row_ptr[i + 1] = part->diag->row_ptr[i] + own_end - own_begin[i];
    part->offd->row_ptr[i + 1] = part->offd->row_ptr[i] + length - (own_end - own_begin[i]);
  }
  TRY(asparse_local_csr_reserve_columns(part->diag));
  TRY(asparse_local_csr_reserve_columns(part->offd));
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows->n_rows; i++) {
    int64_t n_own = part->diag->row_ptr[i + 1] - part->diag->row_ptr[i];
    split_row(rows, i, own_begin[i], own_begin[i] + n_own, col_begin, &halo, part);
  }
  FREE(rows->col_idx);
  TRY(asparse_local_csr_reserve_values(part->diag));
  TRY(asparse_local_csr_reserve_values(part->offd));
  split_values(rows, own_begin, part);
  part->m_local = m;
  part->k_local = k_own;
  part->n_halo = k_halo;
  part->col_map_offd = halo.sorted;
  halo.sorted = NULL;
cleanup:
  asparse_columns_destroy(&halo);
  asparse_free(own_begin);
  return status;
}

asparse_status asparse_matrix_part(asparse_comm *comm, asparse_csr *slab, const asparse_partition *partition, int part,
                                   bool consume, asparse_part *out) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *rows = NULL;
  int *part_of_rank = NULL;
  *out = (asparse_part){0};
  part_of_rank = asparse_malloc(comm->size, sizeof *part_of_rank, "part_of_rank");
  TRY(asparse_comm_agree(comm, part_of_rank ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY_MPI(MPI_Allgather(&part, 1, MPI_INT, part_of_rank, 1, MPI_INT, comm->mpi));
  TRY(asparse_rows_gather(comm, slab, partition, part_of_rank, consume, &rows, &out->row_map));
  if (partition->new_row) {
    TRY(asparse_rows_renumber(comm, slab, partition, rows->col_idx, asparse_csr_nnz_local(rows), rows->col_idx));
    TRY(asparse_comm_agree(comm, asparse_csr_sort_rows(rows)));
  }
  if (part >= 0) {
    status = split_columns(rows, partition->col_starts[part], partition->col_starts[part + 1], out);
  } else {
    FREE(out->row_map);
  }
  TRY(asparse_comm_agree(comm, status));
cleanup:
  if (status != ASPARSE_OK) asparse_part_free(out);
  asparse_csr_destroy(&rows);
  asparse_free(part_of_rank);
  return status;
}

/* ---- the matrix ------------------------------------------------------------------------------- */

asparse_status asparse_matrix_partition(asparse_comm *comm, const asparse_csr *slab, asparse_partition_method method,
                                        int64_t n, int parts, asparse_partition **partition) {
  asparse_status status = ASPARSE_OK;
  int64_t *cost = asparse_malloc(slab->n_rows, sizeof *cost, "row costs");
  TRY(asparse_comm_agree(comm, cost ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_partition_row_cost(comm, slab, n, cost));
  TRY(method == ASPARSE_PARTITION_METIS ? asparse_partition_metis(comm, slab, cost, parts, partition)
                                        : asparse_partition_contiguous(comm, slab, cost, parts, partition));
cleanup:
  asparse_free(cost);
  return status;
}

static asparse_status matrix_start(asparse_comm *comm, asparse_matrix **out) {
  asparse_status status = ASPARSE_OK;
  asparse_matrix *a = NULL;
  ALLOC_ZERO(a, 1);
  a->comm = comm;
  *out = a;
cleanup:
  return status;
}

asparse_status asparse_matrix_create(asparse_comm *comm, asparse_csr **slab, const asparse_options *options, int64_t n,
                                     asparse_matrix **out) {
  asparse_status status = ASPARSE_OK;
  asparse_matrix *a = NULL;
  asparse_partition *partition = NULL;
  double start = asparse_seconds();
  TRY(asparse_comm_agree(comm, matrix_start(comm, &a)));
  TRY(asparse_matrix_hash(comm, *slab, &a->hash));
  if (!options->own_precision) TRY(asparse_comm_agree(comm, asparse_csr_convert(*slab, options->precision)));
  TRY(asparse_planner_plan(comm, *slab, options, n, &a->planning));
  const asparse_options placed = asparse_planned_options(options, &a->planning);
  TRY(asparse_grid_create(comm, &placed, &a->grid));
  TRY(asparse_matrix_partition(comm, *slab, options->partition, n, a->grid.rows, &partition));
  a->partition_seconds = asparse_seconds() - start - a->planning.seconds;

  start = asparse_seconds();
  TRY(asparse_matrix_part(comm, *slab, partition, a->grid.column_comm->rank, true, &a->part));
  a->move_seconds = asparse_seconds() - start;
  a->m = (*slab)->m;
  a->k = (*slab)->k;
  a->nnz = (*slab)->nnz;
  a->dtype = (*slab)->dtype;
  a->method = partition->method;
  a->imbalance = partition->total_cost > 0
                     ? (double)partition->largest_cost * partition->parts / (double)partition->total_cost
                     : 1.0;
  a->row_starts = partition->row_starts;
  a->col_starts = partition->col_starts;
  partition->row_starts = partition->col_starts = NULL;
  *out = a;
  a = NULL;
cleanup:
  asparse_csr_destroy(slab);
  asparse_partition_destroy(&partition);
  asparse_matrix_destroy(&a);
  return status;
}

asparse_status asparse_matrix_load(asparse_comm *comm, const char *path, asparse_matrix **out) {
  asparse_status status = ASPARSE_OK;
  asparse_matrix *a = NULL;
  asparse_part_header header = {0};
  TRY(asparse_comm_agree(comm, matrix_start(comm, &a)));
  a->grid = (asparse_grid){.rows = comm->size, .columns = 1, .column_comm = comm};
  TRY(asparse_part_header_read(comm, path, &header));
  TRY(asparse_part_read(comm, path, &header, comm->rank, &a->part));
  a->m = header.m;
  a->k = header.k;
  a->nnz = header.nnz;
  a->dtype = header.dtype;
  a->method = header.method;
  a->hash = header.matrix_hash;
  a->imbalance = header.imbalance;
  a->ready = header.diag;
  a->saved_seconds = header.build_seconds;
  a->row_starts = header.row_starts;
  a->col_starts = header.col_starts;
  header.row_starts = header.col_starts = NULL;
  *out = a;
  a = NULL;
cleanup:
  asparse_part_header_free(&header);
  asparse_matrix_destroy(&a);
  return status;
}

void asparse_matrix_destroy(asparse_matrix **a) {
  if (!a || !*a) return;
  asparse_part_free(&(*a)->part);
  asparse_grid_free(&(*a)->grid);
  asparse_free((*a)->row_starts);
  asparse_free((*a)->col_starts);
  FREE(*a);
}
