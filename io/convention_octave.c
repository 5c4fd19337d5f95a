/* GNU Octave, save -hdf5: a variable is a group with datasets type ("sparse matrix") and value, here a group of scalars
 * nr, nc, nz and columns cidx (column pointers), ridx (rows), data (libinterp/octave-value/ov-re-sparse.cc). */
#include <stdio.h>

#include "io/convention.h"

enum { PATH_LENGTH = 600 };

static void value_path(const asparse_place *place, const char *name, char path[PATH_LENGTH]) {
  snprintf(path, PATH_LENGTH, "%s/value%s", place->path, name);
}

static asparse_matrix_kind detect(const asparse_place *place) {
  char pointers[PATH_LENGTH];
  bool sparse = false;
  if (!asparse_place_has(place, "OCTAVE_NEW_FORMAT", "value")) return ASPARSE_IS_NO_MATRIX;
  value_path(place, "/cidx", pointers);
  if (asparse_hdf5_exists(place->file, pointers, &sparse) != ASPARSE_OK) asparse_error_clear();
  return sparse ? ASPARSE_IS_SPARSE : ASPARSE_IS_NO_MATRIX;
}

static asparse_status describe(const asparse_place *place, asparse_layout *layout) {
  static const char *const names[3] = {"cidx", "ridx", "data"};
  char value[PATH_LENGTH];
  int64_t shape[2];
  value_path(place, "", value);
  PASS(asparse_dataset_read_integers(place->file, value, "nr", 1, &shape[0]));
  PASS(asparse_dataset_read_integers(place->file, value, "nc", 1, &shape[1]));
  PASS(asparse_layout_shape(shape, ASPARSE_BY_COLUMNS, layout));
  PASS(asparse_layout_compressed(place, value, names, ASPARSE_MAY_BE_ABSENT, layout));
  asparse_layout_source("Octave CSC", layout);
  return ASPARSE_OK;
}

const asparse_convention asparse_convention_octave = {"Octave", detect, describe};
