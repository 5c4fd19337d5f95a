/* A group of indptr, indices and data that says no more, as scripts write SciPy's arrays: which way it is
 * compressed, the user says unless the shape tells. The shape is its attribute or dataset "shape", else what pointers
 * and largest index need. */
#include "io/convention.h"

static asparse_matrix_kind detect(const asparse_place *place) {
  bool found = asparse_place_has(place, NULL, "indptr") && asparse_place_has(place, NULL, "indices") &&
               asparse_place_has(place, NULL, "data");
  return found ? ASPARSE_IS_SPARSE : ASPARSE_IS_NO_MATRIX;
}

/* Attribute or dataset "shape"; known tells whether there is one. */
static asparse_status read_shape(const asparse_place *place, bool *known, int64_t shape[2]) {
  *known = true;
  if (asparse_place_has(place, "shape", NULL)) return asparse_hdf5_read_integers(place->object, "shape", 2, shape);
  if (asparse_place_has(place, NULL, "shape"))
    return asparse_dataset_read_integers(place->file, place->path, "shape", 2, shape);
  *known = false;
  return ASPARSE_OK;
}

/* What the user says, else what the number of pointers tells where it fits rows or columns but not both. */
static asparse_status choose(const asparse_place *place, int64_t lines, const int64_t *shape,
                             asparse_compression *compression) {
  *compression = place->options->compression;
  if (*compression != ASPARSE_COMPRESSION_UNSAID) return ASPARSE_OK;
  if (shape && (lines == shape[0]) != (lines == shape[1])) {
    *compression = lines == shape[0] ? ASPARSE_COMPRESSION_CSR : ASPARSE_COMPRESSION_CSC;
    return ASPARSE_OK;
  }
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE,
                      "group %s holds indptr, indices and data, but does not say whether of rows or columns; say it: "
                      "--layout csr or --layout csc",
                      place->path);
}

static asparse_status describe(const asparse_place *place, asparse_layout *layout) {
  static const char *const names[3] = {"indptr", "indices", "data"};
  asparse_compression compression = ASPARSE_COMPRESSION_UNSAID;
  int64_t shape[2];
  bool known = false;
  PASS(asparse_layout_compressed(place, place->path, names, ASPARSE_MUST_BE_THERE, layout));
  PASS(read_shape(place, &known, shape));
  int64_t lines = layout->pointers.rows - 1;
  if (lines < 0) return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s is empty", layout->pointers.path);
  PASS(choose(place, lines, known ? shape : NULL, &compression));
  bool by_rows = compression == ASPARSE_COMPRESSION_CSR;
  layout->arrangement = by_rows ? ASPARSE_BY_ROWS : ASPARSE_BY_COLUMNS;
  layout->m = by_rows ? lines : ASPARSE_UNKNOWN_EXTENT;
  layout->k = by_rows ? ASPARSE_UNKNOWN_EXTENT : lines;
  if (known) PASS(asparse_layout_shape(shape, layout->arrangement, layout));
  asparse_layout_source(by_rows ? "bare CSR" : "bare CSC", layout);
  return ASPARSE_OK;
}

const asparse_convention asparse_convention_bare = {"bare indptr/indices/data", detect, describe};
