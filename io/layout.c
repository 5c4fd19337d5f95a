#include "io/layout.h"

#include <stdio.h>
#include <string.h>

#include "io/convention.h"

/* In order of detection: what says most of itself comes first. */
static const asparse_convention *const conventions[] = {&asparse_convention_binsparse, &asparse_convention_anndata,
                                                        &asparse_convention_h5sparse,  &asparse_convention_matlab,
                                                        &asparse_convention_octave,    &asparse_convention_cooler,
                                                        &asparse_convention_biom,      &asparse_convention_tenx,
                                                        &asparse_convention_bare,      &asparse_convention_dense};

static const asparse_convention *detect(const asparse_place *place, asparse_matrix_kind *kind) {
  for (size_t i = 0; i < sizeof conventions / sizeof *conventions; i++) {
    *kind = conventions[i]->detect(place);
    if (*kind != ASPARSE_IS_NO_MATRIX) return conventions[i];
  }
  return NULL;
}

/* ---- finding -------------------------------------------------------------------------------- */

/* What a walk through the file has found. */
typedef struct search {
  hid_t file;
  asparse_matrix_kind wanted;
  const asparse_read_options *options;
  int n_found;
  char path[512];         /* of the first */
  char listing[520];      /* "/X (AnnData), /layers/a (AnnData)", as far as it fits */
  int n_listed, n_other;  /* matrices of the other kind */
  char other[512];        /* path of the first */
  asparse_status unknown; /* of an object that could not be looked at for lack of memory */
} search;

static void add_found(search *s, const char *path, const char *convention) {
  size_t used = strlen(s->listing);
  if (s->n_found++ == 0) snprintf(s->path, sizeof s->path, "%s", path);
  if (s->n_listed < s->n_found - 1 || used + strlen(path) + strlen(convention) + 6 > sizeof s->listing) return;
  snprintf(s->listing + used, sizeof s->listing - used, "%s%s (%s)", s->n_listed ? ", " : "", path, convention);
  s->n_listed++;
}

/* Looks at one object. Dense matrices are looked for in the root group and one level below it only:
 * further down, datasets are parts of something. */
static void look_at(search *s, hid_t object, const char *path) {
  asparse_matrix_kind kind = ASPARSE_IS_NO_MATRIX;
  asparse_place place = {
      .file = s->file, .object = object, .path = path, .options = s->options, .unknown = &s->unknown};
  const asparse_convention *found = detect(&place, &kind);
  if (!found || (kind == ASPARSE_IS_DENSE && strchr(path + 1, '/'))) return;
  if (kind == s->wanted) add_found(s, path, found->name);
  else if (s->n_other++ == 0) snprintf(s->other, sizeof s->other, "%s", path);
}

/* Soft links lead to what is found under its own name, or into nothing; links into other files are not followed. */
static herr_t visit(hid_t root, const char *name, const H5L_info_t *info, void *context) {
  search *s = context;
  hid_t object = -1;
  char path[512];
  (void)root;
  if (info->type != H5L_TYPE_HARD || snprintf(path, sizeof path, "/%s", name) >= (int)sizeof path) return 0;
  if (asparse_hdf5_open_object(s->file, path, &object) == ASPARSE_OK) look_at(s, object, path);
  else asparse_error_clear();
  CLOSE_HDF5(H5Oclose, object);
  return 0;
}

/* The path of the root when it is what is wanted, else of the only object of the file that is. */
static asparse_status find(hid_t file, asparse_matrix_kind wanted, const asparse_read_options *options,
                           char path[512]) {
  asparse_status status = ASPARSE_OK;
  const char *what = wanted == ASPARSE_IS_DENSE ? "dense matrix" : "sparse matrix";
  char more[64] = "";
  hid_t root = -1;
  search s = {.file = file, .wanted = wanted, .options = options};
  TRY(asparse_hdf5_open_object(file, "/", &root));
  look_at(&s, root, "/");
  if (s.n_found == 0) TRY_HDF5(ASPARSE_ERR_DATA, H5Lvisit(root, H5_INDEX_NAME, H5_ITER_INC, visit, &s));
  TRY(s.unknown);
  TRY_THAT(s.n_found > 0 || s.n_other == 0, ASPARSE_ERR_DATA, "no %s found, only a %s one; name it, as in file.h5::%s",
           what, wanted == ASPARSE_IS_DENSE ? "sparse" : "dense", s.other);
  TRY_THAT(s.n_found > 0, ASPARSE_ERR_DATA, "no %s found; h5ls -r lists what the file holds", what);
  if (s.n_listed < s.n_found) snprintf(more, sizeof more, " and %d more", s.n_found - s.n_listed);
  TRY_THAT(s.n_found == 1, ASPARSE_ERR_USAGE, "found %d (%s%s) where one %s is wanted; name it, as in file.h5::%s",
           s.n_found, s.listing, more, what, s.path);
  memcpy(path, s.path, sizeof s.path);
cleanup:
  CLOSE_HDF5(H5Oclose, root);
  return status;
}

