#include "fuzz/container.h"

#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/harness.h"
#include "io/hdf5_base.h"
#include "io/hdf5_lzf.h"

enum { MOST_VALUES = 256, MOST_LINES = 100, MOST_RAW = 512, LARGEST_WRITTEN = 1 << 16 };

/* ---- words ----------------------------------------------------------------------------------- */

/* The next word of the line, which ends where *cursor then stands; "" when there is none. */
static char *next_word(char **cursor) {
  char *word = *cursor + strspn(*cursor, " "), *end = word + strcspn(word, " ");
  *cursor = end + (*end != '\0');
  *end = '\0';
  return word;
}

/* "2x3"; the number of extents, 0 for "-". */
static int parse_extents(const char *word, hsize_t extents[H5S_MAX_RANK]) {
  int n = 0;
  char *end;
  for (; *word && *word != '-' && n < H5S_MAX_RANK; word = end + (*end == 'x')) {
    extents[n] = strtoull(word, &end, 10);
    if (end == word) return 0;
    n++;
  }
  return n;
}

/* ---- types ------------------------------------------------------------------------------------ */

static hid_t half_type(void) {
  hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  return type;
}

static hid_t truth_type(void) {
  hid_t type = H5Tenum_create(H5T_STD_I8LE);
  for (int8_t value = 0; value < 2; value++) H5Tenum_insert(type, value ? "TRUE" : "FALSE", &value);
  return type;
}

static hid_t complex_type(void) {
  hid_t type = H5Tcreate(H5T_COMPOUND, 16);
  H5Tinsert(type, "r", 0, H5T_IEEE_F64LE);
  H5Tinsert(type, "i", 8, H5T_IEEE_F64LE);
  return type;
}

static hid_t integer_type(bool is_signed, long bytes, long bits) {
  hid_t type = H5Tcopy(is_signed ? H5T_STD_I64LE : H5T_STD_U64LE);
  if (bits > 0) H5Tset_precision(type, (size_t)bits);
  if (bytes > 0) H5Tset_size(type, (size_t)bytes);
  return type;
}

static hid_t make_type(const char *word) {
  const bool big_endian = *word == '>';
  word += big_endian;
  char *end = (char *)word, kind = *word;
  const long bytes = kind ? strtol(word + 1, &end, 10) % 64 : 0, bits = *end == ':' ? strtol(end + 1, NULL, 10) : 0;
  hid_t type = -1;
  switch (kind) {
  case 'i':
  case 'u': type = integer_type(kind == 'i', bytes, bits); break;
  case 'f':
    type = bytes == 2 ? half_type()
                      : H5Tcopy(bytes == 4   ? H5T_IEEE_F32LE
                                : bytes == 8 ? H5T_IEEE_F64LE
                                             : H5T_NATIVE_LDOUBLE);
    break;
  case 'b': type = truth_type(); break;
  case 's':
    type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, bytes > 0 ? (size_t)bytes : H5T_VARIABLE);
    break;
  case 'c': type = complex_type(); break;
  case 'v': type = H5Tvlen_create(H5T_STD_I32LE); break;
  case 'r': type = H5Tcopy(H5T_STD_REF_OBJ); break;
  default: break;
  }
  if (big_endian) H5Tset_order(type, H5T_ORDER_BE);
  return type;
}

/* ---- values ----------------------------------------------------------------------------------- */

/* Integers stay exact in `integers`, others are in `reals`. */
typedef struct value_list {
  int64_t integers[MOST_VALUES];
  double reals[MOST_VALUES];
  size_t n;
} value_list;

static void parse_values(char *cursor, value_list *values) {
  for (values->n = 0; values->n < MOST_VALUES; values->n++) {
    const char *word = next_word(&cursor);
    if (!*word) return;
    values->integers[values->n] = (int64_t)strtoull(word, NULL, 10);
    values->reals[values->n] = strtod(word, NULL);
  }
}

