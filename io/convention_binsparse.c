/* Binsparse 0.1 (https://graphblas.org/binsparse-specification). */
#include <stdio.h>
#include <string.h>

#include "io/binsparse.h"
#include "io/checksum.h"
#include "io/convention.h"

/* Datasets of a format: NULL where it has none. */
static const struct format {
  const char *name;
  asparse_arrangement arrangement;
  const char *pointers, *lines, *indices;
} formats[] = {{"CSR", ASPARSE_BY_ROWS, "pointers_to_1", NULL, "indices_1"},
               {"CSC", ASPARSE_BY_COLUMNS, "pointers_to_1", NULL, "indices_1"},
               {"DCSR", ASPARSE_BY_ROWS, "pointers_to_1", "indices_0", "indices_1"},
               {"DCSC", ASPARSE_BY_COLUMNS, "pointers_to_1", "indices_0", "indices_1"},
               {"COO", ASPARSE_BY_ENTRY, NULL, "indices_0", "indices_1"},
               {"COOR", ASPARSE_BY_ENTRY, NULL, "indices_0", "indices_1"},
               {"COOC", ASPARSE_BY_ENTRY, NULL, "indices_1", "indices_0"},
               {"CVEC", ASPARSE_BY_ENTRY, NULL, "indices_0", NULL},
               {"DMAT", ASPARSE_DENSE_BY_ROWS, NULL, NULL, NULL},
               {"DMATR", ASPARSE_DENSE_BY_ROWS, NULL, NULL, NULL},
               {"DMATC", ASPARSE_DENSE_BY_COLUMNS, NULL, NULL, NULL},
               {"DVEC", ASPARSE_DENSE_BY_ROWS, NULL, NULL, NULL}};

static asparse_status read_descriptor(hid_t group, asparse_binsparse *descriptor) {
  asparse_status status = ASPARSE_OK;
  char *text = NULL;
  TRY(asparse_hdf5_read_text(group, ASPARSE_BINSPARSE_ATTRIBUTE, &text));
  TRY(asparse_binsparse_parse(text, descriptor));
cleanup:
  asparse_free(text);
  return status;
}

/* A damaged descriptor counts as sparse, to be complained of. */
static asparse_matrix_kind detect(const asparse_place *place) {
  asparse_binsparse descriptor;
  if (!asparse_place_has(place, ASPARSE_BINSPARSE_ATTRIBUTE, NULL)) return ASPARSE_IS_NO_MATRIX;
  asparse_status status = read_descriptor(place->object, &descriptor);
  if (status == ASPARSE_OK) return asparse_binsparse_is_dense(descriptor.format) ? ASPARSE_IS_DENSE : ASPARSE_IS_SPARSE;
  if (status == ASPARSE_ERR_MEMORY) *place->unknown = status;
  else asparse_error_clear();
  return ASPARSE_IS_SPARSE;
}

/* Entries that are not stored are zero; a file may say otherwise. */
static asparse_status check_fill(const asparse_place *place) {
  asparse_status status = ASPARSE_OK;
  asparse_dataset fill = {.id = -1};
  double value = 0;
  TRY(asparse_dataset_inspect(place->file, place->path, "fill_value", &fill));
  TRY_THAT(fill.rows == 1 && fill.cols == 1, ASPARSE_ERR_DATA, "%s holds no single value", fill.label);
  TRY_HDF5(ASPARSE_ERR_DATA, fill.id = H5Dopen2(place->file, fill.path, H5P_DEFAULT));
  TRY_HDF5(ASPARSE_ERR_DATA, H5Dread(fill.id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value));
  TRY_THAT(value == 0, ASPARSE_ERR_DATA, "entries that are not stored are %g by %s; only 0 is read", value, fill.label);
cleanup:
  asparse_dataset_close(&fill);
  return status;
}

static asparse_status inspect(const asparse_place *place, const char *name, asparse_dataset *dataset) {
  return name ? asparse_dataset_inspect(place->file, place->path, name, dataset) : ASPARSE_OK;
}

static const struct format *find_format(const char *name) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    if (strcmp(formats[i].name, name) == 0) return &formats[i];
  }
  return NULL;
}

static asparse_status check_format(const asparse_binsparse *d, const struct format *format) {
  if (!format)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "a matrix in Binsparse format %s, which is not read; CSR, CSC, COO, DCSR, DCSC and "
                        "dense ones are: rewrite it as one of them",
                        d->format);
  bool vector = strcmp(d->format, "CVEC") == 0 || strcmp(d->format, "DVEC") == 0;
  if (d->n_dims != (vector ? 1 : 2))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "a Binsparse %s array needs %s, \"shape\" has %d", d->format,
                        vector ? "one dimension" : "two dimensions", d->n_dims);
  if (d->iso && asparse_is_dense(format->arrangement))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "a dense Binsparse matrix of type %s, which is not read", d->value_type);
  return ASPARSE_OK;
}

static asparse_status describe(const asparse_place *place, asparse_layout *layout) {
  asparse_binsparse d;
  char name[32];
  PASS(read_descriptor(place->object, &d));
  const struct format *format = find_format(d.format);
  PASS(check_format(&d, format));
  PASS(asparse_layout_shape(d.shape, format->arrangement, layout));
  layout->stored = d.stored;
  layout->iso = d.iso;
  layout->structure = d.structure;
  PASS(inspect(place, format->pointers, &layout->pointers));
  PASS(inspect(place, format->lines, &layout->lines));
  PASS(inspect(place, format->indices, &layout->indices));
  PASS(inspect(place, "values", &layout->values));
  if (d.has_fill && !asparse_is_dense(format->arrangement)) PASS(check_fill(place));
  PASS(asparse_checksum_read(place->object, &layout->has_checksum, &layout->checksum));
  snprintf(layout->source.value_type, sizeof layout->source.value_type, "%.15s", d.value_type);
  snprintf(name, sizeof name, "Binsparse %s", d.format);
  asparse_layout_source(name, layout);
  return ASPARSE_OK;
}

const asparse_convention asparse_convention_binsparse = {"Binsparse", detect, describe};
