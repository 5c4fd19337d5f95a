/* Reading the same range of every line of a dataset: rows of a matrix that is stored by columns. */
#include "io/hdf5_read.h"

typedef struct range {
  int64_t line_length;
  int64_t begin, count; /* of each line */
} range;

/* Elements of lines first … first+n-1, one line after the other. n ≥ 1. */
static asparse_status read_lines(const asparse_dataset *dataset, const range *range, int64_t first, int64_t n,
                                 void *elements) {
  asparse_status status = ASPARSE_OK;
  hid_t in_file = -1, in_memory = -1;
  hsize_t total = (hsize_t)(n * range->count), lines = (hsize_t)n, length = (hsize_t)range->line_length;
  hsize_t block = (hsize_t)range->count, start = (hsize_t)(first * range->line_length + range->begin);
  hsize_t start_2d[2] = {(hsize_t)first, (hsize_t)range->begin}, shape[2] = {lines, block};
  TRY_HDF5(ASPARSE_ERR_RUNTIME, in_memory = H5Screate_simple(1, &total, NULL));
  TRY_HDF5(ASPARSE_ERR_DATA, in_file = H5Dget_space(dataset->id));
  if (dataset->rank == 1)
    TRY_HDF5(ASPARSE_ERR_DATA, H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &start, &length, &lines, &block));
  else TRY_HDF5(ASPARSE_ERR_DATA, H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start_2d, NULL, shape, NULL));
  TRY_HDF5(ASPARSE_ERR_DATA,
           H5Dread(dataset->id, asparse_element_hdf5(dataset->element), in_memory, in_file, H5P_DEFAULT, elements));
cleanup:
  if (status != ASPARSE_OK) asparse_error_prefix("dataset %s", dataset->label);
  CLOSE_HDF5(H5Sclose, in_memory);
  CLOSE_HDF5(H5Sclose, in_file);
  return status;
}

/* Transfers are independent, as those of hdf5_dataset.c. */
asparse_status asparse_dataset_read_across(asparse_comm *comm, const asparse_dataset *dataset, int64_t lines,
                                           int64_t begin, int64_t count, asparse_take_rows take, void *context) {
  asparse_status status = ASPARSE_OK;
  void *stage = NULL;
  int64_t elements = dataset->rows * dataset->cols, size = (int64_t)asparse_element_size(dataset->element);
  range range = {.line_length = lines > 0 ? elements / lines : 0, .begin = begin, .count = count};
  if (count > 0 && lines > 0) {
    int64_t piece = asparse_piece_bytes(comm) / (count * size);
    piece = piece < 1 ? 1 : piece > lines ? lines : piece;
    stage = asparse_malloc(piece * count, (size_t)size, "reading buffer");
    if (!stage) status = ASPARSE_ERR_MEMORY;
    for (int64_t first = 0; first < lines && status == ASPARSE_OK; first += piece) {
      int64_t n = lines - first < piece ? lines - first : piece;
      status = read_lines(dataset, &range, first, n, stage);
      if (status == ASPARSE_OK) status = take(context, first, n, stage);
    }
  }
  asparse_free(stage);
  return asparse_comm_agree(comm, status);
}
