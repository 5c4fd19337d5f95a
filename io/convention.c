#include "io/convention.h"

#include <stdio.h>
#include <string.h>

bool asparse_place_has(const asparse_place *place, const char *attribute, const char *child) {
  if (H5Iget_type(place->object) != H5I_GROUP) return false;
  return (!attribute || H5Aexists(place->object, attribute) > 0) &&
         (!child || H5Lexists(place->object, child, H5P_DEFAULT) > 0);
}

bool asparse_place_says(const asparse_place *place, const char *attribute, const char *word) {
  char *text = NULL;
  if (H5Aexists(place->object, attribute) <= 0) return false;
  asparse_status status = asparse_hdf5_read_text(place->object, attribute, &text);
  bool says = status == ASPARSE_OK && strstr(text, word);
  if (status == ASPARSE_ERR_MEMORY) *place->unknown = status;
  else if (status != ASPARSE_OK) asparse_error_clear();
  asparse_free(text);
  return says;
}

asparse_status asparse_layout_compressed(const asparse_place *place, const char *path, const char *const names[3],
                                         asparse_presence entries, asparse_layout *layout) {
  asparse_status status = ASPARSE_OK;
  char indices[600];
  bool there = true;
  TRY(asparse_dataset_inspect(place->file, path, names[0], &layout->pointers));
  snprintf(indices, sizeof indices, "%s/%s", path, names[1]);
  if (entries == ASPARSE_MAY_BE_ABSENT) TRY(asparse_hdf5_exists(place->file, indices, &there));
  if (there) {
    TRY(asparse_dataset_inspect(place->file, path, names[1], &layout->indices));
    TRY(asparse_dataset_inspect(place->file, path, names[2], &layout->values));
  } else {
    layout->stored = 0;
  }
cleanup:
  return status;
}

asparse_status asparse_layout_shape(const int64_t shape[2], asparse_arrangement arrangement, asparse_layout *layout) {
  for (int i = 0; i < 2; i++) {
    if (shape[i] < 0 || shape[i] == INT64_MAX)
      return ASPARSE_FAIL(ASPARSE_ERR_DATA, "the shape is out of range: %lld × %lld", (long long)shape[0],
                          (long long)shape[1]);
  }
  layout->m = shape[0];
  layout->k = shape[1];
  layout->arrangement = arrangement;
  return ASPARSE_OK;
}

void asparse_layout_source(const char *format, asparse_layout *layout) {
  asparse_source *source = &layout->source;
  snprintf(source->format, sizeof source->format, "%s", format);
  if (!source->value_type[0])
    snprintf(source->value_type, sizeof source->value_type, "%s",
             asparse_dataset_is_there(&layout->values) ? asparse_element_name(layout->values.element) : "none");
}
