/* A dataset is a dense matrix by rows, or a column; MATLAB 7.3 (attribute MATLAB_class) stores columns one after the
 * other, so that HDF5's dimensions are the matrix's in reverse. */
#include "io/convention.h"

static asparse_matrix_kind detect(const asparse_place *place) {
  return H5Iget_type(place->object) == H5I_DATASET ? ASPARSE_IS_DENSE : ASPARSE_IS_NO_MATRIX;
}

static asparse_status describe(const asparse_place *place, asparse_layout *layout) {
  asparse_dataset *values = &layout->values;
  bool matlab = H5Aexists(place->object, "MATLAB_class") > 0;
  PASS(asparse_dataset_inspect(place->file, place->path, "", values));
  if (matlab && H5Aexists(place->object, "MATLAB_empty") > 0)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s is an empty MATLAB array", place->path);
  layout->m = matlab && values->rank == 2 ? values->cols : values->rows;
  layout->k = matlab && values->rank == 2 ? values->rows : values->cols;
  layout->arrangement = matlab && values->rank == 2 ? ASPARSE_DENSE_BY_COLUMNS : ASPARSE_DENSE_BY_ROWS;
  asparse_layout_source(matlab ? "MATLAB 7.3 dense" : "dense dataset", layout);
  return ASPARSE_OK;
}

const asparse_convention asparse_convention_dense = {"dense", detect, describe};
