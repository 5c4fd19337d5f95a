#include "io/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
  LARGEST_HEADER = 64 << 10,
  /* Elements read at a time: deflated ones by one thread, and converted while in its cache; stored ones by all. */
  DEFLATED_CHUNK = 32 << 10,
  STORED_CHUNK = 1 << 20
};

static asparse_status fail(const asparse_npy *npy, const char *found) {
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: %s", npy->label, found);
}

/* ---- header ---------------------------------------------------------------------------------- */

/* What follows 'key': in the header's dictionary; NULL: nothing. */
static const char *value_of(const char *header, const char *key) {
  char quoted[32];
  for (const char *quote = "'\""; *quote; quote++) {
    snprintf(quoted, sizeof quoted, "%c%s%c", *quote, key, *quote);
    const char *p = strstr(header, quoted);
    if (!p) continue;
    p += strlen(quoted);
    p += strspn(p, " ");
    if (*p == ':') return p + 1 + strspn(p + 1, " ");
  }
  return NULL;
}

/* '<f8', '|b1', '>i4', '|S3', '<U3': byte order, kind, bytes (characters of U). */
static asparse_status parse_type(asparse_npy *npy, const char *p) {
  static const struct {
    char name[3];
    asparse_element element;
  } types[] = {{"i1", ASPARSE_INT8},    {"i2", ASPARSE_INT16},   {"i4", ASPARSE_INT32},  {"i8", ASPARSE_INT64},
               {"u1", ASPARSE_UINT8},   {"u2", ASPARSE_UINT16},  {"u4", ASPARSE_UINT32}, {"u8", ASPARSE_UINT64},
               {"f4", ASPARSE_FLOAT32}, {"f8", ASPARSE_FLOAT64}, {"b1", ASPARSE_UINT8},  {"f2", ASPARSE_FLOAT32}};
  size_t n = p && (*p == '\'' || *p == '"') ? strcspn(p + 1, "'\"") : 0;
  if (n < 2 || n >= sizeof npy->type) return fail(npy, "its header has no simple type; expected one array of numbers");
  memcpy(npy->type, p + 1, n);
  npy->type[n] = '\0';
  const char order = npy->type[0], *kind = npy->type + (strchr("<>|=", order) ? 1 : 0);
  npy->swapped = order == '>';
  if (*kind == 'O')
    return fail(npy, "it holds pickled Python objects, which are programs and are not run; save it anew with "
                     "scipy.sparse.save_npz");
  if (*kind == 'c') return fail(npy, "complex values are not supported yet; use a real matrix");
  if (*kind == 'S' || *kind == 'U') {
    npy->item_bytes = strtoul(kind + 1, NULL, 10) % LARGEST_HEADER * (*kind == 'U' ? 4 : 1);
    return ASPARSE_OK;
  }
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strcmp(kind, types[i].name) != 0) continue;
    npy->number = true;
    npy->element = types[i].element;
    npy->half = strcmp(kind, "f2") == 0;
    npy->item_bytes = npy->half ? 2 : asparse_element_size(npy->element);
    return ASPARSE_OK;
  }
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: its type is \"%s\"; expected integers or real numbers", npy->label,
                      npy->type);
}

/* (), (3,), (4, 2, 2) */
static asparse_status parse_shape(asparse_npy *npy, const char *p) {
  if (!p || *p != '(') return fail(npy, "its header has no shape");
  npy->count = 1;
  for (p++; npy->n_dims < ASPARSE_NPY_DIMS; npy->n_dims++) {
    char *end = NULL;
    p += strspn(p, " ,");
    if (*p == ')') break;
    long long size = strtoll(p, &end, 10);
    if (end == p || size < 0 || size == INT64_MAX || __builtin_mul_overflow(npy->count, size, &npy->count))
      return fail(npy, "its shape is no list of sizes within 64 bits");
    npy->shape[npy->n_dims] = size;
    p = end + (*end == 'L'); /* Python 2 */
  }
  p += strspn(p, " ,");
  if (*p != ')') return fail(npy, "it has more than three dimensions");
  for (int i = npy->n_dims; i < ASPARSE_NPY_DIMS; i++) npy->shape[i] = 1;
  return ASPARSE_OK;
}

static asparse_status read_header(asparse_npy *npy) {
  asparse_status status = ASPARSE_OK;
  unsigned char start[12];
  char *header = NULL;
  TRY(asparse_zip_read(&npy->reader, start, 10));
  TRY_THAT(memcmp(start, "\x93NUMPY", 6) == 0 && start[6] >= 1 && start[6] <= 3, ASPARSE_ERR_DATA,
           "%s: it does not begin as an array of NumPy, version 1 to 3", npy->label);
  int64_t length = start[8] | start[9] << 8;
  if (start[6] > 1) {
    TRY(asparse_zip_read(&npy->reader, start + 10, 2));
    length |= (int64_t)start[10] << 16 | (int64_t)start[11] << 24;
  }
  TRY_THAT(length <= LARGEST_HEADER, ASPARSE_ERR_DATA, "%s: its header of %lld bytes is no plausible one", npy->label,
           (long long)length);
  ALLOC(header, length + 1);
  TRY(asparse_zip_read(&npy->reader, header, length));
  header[length] = '\0';
  TRY(parse_type(npy, value_of(header, "descr")));
  TRY(parse_shape(npy, value_of(header, "shape")));
  const char *fortran = value_of(header, "fortran_order");
  TRY_THAT(npy->n_dims < 2 || (fortran && strncmp(fortran, "False", 5) == 0), ASPARSE_ERR_DATA,
           "%s: it is in Fortran order; expected C order", npy->label);
cleanup:
  asparse_free(header);
  return status;
}

