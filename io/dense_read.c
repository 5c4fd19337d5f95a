#include <string.h>

#include "io/checksum.h"
#include "io/layout.h"

/* ---- finding -------------------------------------------------------------------------------- */

static asparse_status find_on_rank_0(const char *path, asparse_layout *layout) {
  asparse_status status = ASPARSE_OK;
  char *file_name = NULL, *object = NULL;
  TRY(asparse_path_split(path, &file_name, &object));
  TRY(asparse_layout_find(file_name, object, true, NULL, layout));
  TRY_THAT(layout->structure == ASPARSE_GENERAL, ASPARSE_ERR_DATA,
           "%s is dense of structure %s; dense matrices are read where they are general", layout->label,
           asparse_structure_name(layout->structure));
cleanup:
  asparse_free(file_name);
  asparse_free(object);
  return status;
}

static asparse_status find(asparse_comm *comm, const char *path, asparse_layout *layout) {
  asparse_status status = ASPARSE_OK;
  asparse_layout_init(layout);
  if (comm->rank == 0) status = find_on_rank_0(path, layout);
  TRY(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Bcast(layout, sizeof *layout, MPI_BYTE, 0, comm->mpi));
cleanup:
  return status;
}

asparse_status asparse_dense_shape(asparse_comm *comm, const char *path, int64_t *m, int64_t *n, asparse_dtype *dtype) {
  asparse_layout layout;
  PASS(find(comm, path, &layout));
  *m = layout.m;
  *n = layout.k;
  *dtype = asparse_element_dtype(layout.values.element);
  return ASPARSE_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct reader {
  asparse_comm *comm;
  asparse_layout layout;
  hid_t file;
  int64_t row_begin;
  asparse_dense *a;
  uint64_t checksum;
} reader;

/* Rows follow each other without gaps, as if ld were n. */
static asparse_status take(void *context, int64_t first, int64_t count, const void *rows) {
  reader *r = context;
  const asparse_dataset *values = &r->layout.values;
  first *= values->cols;
  count *= values->cols;
  asparse_element_to_values(values->element, rows, count, r->a->dtype, r->a->values, first);
  if (r->layout.has_checksum && !asparse_element_is_integer(values->element))
    r->checksum += asparse_checksum_values(ASPARSE_SUM_VALUES, r->row_begin * r->layout.k + first,
                                           asparse_element_dtype(values->element), rows, 0, count);
  return ASPARSE_OK;
}

/* Own rows of columns first … first+count-1. */
static asparse_status take_columns(void *context, int64_t first, int64_t count, const void *columns) {
  asparse_status status = ASPARSE_OK;
  reader *r = context;
  asparse_dense *a = r->a;
  double *values = NULL;
  ALLOC(values, count * a->m);
  asparse_element_to_values(r->layout.values.element, columns, count * a->m, ASPARSE_FP64, values, 0);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < a->m; i++) {
    for (int64_t j = 0; j < count; j++) asparse_store(a->dtype, a->values, i * a->ld + first + j, values[j * a->m + i]);
  }
cleanup:
  asparse_free(values);
  return status;
}

/* Moves rows from distance n to distance ld. */
static void spread_rows(asparse_dense *a) {
  size_t size = asparse_dtype_size(a->dtype);
  char *values = a->values;
  for (int64_t i = a->ld > a->n ? a->m - 1 : 0; i > 0; i--)
    memmove(values + (size_t)(i * a->ld) * size, values + (size_t)(i * a->n) * size, (size_t)a->n * size);
}

static asparse_status check_range(const reader *r) {
  const asparse_dense *a = r->a;
  if (a->n == r->layout.k && r->row_begin >= 0 && a->m <= r->layout.m - r->row_begin) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s is %lld × %lld, but rows %lld … %lld of %lld columns are wanted",
                      r->layout.label, (long long)r->layout.m, (long long)r->layout.k, (long long)r->row_begin,
                      (long long)(r->row_begin + a->m) - 1, (long long)a->n);
}

/* Only when the ranks have read every row once can the sum be compared. */
static asparse_status verify_checksum(reader *r) {
  asparse_status status = ASPARSE_OK;
  int64_t before = 0, out_of_order = 0, total = r->a->m;
  if (!r->layout.has_checksum) return ASPARSE_OK;
  TRY_MPI(MPI_Exscan(&r->a->m, &before, 1, MPI_INT64_T, MPI_SUM, r->comm->mpi));
  out_of_order = r->row_begin != (r->comm->rank == 0 ? 0 : before);
  TRY(asparse_comm_sum(r->comm, &out_of_order, 1));
  TRY(asparse_comm_sum(r->comm, &total, 1));
  if (out_of_order || total != r->layout.m) return ASPARSE_OK;
  int64_t shape[2] = {r->layout.m, r->layout.k};
  if (r->comm->rank == 0) r->checksum += asparse_checksum_int64(ASPARSE_SUM_SHAPE, 0, shape, 0, 2);
  TRY(asparse_checksum_sum(r->comm, &r->checksum));
  TRY(asparse_checksum_compare(r->layout.label, r->checksum, r->layout.checksum));
cleanup:
  return status;
}

asparse_status asparse_dense_read(asparse_comm *comm, const char *path, int64_t row_begin, asparse_dense *a) {
  asparse_status status = ASPARSE_OK;
  char *file = NULL, *object = NULL;
  reader r = {.comm = comm, .file = -1, .row_begin = row_begin, .a = a};
  PASS(find(comm, path, &r.layout));
  status = asparse_path_split(path, &file, &object);
  if (status == ASPARSE_OK) status = check_range(&r);
  TRY(asparse_comm_agree(comm, status));
  TRY(asparse_hdf5_open_all(comm, file, &r.file));
  TRY(asparse_dataset_open(comm, r.file, &r.layout.values));
  if (r.layout.arrangement == ASPARSE_DENSE_BY_COLUMNS) {
    status = asparse_dataset_read_across(comm, &r.layout.values, a->n, row_begin, a->m, take_columns, &r);
    goto cleanup;
  }
  int64_t rows_per_row = r.layout.values.rank == 1 ? a->n : 1; /* rows of the dataset in one of the matrix */
  TRY(asparse_dataset_read(comm, &r.layout.values, row_begin * rows_per_row, a->m * rows_per_row, NULL, take, &r));
  spread_rows(a);
  TRY(verify_checksum(&r));
cleanup:
  asparse_dataset_close(&r.layout.values);
  CLOSE_HDF5(H5Fclose, r.file);
  asparse_free(file);
  asparse_free(object);
  return status;
}

/* ---- existence ------------------------------------------------------------------------------ */

asparse_status asparse_object_exists(asparse_comm *comm, const char *file, const char *object, bool *exists) {
  asparse_status status = ASPARSE_OK;
  hid_t id = -1;
  int found = 0;
  if (comm->rank == 0) {
    bool there = false;
    status = asparse_hdf5_open(file, &id);
    if (status == ASPARSE_OK) status = asparse_hdf5_exists(id, object, &there);
    found = there;
    CLOSE_HDF5(H5Fclose, id);
  }
  TRY(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Bcast(&found, 1, MPI_INT, 0, comm->mpi));
  *exists = found != 0;
cleanup:
  return status;
}
