#include "io/convention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/binsparse.h"
#include "io/checksum.h"

/* ---- finding -------------------------------------------------------------------------------- */

/* The name of link i of the root, cut to fit; candidate tells whether it is one. */
static asparse_status try_link(hid_t file, hsize_t i, asparse_is_candidate is_candidate, char name[256],
                               bool *candidate) {
  asparse_status status = ASPARSE_OK;
  hid_t object = -1;
  *candidate = false;
  TRY_HDF5(ASPARSE_ERR_DATA, H5Lget_name_by_idx(file, "/", H5_INDEX_NAME, H5_ITER_INC, i, name, 256, H5P_DEFAULT));
  if (asparse_hdf5_open_object(file, name, &object) != ASPARSE_OK) {
    asparse_error_clear(); /* dangling, or in another file: no candidate */
    return ASPARSE_OK;
  }
  *candidate = is_candidate(object);
cleanup:
  CLOSE_HDF5(H5Oclose, object);
  return status;
}

asparse_status asparse_hdf5_find(hid_t file, asparse_is_candidate is_candidate, const char *what, char path[512]) {
  asparse_status status = ASPARSE_OK;
  hid_t root = -1;
  H5G_info_t info;
  char name[256], listing[400] = "";
  int n_found = 0;
  TRY_HDF5(ASPARSE_ERR_DATA, root = H5Gopen2(file, "/", H5P_DEFAULT));
  strcpy(path, "/");
  if (is_candidate(root)) goto cleanup;
  TRY_HDF5(ASPARSE_ERR_DATA, H5Gget_info(root, &info));
  for (hsize_t i = 0; i < info.nlinks; i++) {
    bool candidate = false;
    TRY(try_link(file, i, is_candidate, name, &candidate));
    if (!candidate) continue;
    size_t used = strlen(listing);
    snprintf(listing + used, sizeof listing - used, "%s/%s", n_found ? ", " : "", name);
    if (n_found++ == 0) snprintf(path, 512, "/%s", name);
  }
  TRY_THAT(n_found > 0, ASPARSE_ERR_DATA, "no %s found, neither in the root group nor one level below it", what);
  TRY_THAT(n_found == 1, ASPARSE_ERR_USAGE, "found %d (%s) where one %s is wanted; name it, as in file.h5::%s", n_found,
           listing, what, path);
cleanup:
  CLOSE_HDF5(H5Gclose, root);
  return status;
}

/* ---- Binsparse ------------------------------------------------------------------------------ */

static asparse_status read_descriptor(hid_t group, asparse_binsparse *descriptor) {
  asparse_status status = ASPARSE_OK;
  char *text = NULL;
  TRY(asparse_hdf5_read_text(group, ASPARSE_BINSPARSE_ATTRIBUTE, &text));
  TRY(asparse_binsparse_parse(text, descriptor));
cleanup:
  asparse_free(text);
  return status;
}

/* Entries that are not stored are zero; a file may say otherwise. */
static asparse_status check_fill(hid_t file, const char *object) {
  asparse_status status = ASPARSE_OK;
  asparse_dataset fill = {.id = -1};
  double value = 0;
  TRY(asparse_dataset_inspect(file, object, "fill_value", &fill));
  TRY_THAT(fill.rows == 1 && fill.cols == 1, ASPARSE_ERR_DATA, "%s holds no single value", fill.label);
  TRY_HDF5(ASPARSE_ERR_DATA, fill.id = H5Dopen2(file, fill.path, H5P_DEFAULT));
  TRY_HDF5(ASPARSE_ERR_DATA, H5Dread(fill.id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value));
  TRY_THAT(value == 0, ASPARSE_ERR_DATA, "entries that are not stored are %g by %s; only 0 is read", value, fill.label);
cleanup:
  asparse_dataset_close(&fill);
  return status;
}

static asparse_status describe_binsparse(hid_t file, hid_t group, const char *object, asparse_layout *layout) {
  asparse_status status = ASPARSE_OK;
  asparse_binsparse d;
  TRY(read_descriptor(group, &d));
  TRY_THAT(strcmp(d.format, "CSR") == 0, ASPARSE_ERR_DATA,
           "a matrix in Binsparse format %s; only CSR is read so far: rewrite it in format CSR", d.format);
  TRY_THAT(d.n_dims == 2, ASPARSE_ERR_DATA, "a Binsparse CSR matrix needs two dimensions, \"shape\" has one");
  layout->m = d.shape[0];
  layout->k = d.shape[1];
  layout->stored = d.stored;
  layout->iso = d.iso;
  layout->structure = d.structure;
  TRY(asparse_dataset_inspect(file, object, "pointers_to_1", &layout->pointers));
  TRY(asparse_dataset_inspect(file, object, "indices_1", &layout->indices));
  TRY(asparse_dataset_inspect(file, object, "values", &layout->values));
  if (d.has_fill) TRY(check_fill(file, object));
  TRY(asparse_checksum_read(group, &layout->has_checksum, &layout->checksum));
  snprintf(layout->source.format, sizeof layout->source.format, "Binsparse CSR");
  snprintf(layout->source.value_type, sizeof layout->source.value_type, "%.15s",
           d.value_type[0] ? d.value_type : asparse_element_name(layout->values.element));
  snprintf(layout->source.structure, sizeof layout->source.structure, "%s", asparse_structure_name(d.structure));
cleanup:
  return status;
}

/* ---- the table ------------------------------------------------------------------------------ */