asparse_status asparse_npy_open(const asparse_zip *zip, const char *name, asparse_npy *npy) {
  char member_name[96];
  int64_t bytes = 0;
  *npy = (asparse_npy){.count = 0};
  snprintf(npy->label, sizeof npy->label, "%s, array %s", zip->input->name, name);
  int length = snprintf(member_name, sizeof member_name, "%s.npy", name);
  const asparse_zip_member *member = length < (int)sizeof member_name ? asparse_zip_find(zip, member_name) : NULL;
  if (!member) return fail(npy, "it is missing in the archive");
  PASS(asparse_zip_begin(zip, member, &npy->reader));
  PASS(read_header(npy));
  if (__builtin_mul_overflow(npy->count, (int64_t)npy->item_bytes, &bytes) || bytes != npy->reader.left)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: it has %lld elements of type %s by its header, but %lld bytes follow",
                        npy->label, (long long)npy->count, npy->type, (long long)npy->reader.left);
  return ASPARSE_OK;
}

void asparse_npy_close(asparse_npy *npy) { asparse_zip_end(&npy->reader); }

/* ---- elements -------------------------------------------------------------------------------- */

static void swap_bytes(void *items, int64_t count, size_t size) {
  unsigned char *p = items;
  for (int64_t i = 0; i < count; i++, p += size) {
    for (size_t b = 0; b < size / 2; b++) {
      unsigned char kept = p[b];
      p[b] = p[size - 1 - b];
      p[size - 1 - b] = kept;
    }
  }
}

/* IEEE binary16, exactly: the significand scaled by its exponent. */
static float float_from_half(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023, bits;
  float value;
  if (exponent == 0) {
    value = (float)fraction * 0x1p-24f;
    return sign ? -value : value;
  }
  bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* The next elements as npy->element in native order; room for count of 8 bytes, or of their own where they need no
 * conversion. */
static asparse_status read_chunk(asparse_npy *npy, int64_t count, void *items) {
  if (count > npy->count - npy->next)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: it has %lld elements; expected at least %lld", npy->label,
                        (long long)npy->count, (long long)(npy->next + count));
  PASS(asparse_zip_read(&npy->reader, items, count * (int64_t)npy->item_bytes));
  if (npy->swapped) swap_bytes(items, count, npy->item_bytes);
  for (int64_t i = count - 1; npy->half && i >= 0; i--)
    ((float *)items)[i] = float_from_half(((const uint16_t *)items)[i]);
  npy->next += count;
  return ASPARSE_OK;
}

/* Where elements go: int64 numbers, or values of dtype. */
typedef struct target {
  bool integers;
  asparse_dtype dtype;
  void *to;
  int64_t *inexact;
} target;

/* The next elements: in chunks through a buffer, or at once into place where the target has their type. */
static asparse_status read_into(asparse_npy *npy, int64_t count, const target *t) {
  asparse_status status = ASPARSE_OK;
  uint64_t *items = NULL;
  const asparse_element wanted = t->integers ? ASPARSE_INT64 : asparse_element_of_dtype(t->dtype);
  const bool in_place = npy->element == wanted && !npy->half && (t->integers || t->dtype != ASPARSE_BF16);
  const int64_t longest = npy->reader.member->deflated ? DEFLATED_CHUNK : STORED_CHUNK;
  const int64_t chunk = count < longest ? count : longest;
  if (!in_place) ALLOC(items, chunk);
  for (int64_t done = 0; done < count; done += chunk) {
    int64_t n = count - done < chunk ? count - done : chunk;
    TRY(read_chunk(npy, n, in_place ? (char *)t->to + done * (int64_t)npy->item_bytes : (void *)items));
    if (in_place) continue;
    if (t->integers) asparse_element_to_int64(npy->element, items, n, (int64_t *)t->to + done);
    else *t->inexact += asparse_element_to_values(npy->element, items, n, t->dtype, t->to, done);
  }
cleanup:
  asparse_free(items);
  return status;
}

asparse_status asparse_npy_skip(asparse_npy *npy, int64_t count) {
  if (count > npy->count - npy->next) return fail(npy, "it is too short");
  npy->next += count;
  return asparse_zip_skip(&npy->reader, count * (int64_t)npy->item_bytes);
}

asparse_status asparse_npy_integers(asparse_npy *npy, int64_t count, int64_t *to) {
  const target t = {.integers = true, .to = to};
  if (!npy->number || !asparse_element_is_integer(npy->element))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: its type is %s; expected integers", npy->label, npy->type);
  return read_into(npy, count, &t);
}

asparse_status asparse_npy_values(asparse_npy *npy, int64_t count, asparse_dtype dtype, void *to, int64_t *inexact) {
  const target t = {.dtype = dtype, .to = to, .inexact = inexact};
  if (!npy->number)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: its type is %s; expected numbers", npy->label, npy->type);
  return read_into(npy, count, &t);
}

asparse_status asparse_npy_text(asparse_npy *npy, char *text, size_t size) {
  enum { MOST = 64 };
  unsigned char bytes[MOST];
  const size_t step = strchr(npy->type, 'U') ? 4 : 1;
  size_t n = 0;
  if (npy->number || npy->item_bytes > MOST || npy->count != 1) return fail(npy, "expected a short text");
  PASS(asparse_zip_read(&npy->reader, bytes, (int64_t)npy->item_bytes));
  /* The low byte of each UCS-4 character. */
  for (size_t i = npy->swapped && step == 4 ? 3 : 0; i < npy->item_bytes && n + 1 < size; i += step) {
    if (bytes[i]) text[n++] = (char)bytes[i];
  }
  text[n] = '\0';
  return ASPARSE_OK;
}
