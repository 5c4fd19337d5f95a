#include "io/part_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "io/checksum.h"

/* ---- arrays --------------------------------------------------------------------------------- */

static asparse_element value_element(asparse_dtype dtype) {
  return dtype == ASPARSE_FP64 ? ASPARSE_FLOAT64 : dtype == ASPARSE_FP32 ? ASPARSE_FLOAT32 : ASPARSE_UINT16;
}

static void csr_arrays(const asparse_local_csr *a, asparse_element value, const char *const names[3],
                       asparse_part_array *arrays) {
  int64_t nnz = a ? a->row_ptr[a->m] : -1;
  arrays[0] = (asparse_part_array){names[0], ASPARSE_INT64, a ? (int64_t)a->m + 1 : -1, a ? a->row_ptr : NULL};
  arrays[1] = (asparse_part_array){names[1], ASPARSE_INT32, nnz, a ? a->col_idx : NULL};
  arrays[2] = (asparse_part_array){names[2], value, nnz, a ? a->values : NULL};
}

static void wcsr_arrays(const asparse_wcsr *a, asparse_element value, const char *const names[4],
                        asparse_part_array *arrays) {
  int64_t columns = a ? a->window_row_ptr[a->n_windows] : -1;
  arrays[0] =
      (asparse_part_array){names[0], ASPARSE_INT64, a ? (int64_t)a->n_windows + 1 : -1, a ? a->window_row_ptr : NULL};
  arrays[1] = (asparse_part_array){names[1], ASPARSE_INT32, columns, a ? a->window_col_idx : NULL};
  arrays[2] = (asparse_part_array){names[2], ASPARSE_UINT64, columns, a ? a->row_mask : NULL};
  arrays[3] = (asparse_part_array){names[3], value, a ? columns * a->window_height : -1, a ? a->values : NULL};
}

static void bcsr_arrays(const asparse_bcsr *a, asparse_element value, const char *const names[4],
                        asparse_part_array *arrays) {
  int64_t blocks = a ? a->block_row_ptr[a->n_block_rows] : -1, r = a ? a->block_size : 0;
  arrays[0] =
      (asparse_part_array){names[0], ASPARSE_INT64, a ? (int64_t)a->n_block_rows + 1 : -1, a ? a->block_row_ptr : NULL};
  arrays[1] = (asparse_part_array){names[1], ASPARSE_INT32, blocks, a ? a->block_col_idx : NULL};
  arrays[2] = (asparse_part_array){names[2], ASPARSE_UINT64, a ? blocks * r : -1, a ? a->entry_mask : NULL};
  arrays[3] = (asparse_part_array){names[3], value, a ? blocks * r * r : -1, a ? a->blocks : NULL};
}

static void shard_arrays(const asparse_shard *shard, asparse_format format, asparse_element value, bool diag,
                         asparse_part_array *arrays) {
  static const char *const wcsr_names[2][4] = {
      {"offd_shard/window_row_ptr", "offd_shard/window_col_idx", "offd_shard/row_mask", "offd_shard/values"},
      {"diag_shard/window_row_ptr", "diag_shard/window_col_idx", "diag_shard/row_mask", "diag_shard/values"}};
  static const char *const bcsr_names[2][4] = {
      {"offd_shard/block_row_ptr", "offd_shard/block_col_idx", "offd_shard/entry_mask", "offd_shard/blocks"},
      {"diag_shard/block_row_ptr", "diag_shard/block_col_idx", "diag_shard/entry_mask", "diag_shard/blocks"}};
  if (format == ASPARSE_FORMAT_BCSR) bcsr_arrays(shard ? shard->bcsr : NULL, value, bcsr_names[diag], arrays);
  else wcsr_arrays(shard ? shard->wcsr : NULL, value, wcsr_names[diag], arrays);
}

void asparse_part_arrays(const asparse_part *part, asparse_dtype dtype, asparse_format diag, asparse_format offd,
                         asparse_part_array arrays[ASPARSE_PART_ARRAYS]) {
  static const char *const diag_names[3] = {"diag/row_ptr", "diag/col_idx", "diag/values"};
  static const char *const offd_names[3] = {"offd/row_ptr", "offd/col_idx", "offd/values"};
  asparse_element value = value_element(dtype);
  csr_arrays(part->diag, value, diag_names, arrays);
  csr_arrays(part->offd, value, offd_names, arrays + 3);
  shard_arrays(part->diag_shard, diag, value, true, arrays + 6);
  shard_arrays(part->offd_shard, offd, value, false, arrays + 10);
  arrays[14] =
      (asparse_part_array){"col_map_offd", ASPARSE_INT64, part->col_map_offd ? part->n_halo : -1, part->col_map_offd};
  arrays[15] = (asparse_part_array){"row_map", ASPARSE_INT64, part->row_map ? part->m_local : -1, part->row_map};
}

