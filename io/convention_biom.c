/* BIOM 2.1 (https://biom-format.org/documentation/format_versions/biom-2.1.html): attribute "shape" of the root;
 * the same matrix twice, by rows in /observation/matrix and by columns in /sample/matrix. */
#include <string.h>

#include "io/convention.h"

static const char rows_path[] = "/observation/matrix", columns_path[] = "/sample/matrix";

static bool is_at(const asparse_place *place, const char *path) {
  return strcmp(place->path + (place->path[0] == '/'), path + 1) == 0;
}

static asparse_status open_root(const asparse_place *place, asparse_place *root) {
  *root = (asparse_place){
      .file = place->file, .object = -1, .path = "/", .options = place->options, .unknown = place->unknown};
  return asparse_hdf5_open_object(place->file, "/", &root->object);
}

/* The root, or one of the two groups of such a root. */
static asparse_matrix_kind detect(const asparse_place *place) {
  asparse_place root;
  if (!is_at(place, "/") && !is_at(place, rows_path) && !is_at(place, columns_path)) return ASPARSE_IS_NO_MATRIX;
  bool found = open_root(place, &root) == ASPARSE_OK && asparse_place_has(&root, "shape", "observation") &&
               asparse_place_says(&root, "format-url", "biom");
  CLOSE_HDF5(H5Oclose, root.object);
  return found ? ASPARSE_IS_SPARSE : ASPARSE_IS_NO_MATRIX;
}

static asparse_status describe(const asparse_place *place, asparse_layout *layout) {
  static const char *const names[3] = {"indptr", "indices", "data"};
  asparse_status status = ASPARSE_OK;
  asparse_place root;
  int64_t shape[2];
  bool by_columns = is_at(place, columns_path);
  TRY(open_root(place, &root));
  TRY(asparse_hdf5_read_integers(root.object, "shape", 2, shape));
  if (asparse_place_has(&root, "nnz", NULL)) TRY(asparse_hdf5_read_integers(root.object, "nnz", 1, &layout->stored));
  TRY(asparse_layout_shape(shape, by_columns ? ASPARSE_BY_COLUMNS : ASPARSE_BY_ROWS, layout));
  TRY(asparse_layout_compressed(place, by_columns ? columns_path : rows_path, names, ASPARSE_MUST_BE_THERE, layout));
  asparse_layout_source(by_columns ? "BIOM CSC" : "BIOM CSR", layout);
cleanup:
  CLOSE_HDF5(H5Oclose, root.object);
  return status;
}

const asparse_convention asparse_convention_biom = {"BIOM", detect, describe};