/* The first values->n elements in the order of storage. */
static void write_values(hid_t dataset, hid_t space, hid_t type, const value_list *values) {
  hsize_t extents[H5S_MAX_RANK], points[MOST_VALUES * 2] = {0};
  const int rank = H5Sget_simple_extent_dims(space, extents, NULL);
  const hssize_t elements = H5Sget_simple_extent_npoints(space);
  const bool integer = H5Tget_class(type) == H5T_INTEGER;
  hsize_t n = values->n;
  if (rank > 2 || n == 0 || elements < (hssize_t)n || (!integer && H5Tget_class(type) != H5T_FLOAT)) return;
  for (hsize_t i = 0; rank > 0 && i < n; i++) {
    points[i * (hsize_t)rank] = rank == 1 ? i : i / extents[1];
    if (rank == 2) points[2 * i + 1] = i % extents[1];
  }
  hid_t memory = H5Screate_simple(1, &n, NULL);
  if (rank > 0) H5Sselect_elements(space, H5S_SELECT_SET, (size_t)n, points);
  if (integer) H5Dwrite(dataset, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, values->integers);
  else H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values->reals);
  H5Sclose(memory);
}

/* LZF, and nothing but the order of bytes beside it. */
static bool is_lzf(hid_t creation) {
  bool lzf = false;
  for (int i = H5Pget_nfilters(creation) - 1; i >= 0; i--) {
    size_t n = 0;
    H5Z_filter_t filter = H5Pget_filter2(creation, (unsigned)i, NULL, &n, NULL, 0, NULL, NULL);
    if (filter != ASPARSE_LZF_FILTER && filter != H5Z_FILTER_SHUFFLE) return false;
    lzf = lzf || filter == ASPARSE_LZF_FILTER;
  }
  return lzf;
}

/* The first chunk, packed, as hexadecimal digits. For LZF, which is ours: HDF5's own filters, and chunks without any,
 * may be too small for a chunk, which HDF5 1.10 does not notice. */
static void write_chunk(hid_t dataset, hid_t creation, const char *digits) {
  const hsize_t offset[H5S_MAX_RANK] = {0};
  uint8_t bytes[MOST_RAW];
  size_t n = 0;
  for (char pair[3] = ""; n < MOST_RAW && digits[2 * n] && digits[2 * n + 1]; n++) {
    memcpy(pair, digits + 2 * n, 2);
    bytes[n] = (uint8_t)strtoul(pair, NULL, 16);
  }
  hid_t space = H5Dget_space(dataset);
  const bool has_chunks = H5Sget_simple_extent_npoints(space) > 0; /* HDF5 1.10 crashes where there are none */
  H5Sclose(space);
  if (n > 0 && has_chunks && is_lzf(creation)) H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset, n, bytes);
}

/* ---- datasets --------------------------------------------------------------------------------- */

static hsize_t product(const hsize_t *extents, int rank) {
  hsize_t elements = 1;
  for (int i = 0; i < rank; i++) {
    if (__builtin_mul_overflow(elements, extents[i], &elements)) return HSIZE_UNDEF;
  }
  return elements;
}

static void add_option(hid_t creation, char *word, hid_t space, bool *compact) {
  hsize_t extents[H5S_MAX_RANK];
  if (strncmp(word, "chunk=", 6) == 0) {
    int rank = parse_extents(word + 6, extents);
    if (product(extents, rank) <= 1u << 31) H5Pset_chunk(creation, rank, extents);
  } else if (strcmp(word, "gzip") == 0) H5Pset_deflate(creation, 1);
  else if (strcmp(word, "shuffle") == 0) H5Pset_shuffle(creation);
  else if (strcmp(word, "fletcher") == 0) H5Pset_fletcher32(creation);
  else if (strncmp(word, "lzf=", 4) == 0)
    H5Pset_filter(creation, ASPARSE_LZF_FILTER, H5Z_FLAG_OPTIONAL, 3,
                  (unsigned[]){4, 0, (unsigned)strtoul(word + 4, NULL, 10)});
  else if (strcmp(word, "nbit") == 0) H5Pset_nbit(creation);
  else if (strncmp(word, "scale=", 6) == 0) H5Pset_scaleoffset(creation, H5Z_SO_INT, atoi(word + 6) % 64);
  else if (strcmp(word, "compact") == 0) *compact = true;
  else if (strcmp(word, "external") == 0) H5Pset_external(creation, "elsewhere", 0, H5F_UNLIMITED);
  else if (strcmp(word, "virtual") == 0) H5Pset_virtual(creation, space, "elsewhere", "/x", space);
}

