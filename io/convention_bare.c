/* A group of indptr, indices and data that says no more, as scripts write SciPy's arrays: the user says which way it
 * is compressed. The shape is its attribute or dataset "shape", else what pointers and largest index need. */
#include "io/convention.h"

static asparse_matrix_kind detect(const asparse_place *place) {
  bool found = asparse_place_has(place, NULL, "indptr") && asparse_place_has(place, NULL, "indices") &&
               asparse_place_has(place, NULL, "data");
  return found ? ASPARSE_IS_SPARSE : ASPARSE_IS_NO_MATRIX;
}

static asparse_status read_shape(const asparse_place *place, bool by_rows, asparse_layout *layout) {
  int64_t shape[2];
  asparse_arrangement arrangement = by_rows ? ASPARSE_BY_ROWS : ASPARSE_BY_COLUMNS;
  if (asparse_place_has(place, "shape", NULL)) {
    PASS(asparse_hdf5_read_integers(place->object, "shape", 2, shape));
    return asparse_layout_shape(shape, arrangement, layout);
  }
  if (asparse_place_has(place, NULL, "shape")) {
    PASS(asparse_dataset_read_integers(place->file, place->path, "shape", 2, shape));
    return asparse_layout_shape(shape, arrangement, layout);
  }
  int64_t lines = layout->pointers.rows - 1;
  if (lines < 0) return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s is empty", layout->pointers.path);
  layout->m = by_rows ? lines : ASPARSE_UNKNOWN_EXTENT;
  layout->k = by_rows ? ASPARSE_UNKNOWN_EXTENT : lines;
  layout->arrangement = arrangement;
  return ASPARSE_OK;
}

static asparse_status describe(const asparse_place *place, asparse_layout *layout) {
  static const char *const names[3] = {"indptr", "indices", "data"};
  asparse_compression compression = place->options->compression;
  if (compression == ASPARSE_COMPRESSION_UNSAID)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE,
                        "group %s holds indptr, indices and data, but does not say whether of rows or columns; say it: "
                        "--layout csr or --layout csc",
                        place->path);
  bool by_rows = compression == ASPARSE_COMPRESSION_CSR;
  PASS(asparse_layout_compressed(place, place->path, names, ASPARSE_MUST_BE_THERE, layout));
  PASS(read_shape(place, by_rows, layout));
  asparse_layout_source(by_rows ? "bare CSR" : "bare CSC", layout);
  return ASPARSE_OK;
}

const asparse_convention asparse_convention_bare = {"bare indptr/indices/data", detect, describe};
