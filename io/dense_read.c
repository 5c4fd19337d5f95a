#include <stdio.h>
#include <string.h>

#include "io/binsparse.h"
#include "io/checksum.h"
#include "io/convention.h"

/* A dense matrix as a file holds it: m × n, in a dataset of that shape, or row by row in a 1-D one. */
typedef struct dense_layout {
  char label[800];
  int64_t m, n;
  asparse_dataset values;
  bool has_checksum;
  uint64_t checksum;
} dense_layout;

/* ---- finding -------------------------------------------------------------------------------- */

static asparse_status describe_group(hid_t file, hid_t group, const char *path, dense_layout *layout) {
  asparse_status status = ASPARSE_OK;
  asparse_binsparse d;
  char *text = NULL;
  int64_t count = 0;
  TRY_THAT(H5Aexists(group, ASPARSE_BINSPARSE_ATTRIBUTE) > 0, ASPARSE_ERR_DATA,
           "group %s holds no dense matrix (no attribute \"binsparse\"); name a dataset, as in file.h5::/B", path);
  TRY(asparse_hdf5_read_text(group, ASPARSE_BINSPARSE_ATTRIBUTE, &text));
  TRY(asparse_binsparse_parse(text, &d));
  TRY_THAT((strcmp(d.format, "DMATR") == 0 || strcmp(d.format, "DMAT") == 0 || strcmp(d.format, "DVEC") == 0) &&
               d.structure == ASPARSE_GENERAL && !d.iso,
           ASPARSE_ERR_DATA,
           "an array in Binsparse format %s, structure %s, values %s; dense matrices are read by rows (DMATR, DVEC), "
           "general and not iso",
           d.format, asparse_structure_name(d.structure), d.value_type);
  layout->m = d.shape[0];
  layout->n = d.shape[1];
  TRY(asparse_dataset_inspect(file, path, "values", &layout->values));
  TRY_THAT(!__builtin_mul_overflow(layout->m, layout->n, &count) &&
               (layout->values.rank == 1 ? layout->values.rows == count
                                         : layout->values.rows == layout->m && layout->values.cols == layout->n),
           ASPARSE_ERR_DATA, "%s has %lld × %lld elements, expected those of a %lld × %lld matrix", layout->values.path,
           (long long)layout->values.rows, (long long)layout->values.cols, (long long)layout->m, (long long)layout->n);
  TRY(asparse_checksum_read(group, &layout->has_checksum, &layout->checksum));
cleanup:
  asparse_free(text);
  return status;
}

static bool may_be_dense(hid_t object) {
  char *text = NULL;
  asparse_binsparse descriptor;
  bool dense = H5Iget_type(object) == H5I_DATASET;
  if (!dense && H5Aexists(object, ASPARSE_BINSPARSE_ATTRIBUTE) > 0)
    dense = asparse_hdf5_read_text(object, ASPARSE_BINSPARSE_ATTRIBUTE, &text) == ASPARSE_OK &&
            asparse_binsparse_parse(text, &descriptor) == ASPARSE_OK && asparse_binsparse_is_dense(descriptor.format);
  asparse_error_clear();
  asparse_free(text);
  return dense;
}

static asparse_status describe(hid_t file, const char *wanted, dense_layout *layout) {
  asparse_status status = ASPARSE_OK;
  hid_t object = -1;
  char path[512];
  TRY_THAT(strlen(wanted) < sizeof path, ASPARSE_ERR_USAGE, "the object name %.40s… is too long", wanted);
  strcpy(path, wanted);
  if (!wanted[0]) TRY(asparse_hdf5_find(file, may_be_dense, "dense matrix", path));
  TRY(asparse_hdf5_open_object(file, path, &object));
  size_t used = strlen(layout->label);
  snprintf(layout->label + used, sizeof layout->label - used, "::%s", path);
  if (H5Iget_type(object) == H5I_GROUP) {
    TRY(describe_group(file, object, path, layout));
  } else {
    TRY(asparse_dataset_inspect(file, path, "", &layout->values));
    layout->m = layout->values.rows;
    layout->n = layout->values.cols;
  }
cleanup:
  CLOSE_HDF5(H5Oclose, object);
  return status;
}

static asparse_status find_on_rank_0(const char *path, dense_layout *layout) {
  asparse_status status = ASPARSE_OK;
  char *file_name = NULL, *object = NULL;
  hid_t file = -1;
  TRY(asparse_path_split(path, &file_name, &object));
  TRY(asparse_hdf5_open(file_name, &file));
  snprintf(layout->label, sizeof layout->label, "%.250s", file_name);
  status = describe(file, object, layout);
  if (status != ASPARSE_OK) asparse_error_prefix("%s", layout->label);
cleanup:
  CLOSE_HDF5(H5Fclose, file);
  asparse_free(file_name);
  asparse_free(object);
  return status;
}

static asparse_status find(asparse_comm *comm, const char *path, dense_layout *layout) {
  asparse_status status = ASPARSE_OK;
  memset(layout, 0, sizeof *layout);
  layout->values.id = -1;
  if (comm->rank == 0) status = find_on_rank_0(path, layout);
  TRY(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Bcast(layout, sizeof *layout, MPI_BYTE, 0, comm->mpi));
cleanup:
  return status;
}

asparse_status asparse_dense_shape(asparse_comm *comm, const char *path, int64_t *m, int64_t *n, asparse_dtype *dtype) {
  dense_layout layout;
  PASS(find(comm, path, &layout));
  *m = layout.m;
  *n = layout.n;
  *dtype = asparse_element_dtype(layout.values.element);
  return ASPARSE_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct reader {
  asparse_comm *comm;
  dense_layout layout;
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
    r->checksum += asparse_checksum_values(ASPARSE_SUM_VALUES, r->row_begin * r->layout.n + first,
                                           asparse_element_dtype(values->element), rows, 0, count);
  return ASPARSE_OK;
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
  if (a->n == r->layout.n && r->row_begin >= 0 && a->m <= r->layout.m - r->row_begin) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s is %lld × %lld, but rows %lld … %lld of %lld columns are wanted",
                      r->layout.label, (long long)r->layout.m, (long long)r->layout.n, (long long)r->row_begin,
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
  int64_t shape[2] = {r->layout.m, r->layout.n};
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
  int64_t rows_per_row = r.layout.values.rank == 1 ? a->n : 1; /* rows of the dataset in one of the matrix */
  TRY(asparse_dataset_read(comm, &r.layout.values, row_begin * rows_per_row, a->m * rows_per_row, take, &r));
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
