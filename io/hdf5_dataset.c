#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "io/budget.h"
#include "io/hdf5_lzf.h"
#include "io/hdf5_read.h"

enum {
  MOST_PIECE_BYTES = 16 << 20,
  THREAD_BYTES = 1 << 20 /* of a piece: it stays in cache while it is converted, checked and summed */
};

int64_t asparse_piece_bytes(const asparse_comm *comm) {
  return comm->message_bytes < MOST_PIECE_BYTES ? comm->message_bytes : MOST_PIECE_BYTES;
}

/* ---- inspection ----------------------------------------------------------------------------- */

static asparse_status inspect_type(hid_t id, asparse_dataset *dataset) {
  asparse_status status = ASPARSE_OK;
  hid_t type = -1, base = -1;
  TRY_HDF5(ASPARSE_ERR_DATA, type = H5Dget_type(id));
  H5T_class_t class = H5Tget_class(type);
  if (class == H5T_ENUM) { /* truth values of h5py and PyTables */
    TRY_HDF5(ASPARSE_ERR_DATA, base = H5Tget_super(type));
    class = H5Tget_class(base);
  } else {
    TRY_HDF5(ASPARSE_ERR_DATA, base = H5Tcopy(type));
  }
  size_t size = H5Tget_size(base);
  TRY_THAT(class == H5T_INTEGER || class == H5T_FLOAT, ASPARSE_ERR_DATA,
           "dataset %s holds %s, expected integer or floating-point numbers", dataset->path,
           class == H5T_STRING     ? "text"
           : class == H5T_COMPOUND ? "compound values (complex numbers?)"
                                   : "no numbers");
  TRY_THAT(size <= 8, ASPARSE_ERR_DATA,
           "dataset %s holds numbers of %zu bytes, at most 8 are read; store them as float64 or int64", dataset->path,
           size);
  int width = size <= 1 ? 0 : size <= 2 ? 1 : size <= 4 ? 2 : 3; /* the narrowest that holds them */
  if (class == H5T_FLOAT) dataset->element = size <= 4 ? ASPARSE_FLOAT32 : ASPARSE_FLOAT64;
  else dataset->element = (H5Tget_sign(base) == H5T_SGN_2 ? ASPARSE_INT8 : ASPARSE_UINT8) + (asparse_element)width;
cleanup:
  CLOSE_HDF5(H5Tclose, base);
  CLOSE_HDF5(H5Tclose, type);
  return status;
}

/* Bytes of an unpacked chunk in the file, 0 where there are no chunks. HDF5 keeps them below 2^32. */
static int64_t count_chunk_bytes(hid_t creation, size_t element_bytes) {
  hsize_t chunk[H5S_MAX_RANK];
  int64_t bytes = (int64_t)element_bytes;
  if (H5Pget_layout(creation) != H5D_CHUNKED) return 0;
  int rank = H5Pget_chunk(creation, H5S_MAX_RANK, chunk);
  for (int i = 0; i < rank; i++) {
    if (chunk[i] > INT64_MAX || __builtin_mul_overflow(bytes, (int64_t)chunk[i], &bytes)) return INT64_MAX;
  }
  return bytes;
}

/* HDF5 trusts that a filter gives a whole chunk: LZF gives as many bytes as its parameter says. */
static asparse_status inspect_filters(hid_t creation, int64_t chunk_bytes, const char *path) {
  int n_filters = H5Pget_nfilters(creation);
  for (int i = 0; i < n_filters; i++) {
    unsigned flags = 0, config = 0, values[ASPARSE_LZF_CHUNK_BYTES + 1] = {0};
    size_t n_values = ASPARSE_LZF_CHUNK_BYTES + 1;
    char name[64] = "";
    H5Z_filter_t filter = H5Pget_filter2(creation, (unsigned)i, &flags, &n_values, values, sizeof name, name, &config);
    if (filter >= 0 && H5Zfilter_avail(filter) <= 0) {
      H5Eclear2(H5E_DEFAULT);
      return ASPARSE_FAIL(
          ASPARSE_ERR_DATA,
          "dataset %s is compressed by filter %d (%s), which is not installed; set HDF5_PLUGIN_PATH, or "
          "rewrite the file with h5repack -f GZIP=1",
          path, (int)filter, name[0] ? name : "unnamed");
    }
    if (filter == ASPARSE_LZF_FILTER && values[ASPARSE_LZF_CHUNK_BYTES] < chunk_bytes)
      return ASPARSE_FAIL(ASPARSE_ERR_DATA, "dataset %s: its LZF filter unpacks %u bytes, but its chunks have %lld",
                          path, values[ASPARSE_LZF_CHUNK_BYTES], (long long)chunk_bytes);
  }
  return ASPARSE_OK;
}