/* ---- description ---------------------------------------------------------------------------- */

void asparse_layout_init(asparse_layout *layout) {
  memset(layout, 0, sizeof *layout);
  layout->stored = -1;
  layout->pointers.id = layout->lines.id = layout->indices.id = layout->values.id = -1;
}

static void swap_datasets(asparse_dataset *a, asparse_dataset *b) {
  asparse_dataset old = *a;
  *a = *b;
  *b = old;
}

/* The same arrays are those of the transposed matrix, read the other way. */
static void transpose(asparse_layout *layout) {
  static const asparse_arrangement opposite[] = {[ASPARSE_BY_ROWS] = ASPARSE_BY_COLUMNS,
                                                 [ASPARSE_BY_COLUMNS] = ASPARSE_BY_ROWS,
                                                 [ASPARSE_BY_ENTRY] = ASPARSE_BY_ENTRY,
                                                 [ASPARSE_DENSE_BY_ROWS] = ASPARSE_DENSE_BY_COLUMNS,
                                                 [ASPARSE_DENSE_BY_COLUMNS] = ASPARSE_DENSE_BY_ROWS};
  int64_t m = layout->m;
  layout->m = layout->k;
  layout->k = m;
  layout->arrangement = opposite[layout->arrangement];
  if (layout->arrangement == ASPARSE_BY_ENTRY) swap_datasets(&layout->lines, &layout->indices);
  layout->structure = asparse_structure_transposed(layout->structure);
  layout->transposed = true;
}

static asparse_status describe(hid_t file, const char *wanted, bool dense, const asparse_read_options *options,
                               asparse_layout *layout) {
  asparse_status status = ASPARSE_OK;
  asparse_status unknown = ASPARSE_OK;
  asparse_place place = {.file = file, .object = -1, .options = options, .unknown = &unknown};
  asparse_matrix_kind kind = ASPARSE_IS_NO_MATRIX;
  char path[512];
  TRY_THAT(strlen(wanted) < sizeof path, ASPARSE_ERR_USAGE, "the object name %.40s… is too long", wanted);
  strcpy(path, wanted);
  if (!wanted[0]) TRY(find(file, dense ? ASPARSE_IS_DENSE : ASPARSE_IS_SPARSE, options, path));
  place.path = path;
  TRY(asparse_hdf5_open_object(file, path, &place.object));
  const asparse_convention *found = detect(&place, &kind);
  TRY(unknown);
  TRY_THAT(found && (!dense || kind == ASPARSE_IS_DENSE), ASPARSE_ERR_DATA,
           "group %s holds no %s in a convention that is read; h5ls -r lists what it holds", path,
           dense ? "dense matrix" : "matrix");
  size_t used = strlen(layout->label);
  snprintf(layout->label + used, sizeof layout->label - used, "::%s", path);
  TRY(found->describe(&place, layout));
  TRY(unknown);
  snprintf(layout->source.structure, sizeof layout->source.structure, "%s", asparse_structure_name(layout->structure));
  if (options->transpose) transpose(layout);
  TRY(asparse_layout_check(layout));
cleanup:
  CLOSE_HDF5(H5Oclose, place.object);
  return status;
}

asparse_status asparse_layout_find(const char *path, const char *object, bool dense,
                                   const asparse_read_options *options, asparse_layout *layout) {
  static const asparse_read_options nothing_said;
  asparse_status status = ASPARSE_OK;
  hid_t file = -1;
  asparse_layout_init(layout);
  TRY(asparse_hdf5_open(path, &file));
  snprintf(layout->label, sizeof layout->label, "%.250s", path);
  status = describe(file, object, dense, options ? options : &nothing_said, layout);
  if (status != ASPARSE_OK) asparse_error_prefix("%s", layout->label);
cleanup:
  CLOSE_HDF5(H5Fclose, file);
  return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

asparse_status asparse_layout_open(asparse_comm *comm, hid_t file, asparse_layout *layout) {
  asparse_dataset *const datasets[] = {&layout->pointers, &layout->lines, &layout->indices, &layout->values};
  for (size_t i = 0; i < sizeof datasets / sizeof *datasets; i++) {
    if (asparse_dataset_is_there(datasets[i])) PASS(asparse_dataset_open(comm, file, datasets[i]));
  }
  return ASPARSE_OK;
}

void asparse_layout_close(asparse_layout *layout) {
  asparse_dataset_close(&layout->pointers);
  asparse_dataset_close(&layout->lines);
  asparse_dataset_close(&layout->indices);
  asparse_dataset_close(&layout->values);
}
