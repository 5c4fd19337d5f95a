#include "io/matlab.h"

#include <stdio.h>
#include <string.h>

enum {
  INT8 = 1,
  UINT8 = ASPARSE_MATLAB_UINT8,
  INT16,
  UINT16,
  INT32,
  UINT32,
  SINGLE,
  DOUBLE = 9,
  INT64 = 12,
  UINT64,
  TAG_BYTES = 8
};

static uint64_t load(const unsigned char *p, int bytes, bool swapped) {
  uint64_t value = 0;
  uint32_t narrow;
  if (bytes == 8) {
    memcpy(&value, p, sizeof value);
    return swapped ? __builtin_bswap64(value) : value;
  }
  if (bytes == 4) {
    memcpy(&narrow, p, sizeof narrow);
    return swapped ? __builtin_bswap32(narrow) : narrow;
  }
  for (int i = 0; i < bytes; i++) value |= (uint64_t)p[swapped ? bytes - 1 - i : i] << 8 * i;
  return value;
}

bool asparse_matlab_next(asparse_matlab_bytes *b, asparse_matlab_element *e) {
  if (b->end - b->at < TAG_BYTES) return false;
  uint32_t first = (uint32_t)load(b->at, 4, b->swapped);
  int64_t size = TAG_BYTES;
  if (first >> 16) { /* up to four bytes within the tag */
    *e = (asparse_matlab_element){first & 0xffff, first >> 16, b->at + 4};
    if (e->bytes > 4) return false;
  } else {
    *e = (asparse_matlab_element){first, (int64_t)load(b->at + 4, 4, b->swapped), b->at + TAG_BYTES};
    if (e->bytes > b->end - e->data) return false;
    size += (e->bytes + 7) / 8 * 8;
  }
  b->at = size < b->end - b->at ? b->at + size : b->end; /* the last padding may be missing */
  return true;
}

static int width(uint32_t type) {
  switch (type) {
  case INT8:
  case UINT8: return 1;
  case INT16:
  case UINT16: return 2;
  case INT32:
  case UINT32:
  case SINGLE: return 4;
  case DOUBLE:
  case INT64:
  case UINT64: return 8;
  default: return 0;
  }
}

int64_t asparse_matlab_count(const asparse_matlab_element *e) {
  return width(e->type) ? e->bytes / width(e->type) : -1;
}

double asparse_matlab_number(const asparse_matlab_bytes *b, const asparse_matlab_element *e, int64_t i) {
  const int bytes = width(e->type);
  const uint64_t bits = load(e->data + i * bytes, bytes, b->swapped);
  const uint32_t narrow = (uint32_t)bits;
  double wide;
  float single;
  switch (e->type) {
  case INT8: return (int8_t)bits;
  case INT16: return (int16_t)bits;
  case INT32: return (int32_t)bits;
  case INT64: return (double)(int64_t)bits;
  case SINGLE: memcpy(&single, &narrow, 4); return single;
  case DOUBLE: memcpy(&wide, &bits, 8); return wide;
  default: return (double)bits;
  }
}

bool asparse_matlab_open(asparse_matlab_bytes contents, asparse_matlab_array *a) {
  enum { LOGICAL = 0x200, COMPLEX = 0x800 };
  asparse_matlab_element e;
  *a = (asparse_matlab_array){.count = 1};
  if (!asparse_matlab_next(&contents, &e) || e.type != UINT32 || e.bytes < 8) return false;
  const uint32_t flags = (uint32_t)load(e.data, 4, contents.swapped);
  a->class = flags & 0xff;
  a->complex = flags & COMPLEX;
  a->logical = flags & LOGICAL;
  if (!asparse_matlab_next(&contents, &e) || e.type != INT32 || e.bytes < 8 || e.bytes > 64 * 4) return false;
  a->n_dims = (int)(e.bytes / 4);
  for (int d = 0; d < a->n_dims; d++) {
    const int32_t size = (int32_t)load(e.data + 4 * d, 4, contents.swapped);
    if (size < 0 || __builtin_mul_overflow(a->count, (int64_t)size, &a->count)) return false;
    if (d == 0) a->m = size;
    if (d == 1) a->n = size;
  }
  if (!asparse_matlab_next(&contents, &e) || e.type != INT8) return false;
  snprintf(a->name, sizeof a->name, "%.*s", e.bytes < 63 ? (int)e.bytes : 63, (const char *)e.data);
  a->rest = contents;
  return true;
}