static asparse_status inspect_storage(hid_t id, asparse_dataset *dataset) {
  asparse_status status = ASPARSE_OK;
  hid_t creation = -1, type = -1;
  TRY_HDF5(ASPARSE_ERR_DATA, creation = H5Dget_create_plist(id));
  TRY_HDF5(ASPARSE_ERR_DATA, type = H5Dget_type(id));
  TRY_THAT(H5Pget_layout(creation) != H5D_VIRTUAL && H5Pget_external_count(creation) == 0, ASPARSE_ERR_DATA,
           "dataset %s keeps its contents in other files, which is not followed; copy it into one file with h5repack",
           dataset->path);
  dataset->chunk_bytes = count_chunk_bytes(creation, H5Tget_size(type));
  TRY(inspect_filters(creation, dataset->chunk_bytes, dataset->path));
  TRY(asparse_budget_allows(dataset->path, dataset->chunk_bytes, "a chunk"));
cleanup:
  CLOSE_HDF5(H5Tclose, type);
  CLOSE_HDF5(H5Pclose, creation);
  return status;
}

static asparse_status inspect_shape(hid_t id, asparse_dataset *dataset) {
  asparse_status status = ASPARSE_OK;
  hid_t space = -1;
  hsize_t shape[2] = {0, 1};
  int64_t bytes = 0;
  TRY_HDF5(ASPARSE_ERR_DATA, space = H5Dget_space(id));
  dataset->rank = H5Sget_simple_extent_ndims(space);
  TRY_THAT(dataset->rank == 1 || dataset->rank == 2, ASPARSE_ERR_DATA, "dataset %s has %d dimensions, expected 1 or 2",
           dataset->path, dataset->rank);
  TRY_HDF5(ASPARSE_ERR_DATA, H5Sget_simple_extent_dims(space, shape, NULL));
  dataset->rows = (int64_t)shape[0];
  dataset->cols = (int64_t)shape[1];
  TRY_THAT(shape[0] <= INT64_MAX / 2 && shape[1] <= INT64_MAX / 2 &&
               !__builtin_mul_overflow(dataset->rows, dataset->cols, &bytes) &&
               !__builtin_mul_overflow(bytes, (int64_t)8, &bytes),
           ASPARSE_ERR_DATA, "dataset %s declares %llu × %llu elements, more than 64-bit sizes hold", dataset->path,
           (unsigned long long)shape[0], (unsigned long long)shape[1]);
  TRY_THAT(dataset->cols <= INT_MAX / 8, ASPARSE_ERR_DATA, "dataset %s has %lld columns, at most %d are read",
           dataset->path, (long long)dataset->cols, INT_MAX / 8);
cleanup:
  CLOSE_HDF5(H5Sclose, space);
  return status;
}

/* Finds the dataset and names it. */
static asparse_status open_named(hid_t file, const char *group, const char *name, asparse_dataset *dataset, hid_t *id) {
  asparse_status status = ASPARSE_OK;
  char file_name[256] = "";
  bool exists = false, group_is_root = strcmp(group, "/") == 0 || group[0] == '\0';
  memset(dataset, 0, sizeof *dataset);
  dataset->id = -1;
  const char *separator = group_is_root || name[0] == '\0' ? "" : "/";
  int length = snprintf(dataset->path, sizeof dataset->path, "%s%s%s", group_is_root ? "/" : group, separator, name);
  TRY_THAT(length < (int)sizeof dataset->path, ASPARSE_ERR_USAGE, "the object name %.40s… is too long", group);
  H5Fget_name(file, file_name, sizeof file_name);
  snprintf(dataset->label, sizeof dataset->label, "%s::%s", file_name, dataset->path);
  TRY(asparse_hdf5_exists(file, dataset->path, &exists));
  TRY_THAT(exists, ASPARSE_ERR_DATA, "dataset %s is missing", dataset->path);
  TRY(asparse_hdf5_open_object(file, dataset->path, id));
  TRY_THAT(H5Iget_type(*id) == H5I_DATASET, ASPARSE_ERR_DATA, "%s is not a dataset", dataset->path);
  TRY(inspect_type(*id, dataset));
  TRY(inspect_storage(*id, dataset));
cleanup:
  return status;
}

asparse_status asparse_dataset_inspect(hid_t file, const char *group, const char *name, asparse_dataset *dataset) {
  asparse_status status = ASPARSE_OK;
  hid_t id = -1;
  TRY(open_named(file, group, name, dataset, &id));
  TRY(inspect_shape(id, dataset));
cleanup:
  CLOSE_HDF5(H5Oclose, id);
  return status;
}

