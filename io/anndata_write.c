/* A sparse matrix as AnnData (https://anndata.readthedocs.io/en/latest/fileformat-prose.html): /X with row and column
 * numbers as names of observations and variables. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/csr_arrays.h"
#include "io/exporter.h"

enum { NAME_LENGTH = 20, NAMES_AT_ONCE = 1 << 16 };

static asparse_status write_encoding(hid_t object, const char *type, const char *version) {
  PASS(asparse_hdf5_write_text(object, "encoding-type", type));
  return asparse_hdf5_write_text(object, "encoding-version", version);
}

static asparse_status write_array(hid_t object, const char *name, hid_t type, hsize_t count, const void *elements) {
  asparse_status status = ASPARSE_OK;
  hid_t space = -1, attribute = -1;
  TRY_HDF5(ASPARSE_ERR_RUNTIME, space = H5Screate_simple(1, &count, NULL));
  TRY_HDF5(ASPARSE_ERR_IO, attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
  if (count > 0) TRY_HDF5(ASPARSE_ERR_IO, H5Awrite(attribute, type, elements));
cleanup:
  CLOSE_HDF5(H5Aclose, attribute);
  CLOSE_HDF5(H5Sclose, space);
  return status;
}

/* ---- names ------------------------------------------------------------------------------------ */

/* Names first … first+count-1, which are these numbers in `length` bytes each, filled up with zeros. */
static asparse_status write_some_names(hid_t dataset, hid_t type, size_t length, int64_t first, int64_t count,
                                       char *names) {
  asparse_status status = ASPARSE_OK;
  hid_t in_memory = -1, in_file = -1;
  hsize_t start = (hsize_t)first, extent = (hsize_t)count;
  char name[NAME_LENGTH + 1];
  memset(names, 0, (size_t)count * length);
  for (int64_t i = 0; i < count; i++)
    memcpy(names + (size_t)i * length, name, (size_t)snprintf(name, sizeof name, "%" PRId64, first + i));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, in_memory = H5Screate_simple(1, &extent, NULL));
  TRY_HDF5(ASPARSE_ERR_IO, in_file = H5Dget_space(dataset));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &start, NULL, &extent, NULL));
  TRY_HDF5(ASPARSE_ERR_IO, H5Dwrite(dataset, type, in_memory, in_file, H5P_DEFAULT, names));
cleanup:
  CLOSE_HDF5(H5Sclose, in_file);
  CLOSE_HDF5(H5Sclose, in_memory);
  return status;
}

/* Dataset "_index" of a frame: text of fixed length, since ranks cannot share a heap of variable ones. */
static asparse_status write_names(hid_t frame, int64_t count) {
  asparse_status status = ASPARSE_OK;
  hid_t type = -1, space = -1, creation = -1, dataset = -1;
  hsize_t extent = (hsize_t)count;
  char *names = NULL;
  const size_t length = (size_t)snprintf(NULL, 0, "%" PRId64, count > 0 ? count - 1 : 0);
  const int64_t at_once = count < NAMES_AT_ONCE ? count : NAMES_AT_ONCE;
  ALLOC_BYTES(names, at_once, length);
  TRY(asparse_hdf5_text_type(length, &type));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, space = H5Screate_simple(1, &extent, NULL));
  TRY(asparse_hdf5_creation(H5P_DATASET_CREATE, &creation));
  TRY_HDF5(ASPARSE_ERR_IO, dataset = H5Dcreate2(frame, "_index", type, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  TRY(write_encoding(dataset, "string-array", "0.2.0"));
  for (int64_t first = 0; first < count; first += at_once)
    TRY(write_some_names(dataset, type, length, first, count - first < at_once ? count - first : at_once, names));
cleanup:
  CLOSE_HDF5(H5Dclose, dataset);
  CLOSE_HDF5(H5Pclose, creation);
  CLOSE_HDF5(H5Sclose, space);
  CLOSE_HDF5(H5Tclose, type);
  asparse_free(names);
  return status;
}

/* ---- groups ----------------------------------------------------------------------------------- */

static asparse_status create_group(hid_t file, const char *name, const char *type, const char *version, hid_t *group) {
  asparse_status status = ASPARSE_OK;
  hid_t creation = -1;
  TRY(asparse_hdf5_creation(H5P_GROUP_CREATE, &creation));
  TRY_HDF5(ASPARSE_ERR_IO, *group = H5Gcreate2(file, name, H5P_DEFAULT, creation, H5P_DEFAULT));
  TRY(write_encoding(*group, type, version));
cleanup:
  CLOSE_HDF5(H5Pclose, creation);
  return status;
}

/* Group obs or var: names and no columns. */
static asparse_status write_frame(hid_t file, const char *name, int64_t count) {
  asparse_status status = ASPARSE_OK;
  hid_t frame = -1, type = -1;
  TRY(create_group(file, name, "dataframe", "0.2.0", &frame));
  TRY(asparse_hdf5_write_text(frame, "_index", "_index"));
  TRY(asparse_hdf5_text_type(1, &type));
  TRY(write_array(frame, "column-order", type, 0, NULL));
  TRY(write_names(frame, count));
cleanup:
  CLOSE_HDF5(H5Tclose, type);
  CLOSE_HDF5(H5Gclose, frame);
  return status;
}

/* All but the arrays of /X. Local, by the rank that holds the file. */
static asparse_status write_frames(hid_t file, const asparse_csr *a) {
  asparse_status status = ASPARSE_OK;
  const int64_t shape[2] = {a->m, a->k};
  hid_t x = -1;
  TRY(write_encoding(file, "anndata", "0.1.0"));
  TRY(create_group(file, "X", "csr_matrix", "0.1.0", &x));
  TRY(write_array(x, "shape", H5T_NATIVE_INT64, 2, shape));
  TRY(write_frame(file, "obs", a->m));
  TRY(write_frame(file, "var", a->k));
cleanup:
  CLOSE_HDF5(H5Gclose, x);
  return status;
}

static asparse_status write_all(asparse_writer *writer, const asparse_csr_arrays *s,
                                const asparse_provenance *provenance) {
  PASS(asparse_writer_provenance(writer, provenance));
  PASS(asparse_writer_agree(writer, writer->file >= 0 ? write_frames(writer->file, s->a) : ASPARSE_OK));
  return asparse_csr_arrays_write(writer, s);
}

asparse_status asparse_anndata_write(asparse_comm *comm, const char *path, const asparse_csr *a, const char *value_type,
                                     const asparse_provenance *provenance) {
  asparse_writer writer;
  asparse_csr_arrays s = {.pointers = "X/indptr", .indices = "X/indices", .values = "X/data"};
  (void)value_type; /* AnnData keeps no patterns */
  PASS(asparse_csr_arrays_place(comm, a, &s));
  /* Signed, as SciPy has them: anndata takes them as they are. */
  s.pointer_element = a->k <= INT32_MAX && s.nnz <= INT32_MAX ? ASPARSE_INT32 : ASPARSE_INT64;
  s.value_element = asparse_element_of_dtype(a->dtype);
  PASS(asparse_writer_begin(comm, path, &writer));
  return asparse_writer_end(&writer, write_all(&writer, &s, provenance));
}
