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
  } else if (options->cols == 0) {
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

/* A permuted matrix wants rows scattered over the file: read even slabs, then send them home. */
static asparse_status fill_permuted(asparse_comm *comm, const operand_source *source, const asparse_matrix *a,
                                    asparse_dense *b) {
  asparse_status status = ASPARSE_OK;
  asparse_dense *even = NULL;
  int64_t begin = asparse_even_start(a->k, comm->size, comm->rank);
  int64_t end = asparse_even_start(a->k, comm->size, comm->rank + 1);
  TRY(asparse_comm_agree(comm, asparse_dense_create(&even, end - begin, b->n, b->dtype)));
  TRY(asparse_dense_read(comm, source->path, begin, even));
  TRY(asparse_rows_from_even(comm, even, a->part.row_map, a->k, b));
cleanup:
  asparse_dense_destroy(&even);
  return status;
}

asparse_status operand_fill(asparse_comm *comm, const solve_options *options, const operand_source *source,
                            const asparse_matrix *a, asparse_dense *b) {
  if (!source->path) {
    asparse_matrix_fill_random(a, b, options->seed);
    return ASPARSE_OK;
  }
  if (a->method == ASPARSE_PARTITION_METIS) return fill_permuted(comm, source, a, b);
  return asparse_dense_read(comm, source->path, a->col_starts[comm->rank], b);
}

asparse_status operand_write(asparse_comm *comm, const solve_options *options, const char *command,
                             const asparse_matrix *a, const asparse_dense *c) {
  asparse_status status = ASPARSE_OK;
  asparse_dense *even = NULL;
  asparse_provenance provenance = {"asparse_solve " ASPARSE_VERSION, options->matrix, command};
  int64_t begin = a->row_starts[comm->rank];
  if (a->method == ASPARSE_PARTITION_METIS) {
    TRY(asparse_rows_to_even(comm, c, a->part.row_map, a->m, &even));
    begin = asparse_even_start(a->m, comm->size, comm->rank);
  }
  TRY(asparse_dense_write(comm, options->output, a->m, begin, even ? even : c, &provenance));
cleanup:
  asparse_dense_destroy(&even);
  return status;
}