/* What a contiguous, compact or single chunk holds is in the file whole once a value is written. */
static bool small_enough(hid_t creation, hid_t space, hid_t type, bool has_values) {
  hsize_t extents[H5S_MAX_RANK] = {0};
  const bool chunked = H5Pget_layout(creation) == H5D_CHUNKED;
  const int rank =
      chunked ? H5Pget_chunk(creation, H5S_MAX_RANK, extents) : H5Sget_simple_extent_dims(space, extents, NULL);
  return !has_values || product(extents, rank) <= LARGEST_WRITTEN / H5Tget_size(type);
}

static void add_array(hid_t file, char *cursor) {
  value_list values = {.n = 0};
  hsize_t extents[H5S_MAX_RANK], unlimited[H5S_MAX_RANK]; /* chunks may be larger than the dataset */
  bool compact = false;
  const char *path = next_word(&cursor), *raw = "";
  hid_t type = make_type(next_word(&cursor));
  const int rank = parse_extents(next_word(&cursor), extents);
  hid_t space = rank > 0 ? H5Screate_simple(rank, extents, NULL) : H5Screate(H5S_SCALAR);
  hid_t creation = H5Pcreate(H5P_DATASET_CREATE), links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  for (int i = 0; i < H5S_MAX_RANK; i++) unlimited[i] = H5S_UNLIMITED;
  for (char *word = next_word(&cursor); *word; word = next_word(&cursor)) {
    if (strcmp(word, "=") == 0) parse_values(cursor, &values);
    if (strcmp(word, "=") == 0) break;
    if (strncmp(word, "raw=", 4) == 0) raw = word + 4;
    else add_option(creation, word, space, &compact);
  }
  if (compact) H5Pset_layout(creation, H5D_COMPACT);
  if (rank > 0 && H5Pget_layout(creation) == H5D_CHUNKED) H5Sset_extent_simple(space, rank, extents, unlimited);
  if (type >= 0 && space >= 0 && small_enough(creation, space, type, values.n > 0 || compact)) {
    hid_t dataset = H5Dcreate2(file, path, type, space, links, creation, H5P_DEFAULT);
    if (dataset >= 0 && H5Pget_external_count(creation) == 0) write_values(dataset, space, type, &values);
    if (dataset >= 0) write_chunk(dataset, creation, raw);
    CLOSE_HDF5(H5Dclose, dataset);
  }
  CLOSE_HDF5(H5Tclose, type);
  CLOSE_HDF5(H5Sclose, space);
  H5Pclose(creation);
  H5Pclose(links);
}

/* ---- attributes ------------------------------------------------------------------------------- */

static void add_attribute(hid_t file, char *cursor) {
  value_list values;
  hsize_t extents[H5S_MAX_RANK];
  hid_t object = H5Oopen(file, next_word(&cursor), H5P_DEFAULT);
  const char *name = next_word(&cursor);
  hid_t type = make_type(next_word(&cursor));
  const int rank = parse_extents(next_word(&cursor), extents);
  next_word(&cursor); /* "=" */
  parse_values(cursor, &values);
  memset(values.integers + values.n, 0, (MOST_VALUES - values.n) * sizeof *values.integers);
  memset(values.reals + values.n, 0, (MOST_VALUES - values.n) * sizeof *values.reals);
  if (object >= 0 && type >= 0 && product(extents, rank) <= MOST_VALUES) {
    hid_t space = rank > 0 ? H5Screate_simple(rank, extents, NULL) : H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute >= 0 && H5Tget_class(type) == H5T_INTEGER) H5Awrite(attribute, H5T_NATIVE_INT64, values.integers);
    if (attribute >= 0 && H5Tget_class(type) == H5T_FLOAT) H5Awrite(attribute, H5T_NATIVE_DOUBLE, values.reals);
    CLOSE_HDF5(H5Aclose, attribute);
    CLOSE_HDF5(H5Sclose, space);
  }
  CLOSE_HDF5(H5Tclose, type);
  CLOSE_HDF5(H5Oclose, object);
}