asparse_status asparse_dataset_read_integers(hid_t file, const char *group, const char *name, int n, int64_t *values) {
  asparse_status status = ASPARSE_OK;
  asparse_dataset dataset;
  hid_t id = -1, space = -1;
  TRY(open_named(file, group, name, &dataset, &id));
  TRY_HDF5(ASPARSE_ERR_DATA, space = H5Dget_space(id));
  TRY_THAT(asparse_element_is_integer(dataset.element) && H5Sget_simple_extent_npoints(space) == n, ASPARSE_ERR_DATA,
           "dataset %s does not hold %d integer%s", dataset.path, n, n == 1 ? "" : "s");
  TRY_HDF5(ASPARSE_ERR_DATA, H5Dread(id, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
cleanup:
  CLOSE_HDF5(H5Sclose, space);
  CLOSE_HDF5(H5Oclose, id);
  return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

asparse_status asparse_dataset_open(asparse_comm *comm, hid_t file, asparse_dataset *dataset) {
  asparse_status status = ASPARSE_OK;
  hid_t access = -1;
  TRY_HDF5(ASPARSE_ERR_RUNTIME, access = H5Pcreate(H5P_DATASET_ACCESS));
  /* A chunk that does not fit into the cache would be decompressed again for every piece. */
  if (dataset->chunk_bytes > 1 << 20)
    TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_chunk_cache(access, H5D_CHUNK_CACHE_NSLOTS_DEFAULT,
                                                     (size_t)dataset->chunk_bytes, H5D_CHUNK_CACHE_W0_DEFAULT));
  TRY_HDF5(ASPARSE_ERR_DATA, dataset->id = H5Dopen2(file, dataset->path, access));
cleanup:
  CLOSE_HDF5(H5Pclose, access);
  return asparse_comm_agree(comm, status);
}

void asparse_dataset_close(asparse_dataset *dataset) { CLOSE_HDF5(H5Dclose, dataset->id); }

/* Rows first … first+count-1 of the dataset; count ≥ 1. */
static asparse_status read_piece(const asparse_dataset *dataset, int64_t first, int64_t count, void *rows) {
  asparse_status status = ASPARSE_OK;
  hid_t in_file = -1, in_memory = -1;
  hsize_t start[2] = {(hsize_t)first, 0}, shape[2] = {(hsize_t)count, (hsize_t)dataset->cols};
  TRY_HDF5(ASPARSE_ERR_RUNTIME, in_memory = H5Screate_simple(dataset->rank, shape, NULL));
  TRY_HDF5(ASPARSE_ERR_DATA, in_file = H5Dget_space(dataset->id));
  TRY_HDF5(ASPARSE_ERR_DATA, H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, shape, NULL));
  TRY_HDF5(ASPARSE_ERR_DATA,
           H5Dread(dataset->id, asparse_element_hdf5(dataset->element), in_memory, in_file, H5P_DEFAULT, rows));
cleanup:
  if (status != ASPARSE_OK) asparse_error_prefix("dataset %s", dataset->label);
  CLOSE_HDF5(H5Sclose, in_memory);
  CLOSE_HDF5(H5Sclose, in_file);
  return status;
}

/* Transfers are independent: a rank's rows are one run of bytes of a contiguous dataset, which collective transfers
 * would only send through other ranks; chunks are cached and not decompressed once per piece; and Open MPI 4.1's own
 * MPI-IO (OMPIO) returns wrong data where collective reads of three ranks overlap. */
asparse_status asparse_dataset_read(asparse_comm *comm, const asparse_dataset *dataset, int64_t row_begin,
                                    int64_t count, void *to, asparse_take_rows take, void *context) {
  asparse_status status = ASPARSE_OK;
  char *stage = NULL;
  int64_t row_bytes = dataset->cols * (int64_t)asparse_element_size(dataset->element);
  int64_t bytes = (int64_t)omp_get_max_threads() * THREAD_BYTES, most = asparse_piece_bytes(comm);
  int64_t piece = row_bytes > 0 ? (bytes < most ? bytes : most) / row_bytes : 0;
  if (piece < 1) piece = 1;
  if (row_bytes == 0) count = 0;
  if (!to) {
    stage = asparse_malloc((count < piece ? count : piece) * row_bytes, 1, "reading buffer");
    if (!stage) status = ASPARSE_ERR_MEMORY;
  }
  for (int64_t first = 0; first < count && status == ASPARSE_OK; first += piece) {
    int64_t rows = count - first < piece ? count - first : piece;
    char *place = to ? (char *)to + first * row_bytes : stage;
    status = read_piece(dataset, row_begin + first, rows, place);
    if (status == ASPARSE_OK && take) status = take(context, first, rows, place);
  }
  asparse_free(stage);
  return asparse_comm_agree(comm, status);
}

typedef struct int64_target {
  asparse_element element;
  int64_t *to;
} int64_target;

static asparse_status take_int64(void *context, int64_t first, int64_t count, const void *rows) {
  int64_target *target = context;
  asparse_element_to_int64(target->element, rows, count, target->to + first);
  return ASPARSE_OK;
}

asparse_status asparse_dataset_read_int64(asparse_comm *comm, const asparse_dataset *dataset, int64_t begin,
                                          int64_t count, int64_t *to) {
  int64_target target = {dataset->element, to};
  return asparse_dataset_read(comm, dataset, begin, count, NULL, take_int64, &target);
}