int64_t asparse_part_shard_nnz(const asparse_shard *shard) {
  return shard && !shard->csr ? asparse_shard_nnz(shard) : 0;
}

uint64_t asparse_part_checksum(const asparse_part *part, const asparse_part_array arrays[ASPARSE_PART_ARRAYS]) {
  const int64_t scalars[5] = {part->m_local, part->k_local, part->n_halo, asparse_part_shard_nnz(part->diag_shard),
                              asparse_part_shard_nnz(part->offd_shard)};
  uint64_t sum = asparse_checksum_int64(ASPARSE_PART_ARRAYS, 0, scalars, 0, 5);
  for (int i = 0; i < ASPARSE_PART_ARRAYS; i++) {
    if (arrays[i].count > 0)
      sum +=
          asparse_checksum_bytes(i, arrays[i].data, arrays[i].count * (int64_t)asparse_element_size(arrays[i].element));
  }
  return sum;
}

void asparse_part_path(int part, const char *name, char path[ASPARSE_PART_PATH]) {
  snprintf(path, ASPARSE_PART_PATH, "/part_%05d%s%s", part, name[0] ? "/" : "", name);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static asparse_status dump(json_t *root, char text[ASPARSE_PART_JSON]) {
  size_t length = root ? json_dumpb(root, text, ASPARSE_PART_JSON - 1, JSON_INDENT(2)) : 0;
  json_decref(root);
  if (length == 0 || length >= ASPARSE_PART_JSON)
    return ASPARSE_FAIL(ASPARSE_ERR_MEMORY, "cannot build the JSON of a partition file");
  text[length] = '\0';
  return ASPARSE_OK;
}

static asparse_status parse(const char *text, const char *attribute, json_t **root) {
  json_error_t error;
  *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  if (json_is_object(*root)) return ASPARSE_OK;
  json_decref(*root);
  *root = NULL;
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "attribute \"%s\" is not a JSON object: %s", attribute, error.text);
}

static asparse_status get_integer(const json_t *root, const char *key, int64_t least, int64_t most, int64_t *value) {
  const json_t *item = json_object_get(root, key);
  if (!json_is_integer(item) || json_integer_value(item) < least || json_integer_value(item) > most)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "\"%s\" is missing or not within %lld … %lld", key, (long long)least,
                        (long long)most);
  *value = json_integer_value(item);
  return ASPARSE_OK;
}

static asparse_status get_number(const json_t *root, const char *key, double *value) {
  const json_t *item = json_object_get(root, key);
  if (!json_is_number(item)) return ASPARSE_FAIL(ASPARSE_ERR_DATA, "\"%s\" is missing or no number", key);
  *value = json_number_value(item);
  return ASPARSE_OK;
}

/* 64 unsigned bits, as 16 hexadecimal digits: JSON integers have a sign. */
static asparse_status get_hash(const json_t *root, const char *key, uint64_t *value) {
  const char *text = json_string_value(json_object_get(root, key));
  int end = 0;
  if (!text || strlen(text) != 16 || sscanf(text, "%" SCNx64 "%n", value, &end) != 1 || end != 16)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "\"%s\" is missing or not 16 hexadecimal digits", key);
  return ASPARSE_OK;
}

static asparse_status get_choice(const json_t *root, const char *key, const char *const *names, int n_names,
                                 int *choice) {
  const char *text = json_string_value(json_object_get(root, key));
  for (*choice = 0; text && *choice < n_names; ++*choice) {
    if (strcmp(text, names[*choice]) == 0) return ASPARSE_OK;
  }
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "\"%s\" is missing or not known: \"%.20s\"", key, text ? text : "");
}

asparse_status asparse_part_json(const asparse_part_scalars *s, char text[ASPARSE_PART_JSON]) {
  char checksum[ASPARSE_CHECKSUM_LENGTH];
  asparse_checksum_text(s->checksum, checksum);
  return dump(json_pack("{s:I, s:I, s:I, s:I, s:I, s:s}", "m_local", (json_int_t)s->m_local, "k_local",
                        (json_int_t)s->k_local, "n_halo", (json_int_t)s->n_halo, "diag_shard_nnz",
                        (json_int_t)s->diag_shard_nnz, "offd_shard_nnz", (json_int_t)s->offd_shard_nnz, "checksum",
                        checksum),
              text);
}

asparse_status asparse_part_parse(const char *text, asparse_part_scalars *s) {
  asparse_status status = ASPARSE_OK;
  json_t *root = NULL;
  TRY(parse(text, ASPARSE_PART_ATTRIBUTE, &root));
  TRY(get_integer(root, "m_local", 0, INT32_MAX, &s->m_local));
  TRY(get_integer(root, "k_local", 0, INT32_MAX, &s->k_local));
  TRY(get_integer(root, "n_halo", 0, INT32_MAX, &s->n_halo));
  TRY(get_integer(root, "diag_shard_nnz", 0, INT64_MAX, &s->diag_shard_nnz));
  TRY(get_integer(root, "offd_shard_nnz", 0, INT64_MAX, &s->offd_shard_nnz));
  TRY(get_hash(root, "checksum", &s->checksum));
cleanup:
  json_decref(root);
  return status;
}