/* In order of detection. A group is of a convention when it has the attribute and the child named. */
static const struct convention {
  const char *name, *attribute, *child;
  asparse_status (*describe)(hid_t file, hid_t group, const char *object, asparse_layout *layout);
} conventions[] = {{"Binsparse", ASPARSE_BINSPARSE_ATTRIBUTE, NULL, describe_binsparse},
                   {"AnnData", "encoding-type", "indptr", NULL},
                   {"h5sparse", "h5sparse_format", NULL, NULL},
                   {"MATLAB 7.3", "MATLAB_sparse", NULL, NULL},
                   {"cooler", "format", "pixels", NULL},
                   {"BIOM", "format-url", "observation", NULL},
                   {"10x Genomics", NULL, "barcodes", NULL},
                   {"bare indptr/indices/data", NULL, "indptr", NULL}};

static const struct convention *detect(hid_t group) {
  if (H5Iget_type(group) != H5I_GROUP) return NULL;
  for (size_t i = 0; i < sizeof conventions / sizeof *conventions; i++) {
    const struct convention *c = &conventions[i];
    if ((!c->attribute || H5Aexists(group, c->attribute) > 0) &&
        (!c->child || H5Lexists(group, c->child, H5P_DEFAULT) > 0))
      return c;
  }
  return NULL;
}

/* Of any convention, unless it is said to be dense. A damaged descriptor counts, to be complained of. */
static bool may_be_sparse(hid_t object) {
  const struct convention *found = detect(object);
  asparse_binsparse descriptor;
  if (!found || found->describe != describe_binsparse) return found != NULL;
  if (read_descriptor(object, &descriptor) == ASPARSE_OK) return !asparse_binsparse_is_dense(descriptor.format);
  asparse_error_clear();
  return true;
}

static asparse_status check_layout(const asparse_layout *layout) {
  asparse_status status = ASPARSE_OK;
  const asparse_dataset *pointers = &layout->pointers, *indices = &layout->indices, *values = &layout->values;
  TRY_THAT(pointers->rank == 1 && indices->rank == 1 && values->rank == 1, ASPARSE_ERR_DATA,
           "the three datasets of a compressed matrix need one dimension, found %d, %d and %d", pointers->rank,
           indices->rank, values->rank);
  TRY_THAT(asparse_element_is_integer(pointers->element) && asparse_element_is_integer(indices->element),
           ASPARSE_ERR_DATA, "%s holds %s, expected integers",
           asparse_element_is_integer(pointers->element) ? indices->path : pointers->path,
           asparse_element_name(asparse_element_is_integer(pointers->element) ? indices->element : pointers->element));
  TRY_THAT(pointers->rows == layout->m + 1, ASPARSE_ERR_DATA,
           "%s has %lld elements, expected rows + 1 = %lld for %lld × %lld", pointers->path, (long long)pointers->rows,
           (long long)layout->m + 1, (long long)layout->m, (long long)layout->k);
  TRY_THAT(!layout->iso || values->rows == 1 || layout->stored == 0, ASPARSE_ERR_DATA,
           "%s has %lld elements, expected 1 for the iso type %s", values->path, (long long)values->rows,
           layout->source.value_type);
  int64_t shortest = layout->iso || indices->rows < values->rows ? indices->rows : values->rows;
  TRY_THAT(layout->stored <= shortest, ASPARSE_ERR_DATA,
           "number_of_stored_values is %lld, but %s has %lld elements and %s has %lld", (long long)layout->stored,
           indices->path, (long long)indices->rows, values->path, (long long)values->rows);
cleanup:
  return status;
}

static asparse_status describe(hid_t file, const char *wanted, asparse_layout *layout) {
  asparse_status status = ASPARSE_OK;
  hid_t object = -1;
  char path[512];
  if (wanted[0]) {
    TRY_THAT(strlen(wanted) < sizeof path, ASPARSE_ERR_USAGE, "the object name %.40s… is too long", wanted);
    strcpy(path, wanted);
  } else {
    TRY(asparse_hdf5_find(file, may_be_sparse, "sparse matrix", path));
  }
  TRY(asparse_hdf5_open_object(file, path, &object));
  TRY_THAT(H5Iget_type(object) == H5I_GROUP, ASPARSE_ERR_USAGE, "%s is a dataset; a sparse matrix is a group", path);
  const struct convention *found = detect(object);
  TRY_THAT(found, ASPARSE_ERR_DATA, "group %s holds no sparse matrix (no attribute \"binsparse\")", path);
  TRY_THAT(found->describe, ASPARSE_ERR_DATA,
           "group %s holds a matrix in the %s convention, which is not read so far; rewrite it as Binsparse CSR", path,
           found->name);
  size_t used = strlen(layout->label);
  snprintf(layout->label + used, sizeof layout->label - used, "::%s", path);
  TRY(found->describe(file, object, path, layout));
  TRY(check_layout(layout));
cleanup:
  CLOSE_HDF5(H5Oclose, object);
  return status;
}

asparse_status asparse_layout_find(const char *path, const char *object, asparse_layout *layout) {
  asparse_status status = ASPARSE_OK;
  hid_t file = -1;
  memset(layout, 0, sizeof *layout);
  layout->pointers.id = layout->indices.id = layout->values.id = -1;
  TRY(asparse_hdf5_open(path, &file));
  snprintf(layout->label, sizeof layout->label, "%.250s", path);
  status = describe(file, object, layout);
  if (status != ASPARSE_OK) asparse_error_prefix("%s", layout->label);
cleanup:
  CLOSE_HDF5(H5Fclose, file);
  return status;
}
