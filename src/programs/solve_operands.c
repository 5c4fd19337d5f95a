#include "programs/solve_operands.h"

#include <stdio.h>
#include <string.h>

#include "asparse_config.h"
#include "base/dense.h"
#include "plan/rows.h"

enum { DEFAULT_COLUMNS = 128 };

/* Path of dataset B in the matrix file, or NULL. Collective. */
static asparse_status find_beside_matrix(asparse_comm *comm, const char *matrix, char **path) {
  asparse_status status = ASPARSE_OK;
  char *file = NULL, *object = NULL;
  bool exists = false;
  *path = NULL;
  TRY(asparse_comm_agree(comm, asparse_path_split(matrix, &file, &object)));
  TRY(asparse_object_exists(comm, file, "B", &exists));
  if (exists) {
    size_t length = strlen(file) + sizeof "::/B";
    *path = asparse_malloc((int64_t)length, 1, "path of B");
    if (*path) snprintf(*path, length, "%s::/B", file);
    TRY(asparse_comm_agree(comm, *path ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  }
cleanup:
  asparse_free(file);
  asparse_free(object);
  return status;
}

asparse_status operand_find(asparse_comm *comm, const solve_options *options, operand_source *source) {
  asparse_status status = ASPARSE_OK;
  *source = (operand_source){.m = -1, .n = options->cols > 0 ? options->cols : DEFAULT_COLUMNS};
  if (options->b) {
    int64_t length = (int64_t)strlen(options->b) + 1;
    source->path = asparse_malloc(length, 1, "path of B");
    if (source->path) memcpy(source->path, options->b, (size_t)length);
    TRY(asparse_comm_agree(comm, source->path ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  } else if (options->cols == 0 && !options->generate) {
    TRY(find_beside_matrix(comm, options->matrix, &source->path));
  }
  if (source->path) {
    TRY(asparse_dense_shape(comm, source->path, &source->m, &source->n, &source->dtype));
    TRY_THAT(source->n > 0, ASPARSE_ERR_DATA, "%s: B has no columns", source->path);
  }
cleanup:
  return status;
}

void operand_source_free(operand_source *source) { FREE(source->path); }

asparse_status operand_check(const operand_source *source, const asparse_matrix *a) {
  if (source->path && source->m != a->k)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: B has %lld rows, but A is %lld × %lld and needs B with %lld rows",
                        source->path, (long long)source->m, (long long)a->m, (long long)a->k, (long long)a->k);
  return ASPARSE_OK;
}

/* Original numbers of this rank's rows of a permuted B or C; NULL where they are consecutive. starts: of parts. */
static const int64_t *permuted_rows(const asparse_matrix *a, const int64_t *starts, const asparse_extent *rows) {
  return a->part.row_map ? a->part.row_map + (rows->row_begin - starts[a->grid.column_comm->rank]) : NULL;
}

/* This rank's rows of B with all columns. A permuted matrix wants rows scattered over the file: read even slabs, then
 * send them home. Collective. */
static asparse_status read_rows(asparse_comm *comm, const operand_source *source, const asparse_plan *plan,
                                asparse_dense *rows) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  const asparse_extent extent = asparse_plan_extent_of_b(plan, ASPARSE_PLACEMENT_ROWS);
  const int64_t begin = asparse_even_start(a->k, comm->size, comm->rank);
  const int64_t end = asparse_even_start(a->k, comm->size, comm->rank + 1);
  asparse_dense *even = NULL;
  if (a->method != ASPARSE_PARTITION_METIS) return asparse_dense_read(comm, source->path, extent.row_begin, rows);
  TRY(asparse_comm_agree(comm, asparse_dense_create(&even, end - begin, rows->n, rows->dtype)));
  TRY(asparse_dense_read(comm, source->path, begin, even));
  TRY(asparse_rows_from_even(comm, even, permuted_rows(a, a->col_starts, &extent), a->k, rows));
cleanup:
  asparse_dense_destroy(&even);
  return status;
}

/* Files are read by rows: blocks of columns come from the ranks that share a part. Collective. */
static asparse_status read_block(asparse_comm *comm, const operand_source *source, const asparse_plan *plan,
                                 asparse_dense *block) {
  asparse_status status = ASPARSE_OK;
  const asparse_extent extent = asparse_plan_extent_of_b(plan, ASPARSE_PLACEMENT_ROWS);
  asparse_dense *rows = NULL;
  asparse_layout *layout = NULL;
  TRY(asparse_comm_agree(comm, asparse_dense_create(&rows, extent.m, extent.n, block->dtype)));
  TRY(read_rows(comm, source, plan, rows));
  TRY(asparse_plan_layout_of_b(plan, &layout));
  TRY(asparse_layout_to_block(layout, rows, block));
cleanup:
  asparse_layout_destroy(&layout);
  asparse_dense_destroy(&rows);
  return status;
}

/* On rank 0 alone: all of B. */
static asparse_status whole_b(const solve_options *options, const operand_source *source, const asparse_plan *plan,
                              asparse_dense **whole) {
  asparse_status status = ASPARSE_OK;
  asparse_comm *self = NULL;
  TRY(asparse_dense_create(whole, plan->matrix->k, plan->n_global, plan->matrix->dtype));
  if (source->path) {
    TRY(asparse_comm_create(&self, MPI_COMM_SELF));
    TRY(asparse_dense_read(self, source->path, 0, *whole));
  } else {
    asparse_dense_fill_random(*whole, options->seed, 0, NULL);
  }
cleanup:
  asparse_comm_destroy(&self);
  return status;
}

static asparse_status fill_from_root(asparse_comm *comm, const solve_options *options, const operand_source *source,
                                     const asparse_plan *plan, asparse_dense *b) {
  asparse_status status = ASPARSE_OK;
  asparse_dense *whole = NULL;
  if (comm->rank == 0) status = whole_b(options, source, plan, &whole);
  TRY(asparse_comm_agree(comm, status));
  TRY(asparse_plan_scatter_b(plan, whole, b));
cleanup:
  asparse_dense_destroy(&whole);
  return status;
}

asparse_status operand_fill(asparse_comm *comm, const solve_options *options, const operand_source *source,
                            const asparse_plan *plan, asparse_dense *b) {
  if (options->b_from_root) return fill_from_root(comm, options, source, plan, b);
  if (!source->path) {
    asparse_plan_fill_random(plan, b, options->seed);
    return ASPARSE_OK;
  }
  if (asparse_plan_placement(plan) == ASPARSE_PLACEMENT_ROWS) return read_rows(comm, source, plan, b);
  return read_block(comm, source, plan, b);
}

/* Rows of C with all columns, as they are written. Collective. */
static asparse_status rows_of_block(asparse_comm *comm, const asparse_plan *plan, const asparse_dense *block,
                                    asparse_dense **rows) {
  asparse_status status = ASPARSE_OK;
  const asparse_extent extent = asparse_plan_extent_of_c(plan, ASPARSE_PLACEMENT_ROWS);
  asparse_layout *layout = NULL;
  TRY(asparse_comm_agree(comm, asparse_dense_create(rows, extent.m, extent.n, block->dtype)));
  TRY(asparse_plan_layout_of_c(plan, &layout));
  TRY(asparse_layout_to_slice(layout, block, *rows));
cleanup:
  asparse_layout_destroy(&layout);
  return status;
}

static asparse_status write_alone(const solve_options *options, const asparse_provenance *provenance,
                                  const asparse_dense *whole) {
  asparse_status status = ASPARSE_OK;
  asparse_comm *self = NULL;
  TRY(asparse_comm_create(&self, MPI_COMM_SELF));
  TRY(asparse_dense_write(self, options->output, whole->m, 0, whole, provenance));
cleanup:
  asparse_comm_destroy(&self);
  return status;
}

asparse_status operand_write(asparse_comm *comm, const solve_options *options, const char *command,
                             const asparse_plan *plan, const asparse_dense *c, const asparse_dense *whole) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  const asparse_extent extent = asparse_plan_extent_of_c(plan, ASPARSE_PLACEMENT_ROWS);
  asparse_dense *rows = NULL, *even = NULL;
  asparse_provenance provenance = {"asparse_solve " ASPARSE_VERSION, options->matrix, command, a->hash};
  int64_t begin = extent.row_begin;
  if (options->gather) return asparse_comm_agree(comm, whole ? write_alone(options, &provenance, whole) : ASPARSE_OK);
  if (asparse_plan_placement(plan) == ASPARSE_PLACEMENT_PLANNER) {
    TRY(rows_of_block(comm, plan, c, &rows));
    c = rows;
  }
  if (a->method == ASPARSE_PARTITION_METIS) {
    TRY(asparse_rows_to_even(comm, c, permuted_rows(a, a->row_starts, &extent), a->m, &even));
    begin = asparse_even_start(a->m, comm->size, comm->rank);
    c = even;
  }
  TRY(asparse_dense_write(comm, options->output, a->m, begin, c, &provenance));
cleanup:
  asparse_dense_destroy(&rows);
  asparse_dense_destroy(&even);
  return status;
}
