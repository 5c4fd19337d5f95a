/* MATLAB 7.3: a sparse matrix is a group with attribute MATLAB_sparse = number of rows and datasets jc
 * (column pointers), ir (rows), data; one without entries lacks ir and data
 * (https://www.mathworks.com/help/matlab/import_export/mat-file-versions.html). PETSc reads and writes
 * the same names for the transposed matrix: --transpose. */
#include "io/convention.h"

static asparse_matrix_kind detect(const asparse_place *place) {
  return asparse_place_has(place, "MATLAB_sparse", NULL) ? ASPARSE_IS_SPARSE : ASPARSE_IS_NO_MATRIX;
}

static asparse_status describe(const asparse_place *place, asparse_layout *layout) {
  static const char *const names[3] = {"jc", "ir", "data"};
  int64_t shape[2];
  PASS(asparse_hdf5_read_integers(place->object, "MATLAB_sparse", 1, shape));
  PASS(asparse_layout_compressed(place, place->path, names, ASPARSE_MAY_BE_ABSENT, layout));
  if (layout->pointers.rows < 1) return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s is empty", layout->pointers.path);
  shape[1] = layout->pointers.rows - 1;
  PASS(asparse_layout_shape(shape, ASPARSE_BY_COLUMNS, layout));
  asparse_layout_source("MATLAB 7.3 CSC", layout);
  return ASPARSE_OK;
}

const asparse_convention asparse_convention_matlab = {"MATLAB 7.3", detect, describe};