static const char *const method_names[] = {"contiguous", "metis"};
static const char *const format_names[] = {"auto", "csr", "wcsr", "bcsr"};
static const char *const dtype_names[] = {"fp64", "fp32", "bf16"};

uint64_t asparse_part_header_checksum(const asparse_part_header *h) {
  const int64_t scalars[10] = {h->parts,
                               h->m,
                               h->k,
                               h->nnz,
                               (int64_t)h->dtype,
                               (int64_t)h->method,
                               (int64_t)h->diag.format,
                               h->diag.unit,
                               (int64_t)h->offd.format,
                               h->offd.unit};
  return asparse_checksum_int64(0, 0, scalars, 0, 10) + asparse_checksum_int64(1, 0, h->row_starts, 0, h->parts + 1) +
         asparse_checksum_int64(2, 0, h->col_starts, 0, h->parts + 1);
}

asparse_status asparse_part_header_json(const asparse_part_header *h, char text[ASPARSE_PART_JSON]) {
  char hash[ASPARSE_CHECKSUM_LENGTH], checksum[ASPARSE_CHECKSUM_LENGTH];
  asparse_checksum_text(h->matrix_hash, hash);
  asparse_checksum_text(asparse_part_header_checksum(h), checksum);
  json_t *root = json_pack("{s:i, s:i, s:I, s:I, s:I, s:s, s:s, s:s, s:i, s:s, s:i, s:s, s:f, s:f, s:s}", "version", 1,
                           "parts", h->parts, "m", (json_int_t)h->m, "k", (json_int_t)h->k, "nnz", (json_int_t)h->nnz,
                           "dtype", dtype_names[h->dtype], "method", method_names[h->method], "diag_format",
                           format_names[h->diag.format], "diag_unit", (int)h->diag.unit, "offd_format",
                           format_names[h->offd.format], "offd_unit", (int)h->offd.unit, "matrix_hash", hash,
                           "build_seconds", h->build_seconds, "imbalance", h->imbalance, "checksum", checksum);
  return dump(root, text);
}

static asparse_status get_kind(const json_t *root, const char *format_key, const char *unit_key,
                               asparse_shard_kind *kind) {
  int64_t unit = 0;
  int format = 0;
  PASS(get_choice(root, format_key, format_names, 4, &format));
  PASS(get_integer(root, unit_key, 0, 64, &unit));
  *kind = (asparse_shard_kind){(asparse_format)format, (int32_t)unit};
  bool wcsr = kind->format == ASPARSE_FORMAT_WCSR, tiled = wcsr || kind->format == ASPARSE_FORMAT_BCSR;
  bool unit_known = unit == 16 || unit == 32 || unit == 64 || (unit == 8 && wcsr);
  if (kind->format == ASPARSE_FORMAT_AUTO || (tiled && !unit_known))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "format %s with unit %d is not known", format_names[format], kind->unit);
  return ASPARSE_OK;
}

asparse_status asparse_part_header_parse(const char *text, asparse_part_header *h, uint64_t *checksum) {
  asparse_status status = ASPARSE_OK;
  json_t *root = NULL;
  int64_t version = 0, parts = 0;
  int dtype = 0, method = 0;
  TRY(parse(text, ASPARSE_PARTITION_ATTRIBUTE, &root));
  TRY(get_integer(root, "version", 1, 1, &version));
  TRY(get_integer(root, "parts", 1, 1 << 24, &parts));
  TRY(get_integer(root, "m", 0, INT64_MAX - 1, &h->m));
  TRY(get_integer(root, "k", 0, INT64_MAX - 1, &h->k));
  TRY(get_integer(root, "nnz", 0, INT64_MAX - 1, &h->nnz));
  TRY(get_choice(root, "dtype", dtype_names, 3, &dtype));
  TRY(get_choice(root, "method", method_names, 2, &method));
  TRY(get_kind(root, "diag_format", "diag_unit", &h->diag));
  TRY(get_kind(root, "offd_format", "offd_unit", &h->offd));
  TRY(get_hash(root, "matrix_hash", &h->matrix_hash));
  TRY(get_number(root, "build_seconds", &h->build_seconds));
  TRY(get_number(root, "imbalance", &h->imbalance));
  TRY(get_hash(root, "checksum", checksum));
  h->parts = (int)parts;
  h->dtype = (asparse_dtype)dtype;
  h->method = (asparse_partition_method)method;
cleanup:
  json_decref(root);
  return status;
}
