#include "io/binsparse.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool is_version_0_1(const json_t *version) {
  const char *text = json_string_value(version);
  return text && strncmp(text, "0.1", 3) == 0 && (text[3] == '\0' || text[3] == '.');
}

static asparse_status parse_shape(const json_t *shape, asparse_binsparse *d) {
  asparse_status status = ASPARSE_OK;
  size_t n_dims = json_array_size(shape); /* 0 when it is no array */
  TRY_THAT(n_dims == 1 || n_dims == 2, ASPARSE_ERR_DATA,
           "the binsparse descriptor has no \"shape\" of one or two dimensions");
  d->n_dims = (int)n_dims;
  d->shape[1] = 1;
  for (size_t i = 0; i < n_dims; i++) {
    const json_t *extent = json_array_get(shape, i);
    TRY_THAT(json_is_integer(extent), ASPARSE_ERR_DATA, "\"shape\" in the binsparse descriptor holds no integers");
    d->shape[i] = json_integer_value(extent);
    TRY_THAT(d->shape[i] >= 0 && d->shape[i] < INT64_MAX, ASPARSE_ERR_DATA,
             "\"shape\" in the binsparse descriptor is out of range: %lld", (long long)d->shape[i]);
  }
cleanup:
  return status;
}

static asparse_status parse_value_type(const json_t *types, asparse_binsparse *d) {
  const char *name = json_string_value(json_object_get(types, "values"));
  if (!name) return ASPARSE_OK;
  snprintf(d->value_type, sizeof d->value_type, "%s", name);
  d->iso = strncmp(name, "iso[", 4) == 0;
  if (strstr(name, "complex"))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "the values are %.40s; asparse multiplies real matrices: write real and imaginary part as two",
                        name);
  return ASPARSE_OK;
}

static asparse_status parse_structure(const json_t *structure, asparse_binsparse *d) {
  const char *name = json_string_value(structure);
  d->structure = ASPARSE_GENERAL;
  if (!structure) return ASPARSE_OK;
  if (!name || !asparse_structure_parse(name, &d->structure))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "the binsparse descriptor has an unknown structure \"%.40s\"",
                        name ? name : "(no text)");
  return ASPARSE_OK;
}

asparse_status asparse_binsparse_parse(const char *text, asparse_binsparse *d) {
  asparse_status status = ASPARSE_OK;
  json_error_t error;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  memset(d, 0, sizeof *d);
  TRY_THAT(root, ASPARSE_ERR_DATA, "attribute \"binsparse\" is not JSON: %s (line %d, column %d)", error.text,
           error.line, error.column);
  const json_t *content = json_object_get(root, "binsparse");
  TRY_THAT(json_is_object(content), ASPARSE_ERR_DATA, "attribute \"binsparse\" holds no object \"binsparse\"");
  const json_t *version = json_object_get(content, "version");
  TRY_THAT(is_version_0_1(version), ASPARSE_ERR_DATA, "Binsparse version \"%.20s\" found, version 0.1 is read",
           json_is_string(version) ? json_string_value(version) : "(none)");
  const char *format = json_string_value(json_object_get(content, "format"));
  TRY_THAT(format, ASPARSE_ERR_DATA, "the binsparse descriptor names no predefined \"format\"");
  snprintf(d->format, sizeof d->format, "%s", format);
  TRY(parse_shape(json_object_get(content, "shape"), d));
  const json_t *stored = json_object_get(content, "number_of_stored_values");
  d->stored = json_is_integer(stored) ? json_integer_value(stored) : -1;
  TRY_THAT(!stored || d->stored >= 0, ASPARSE_ERR_DATA,
           "\"number_of_stored_values\" in the binsparse descriptor is no count");
  TRY(parse_value_type(json_object_get(content, "data_types"), d));
  d->has_fill = json_is_true(json_object_get(content, "fill"));
  TRY(parse_structure(json_object_get(content, "structure"), d));
cleanup:
  json_decref(root);
  return status;
}

asparse_status asparse_binsparse_text(const asparse_binsparse *d, const asparse_binsparse_array *index_arrays,
                                      char text[ASPARSE_BINSPARSE_LENGTH]) {
  json_t *shape = json_array(), *types = json_object();
  for (int i = 0; i < d->n_dims; i++) json_array_append_new(shape, json_integer(d->shape[i]));
  for (; index_arrays && index_arrays->name; index_arrays++)
    json_object_set_new(types, index_arrays->name, json_string(index_arrays->type));
  json_object_set_new(types, "values", json_string(d->value_type));
  json_t *root = json_pack("{s:{s:s, s:s, s:o, s:I, s:o}}", "binsparse", "version", "0.1", "format", d->format, "shape",
                           shape, "number_of_stored_values", (json_int_t)d->stored, "data_types", types);
  size_t length = root ? json_dumpb(root, text, ASPARSE_BINSPARSE_LENGTH - 1, JSON_INDENT(2)) : 0;
  json_decref(root);
  if (length == 0 || length >= ASPARSE_BINSPARSE_LENGTH)
    return ASPARSE_FAIL(ASPARSE_ERR_MEMORY, "cannot build the binsparse descriptor");
  text[length] = '\0';
  return ASPARSE_OK;
}

bool asparse_binsparse_is_dense(const char *format) {
  return strncmp(format, "DMAT", 4) == 0 || strcmp(format, "DVEC") == 0;
}
