/* Cooler (https://cooler.readthedocs.io/en/latest/schema.html): contact counts of genome bins; pixels are sorted
 * by bin1_id, and indexes/bin1_offset points to the first of each: compressed rows, the upper triangle unless
 * "storage-mode" says square. */
#include <stdio.h>

#include "io/convention.h"

static asparse_matrix_kind detect(const asparse_place *place) {
  bool found = asparse_place_has(place, NULL, "pixels") && asparse_place_has(place, NULL, "bins") &&
               (asparse_place_says(place, "format", "Cooler") || asparse_place_says(place, "format-url", "cooler"));
  return found ? ASPARSE_IS_SPARSE : ASPARSE_IS_NO_MATRIX;
}

static asparse_status describe(const asparse_place *place, asparse_layout *layout) {
  static const char *const names[3] = {"indexes/bin1_offset", "pixels/bin2_id", "pixels/count"};
  int64_t shape[2];
  PASS(asparse_hdf5_read_integers(place->object, "nbins", 1, shape));
  shape[1] = shape[0];
  PASS(asparse_layout_shape(shape, ASPARSE_BY_ROWS, layout));
  PASS(asparse_layout_compressed(place, place->path, names, ASPARSE_MUST_BE_THERE, layout));
  if (H5Aexists(place->object, "nnz") > 0) PASS(asparse_hdf5_read_integers(place->object, "nnz", 1, &layout->stored));
  layout->structure = asparse_place_says(place, "storage-mode", "square") ? ASPARSE_GENERAL : ASPARSE_SYMMETRIC_UPPER;
  asparse_layout_source("cooler", layout);
  return ASPARSE_OK;
}

const asparse_convention asparse_convention_cooler = {"cooler", detect, describe};
