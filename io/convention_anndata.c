/* AnnData from 0.7 on: a group for each sparse matrix (/X, /layers/…, /obsp/…), attributes "encoding-type" and
 * "shape" (https://anndata.readthedocs.io/en/latest/fileformat-prose.html). Before that, and in h5sparse
 * (https://github.com/appier/h5sparse): "h5sparse_format" and "h5sparse_shape". Dense ones are datasets. */
#include "io/convention.h"

static asparse_matrix_kind detect_anndata(const asparse_place *place) {
  bool found = asparse_place_has(place, NULL, "indptr") && (asparse_place_says(place, "encoding-type", "csr_matrix") ||
                                                            asparse_place_says(place, "encoding-type", "csc_matrix"));
  return found ? ASPARSE_IS_SPARSE : ASPARSE_IS_NO_MATRIX;
}

static asparse_matrix_kind detect_h5sparse(const asparse_place *place) {
  return asparse_place_has(place, "h5sparse_format", NULL) ? ASPARSE_IS_SPARSE : ASPARSE_IS_NO_MATRIX;
}

static asparse_status describe(const asparse_place *place, const char *shape_name, bool by_rows,
                               asparse_layout *layout) {
  static const char *const names[3] = {"indptr", "indices", "data"};
  int64_t shape[2];
  PASS(asparse_hdf5_read_integers(place->object, shape_name, 2, shape));
  PASS(asparse_layout_shape(shape, by_rows ? ASPARSE_BY_ROWS : ASPARSE_BY_COLUMNS, layout));
  return asparse_layout_compressed(place, place->path, names, ASPARSE_MUST_BE_THERE, layout);
}

static asparse_status describe_anndata(const asparse_place *place, asparse_layout *layout) {
  bool by_rows = asparse_place_says(place, "encoding-type", "csr_matrix");
  PASS(describe(place, "shape", by_rows, layout));
  asparse_layout_source(by_rows ? "AnnData CSR" : "AnnData CSC", layout);
  return ASPARSE_OK;
}

static asparse_status describe_h5sparse(const asparse_place *place, asparse_layout *layout) {
  bool by_rows = asparse_place_says(place, "h5sparse_format", "csr");
  if (!by_rows && !asparse_place_says(place, "h5sparse_format", "csc"))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "attribute \"h5sparse_format\" is neither csr nor csc");
  PASS(describe(place, "h5sparse_shape", by_rows, layout));
  asparse_layout_source(by_rows ? "h5sparse CSR" : "h5sparse CSC", layout);
  return ASPARSE_OK;
}

const asparse_convention asparse_convention_anndata = {"AnnData", detect_anndata, describe_anndata};
const asparse_convention asparse_convention_h5sparse = {"h5sparse", detect_h5sparse, describe_h5sparse};
