/* 10x Genomics Cell Ranger: compressed columns, features × barcodes. Version 3: group /matrix; version 2: one
 * group a genome
 * (https://www.10xgenomics.com/support/software/cell-ranger/latest/analysis/outputs/cr-outputs-h5-matrices). */
#include "io/convention.h"

static asparse_matrix_kind detect(const asparse_place *place) {
  static const char *const children[] = {"barcodes", "data", "indices", "indptr", "shape"};
  for (size_t i = 0; i < sizeof children / sizeof *children; i++) {
    if (!asparse_place_has(place, NULL, children[i])) return ASPARSE_IS_NO_MATRIX;
  }
  return ASPARSE_IS_SPARSE;
}

static asparse_status describe(const asparse_place *place, asparse_layout *layout) {
  static const char *const names[3] = {"indptr", "indices", "data"};
  int64_t shape[2];
  PASS(asparse_dataset_read_integers(place->file, place->path, "shape", 2, shape));
  PASS(asparse_layout_shape(shape, ASPARSE_BY_COLUMNS, layout));
  PASS(asparse_layout_compressed(place, place->path, names, ASPARSE_MUST_BE_THERE, layout));
  asparse_layout_source("10x Genomics CSC", layout);
  return ASPARSE_OK;
}

const asparse_convention asparse_convention_tenx = {"10x Genomics", detect, describe};