static void add_text(hid_t file, char *cursor, bool fixed) {
  hid_t object = H5Oopen(file, next_word(&cursor), H5P_DEFAULT);
  const char *name = next_word(&cursor), *text = cursor;
  if (object < 0) return;
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, !fixed ? H5T_VARIABLE : *text ? strlen(text) : 1);
  hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  if (attribute >= 0) H5Awrite(attribute, type, fixed ? (const void *)text : &text);
  CLOSE_HDF5(H5Aclose, attribute);
  H5Sclose(space);
  H5Tclose(type);
  H5Oclose(object);
}

/* In place of our LZF, which cannot encode: HDF5 creates no dataset with such a filter. Keeps the bytes. */
static size_t keep(unsigned flags, size_t n_parameters, const unsigned parameters[], size_t n_bytes,
                   size_t *buffer_size, void **buffer) {
  (void)flags, (void)n_parameters, (void)parameters, (void)buffer_size, (void)buffer;
  return n_bytes;
}
static const H5Z_class2_t lzf_encoder = {H5Z_CLASS_T_VERS, ASPARSE_LZF_FILTER, 1, 1, "lzf", NULL, NULL, keep};

/* ---- lines ------------------------------------------------------------------------------------ */

static void add_group(hid_t file, char *cursor) {
  hid_t group = H5Gcreate2(file, next_word(&cursor), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  CLOSE_HDF5(H5Gclose, group);
}

static void add_link(hid_t file, const char *kind, char *cursor) {
  const char *path = next_word(&cursor), *target = next_word(&cursor);
  if (strcmp(kind, "soft") == 0) H5Lcreate_soft(target, file, path, H5P_DEFAULT, H5P_DEFAULT);
  else if (strcmp(kind, "hard") == 0) H5Lcreate_hard(file, target, file, path, H5P_DEFAULT, H5P_DEFAULT);
  else H5Lcreate_external(target, next_word(&cursor), file, path, H5P_DEFAULT, H5P_DEFAULT);
}

static void add_line(hid_t file, char *cursor) {
  const char *kind = next_word(&cursor);
  if (strcmp(kind, "group") == 0) add_group(file, cursor);
  else if (strcmp(kind, "array") == 0) add_array(file, cursor);
  else if (strcmp(kind, "attribute") == 0) add_attribute(file, cursor);
  else if (strcmp(kind, "text") == 0 || strcmp(kind, "fixed") == 0) add_text(file, cursor, kind[0] == 'f');
  else if (strcmp(kind, "soft") == 0 || strcmp(kind, "hard") == 0 || strcmp(kind, "external") == 0)
    add_link(file, kind, cursor);
}

void fuzz_container_write(const char *path, const uint8_t *text, size_t size) {
  char *copy = malloc(size + 1);
  FUZZ_THAT(copy);
  memcpy(copy, text, size);
  copy[size] = '\0';
  asparse_hdf5_begin();
  H5Zunregister(ASPARSE_LZF_FILTER);
  H5Zregister(&lzf_encoder);
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  FUZZ_THAT(file >= 0);
  char *line = copy, *next = NULL;
  for (int i = 0; line && i < MOST_LINES; i++, line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = '\0';
    add_line(file, line);
  }
  FUZZ_THAT(H5Fclose(file) >= 0);
  H5Zunregister(ASPARSE_LZF_FILTER); /* a reader registers ours again */
  H5Eclear2(H5E_DEFAULT);
  free(copy);
}
