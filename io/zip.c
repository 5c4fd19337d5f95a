#include "io/zip.h"

#include <string.h>

#include "base/memory.h"
#include "io/budget.h"

enum {
  END_BYTES = 22,     /* end of central directory, without its comment */
  END64_BYTES = 56,   /* the same for zip64 */
  LOCATOR_BYTES = 20, /* where the latter is; just before the former */
  ENTRY_BYTES = 46,   /* of the central directory, without names */
  LOCAL_BYTES = 30,   /* header of a member */
  LARGEST_COMMENT = 65535,
  BUFFER_BYTES = 256 << 10,
  MOST_RATIO = 1040 /* deflate cannot shrink more than 1032:1 */
};

static uint64_t little(const unsigned char *p, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | p[i];
  return value;
}

static asparse_status fail(const asparse_input *input, int64_t offset, const char *found) {
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s, byte %lld: %s; the zip archive is damaged or cut off", input->name,
                      (long long)offset, found);
}

/* ---- directory ------------------------------------------------------------------------------- */

typedef struct directory {
  uint64_t n, bytes, offset;
} directory;

static asparse_status find_directory(const asparse_input *input, directory *d) {
  asparse_status status = ASPARSE_OK;
  unsigned char *tail = NULL, end64[END64_BYTES];
  int64_t length = END_BYTES + LOCATOR_BYTES + LARGEST_COMMENT, at = -1;
  if (length > input->file_bytes) length = input->file_bytes;
  const int64_t base = input->file_bytes - length;
  ALLOC(tail, length);
  TRY(asparse_input_read(input, base, tail, length, "the zip archive's end"));
  for (int64_t i = length - END_BYTES; i >= 0 && at < 0; i--) {
    if (memcmp(tail + i, "PK\5\6", 4) == 0) at = i;
  }
  if (at < 0) {
    status = fail(input, input->file_bytes, "no central directory");
    goto cleanup;
  }
  *d = (directory){little(tail + at + 10, 2), little(tail + at + 12, 4), little(tail + at + 16, 4)};
  if (at >= LOCATOR_BYTES && memcmp(tail + at - LOCATOR_BYTES, "PK\6\7", 4) == 0) {
    uint64_t offset = little(tail + at - LOCATOR_BYTES + 8, 8);
    TRY(asparse_input_read(input, offset < INT64_MAX ? (int64_t)offset : -1, end64, END64_BYTES,
                           "the zip64 directory"));
    *d = (directory){little(end64 + 32, 8), little(end64 + 40, 8), little(end64 + 48, 8)};
  }
  if (d->offset > (uint64_t)input->file_bytes || d->bytes > (uint64_t)input->file_bytes - d->offset ||
      d->n > d->bytes / ENTRY_BYTES)
    status = fail(input, base + at, "its central directory is larger than the file");
cleanup:
  asparse_free(tail);
  return status;
}

/* Sizes of 0xffffffff stand in the extra field of zip64, in this order. */
static void widen(const unsigned char *extra, size_t length, uint64_t *sizes[3]) {
  while (length >= 4) {
    size_t id = (size_t)little(extra, 2), n = (size_t)little(extra + 2, 2);
    if (n > length - 4) return;
    const unsigned char *p = extra + 4;
    for (int i = 0; id == 1 && i < 3; i++) {
      if (*sizes[i] != UINT32_MAX || p + 8 > extra + 4 + n) continue;
      *sizes[i] = little(p, 8);
      p += 8;
    }
    extra += 4 + n;
    length -= 4 + n;
  }
}

/* One entry at p; its bytes in *used. */
static asparse_status parse_entry(const asparse_zip *zip, const unsigned char *p, int64_t left, char *name,
                                  asparse_zip_member *member, int64_t *used) {
  const asparse_input *input = zip->input;
  if (left < ENTRY_BYTES || memcmp(p, "PK\1\2", 4) != 0)
    return fail(input, input->file_bytes - left, "no entry of the central directory");
  const size_t n_name = (size_t)little(p + 28, 2), n_extra = (size_t)little(p + 30, 2);
  uint64_t packed = little(p + 20, 4), bytes = little(p + 24, 4), offset = little(p + 42, 4);
  *used = (int64_t)(ENTRY_BYTES + n_name + n_extra + little(p + 32, 2));
  if (*used > left) return fail(input, input->file_bytes - left, "an entry of the central directory ends too late");
  memcpy(name, p + ENTRY_BYTES, n_name);
  name[n_name] = '\0';
  widen(p + ENTRY_BYTES + n_name, n_extra, (uint64_t *[]){&bytes, &packed, &offset});
  const uint64_t method = little(p + 10, 2), file_bytes = (uint64_t)input->file_bytes;
  if (little(p + 8, 2) & 1)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: member %s is encrypted; unpack it first", input->name, name);
  if (method != 0 && method != 8)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: member %s is packed by method %llu; expected stored (0) or deflated (8)",
                        input->name, name, (unsigned long long)method);
  if (offset > file_bytes || packed > file_bytes - offset || bytes > packed * MOST_RATIO + MOST_RATIO ||
      (method == 0 && bytes != packed))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: member %s claims %llu bytes, %llu packed, in a file of %llu",
                        input->name, name, (unsigned long long)bytes, (unsigned long long)packed,
                        (unsigned long long)file_bytes);
  *member = (asparse_zip_member){
      name, (int64_t)offset, (int64_t)packed, (int64_t)bytes, (uint32_t)little(p + 16, 4), method == 8};
  return ASPARSE_OK;
}

asparse_status asparse_zip_open(const asparse_input *input, asparse_zip *zip) {
  asparse_status status = ASPARSE_OK;
  directory d = {0};
  *zip = (asparse_zip){.input = input};
  TRY(find_directory(input, &d));
  TRY(asparse_budget_allows(input->name, 4 * (int64_t)d.bytes, "its directory"));
  ALLOC(zip->directory, (int64_t)d.bytes);
  ALLOC(zip->names, (int64_t)(d.bytes + d.n)); /* names are shorter than entries */
  ALLOC(zip->members, (int64_t)d.n);
  TRY(asparse_input_read(input, (int64_t)d.offset, zip->directory, (int64_t)d.bytes, "the central directory"));
  const unsigned char *p = (const unsigned char *)zip->directory;
  char *name = zip->names;
  int64_t left = (int64_t)d.bytes;
  for (; zip->n_members < (int64_t)d.n; zip->n_members++) {
    int64_t used = 0;
    TRY(parse_entry(zip, p, left, name, &zip->members[zip->n_members], &used));
    name += strlen(name) + 1;
    p += used;
    left -= used;
  }
cleanup:
  return status;
}

void asparse_zip_close(asparse_zip *zip) {
  FREE(zip->members);
  FREE(zip->names);
  FREE(zip->directory);
}

const asparse_zip_member *asparse_zip_find(const asparse_zip *zip, const char *name) {
  for (int64_t i = 0; i < zip->n_members; i++) {
    if (strcmp(zip->members[i].name, name) == 0) return &zip->members[i];
  }
  return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

asparse_status asparse_zip_begin(const asparse_zip *zip, const asparse_zip_member *member, asparse_zip_reader *r) {
  asparse_status status = ASPARSE_OK;
  unsigned char header[LOCAL_BYTES];
  *r =
      (asparse_zip_reader){.input = zip->input, .member = member, .packed_left = member->packed, .left = member->bytes};
  TRY(asparse_input_read(zip->input, member->header_offset, header, LOCAL_BYTES, "a member's header"));
  if (memcmp(header, "PK\3\4", 4) != 0) {
    status = fail(zip->input, member->header_offset, "no header of a member");
    goto cleanup;
  }
  r->offset = member->header_offset + LOCAL_BYTES + (int64_t)(little(header + 26, 2) + little(header + 28, 2));
  if (member->deflated) {
    ALLOC(r->buffer, BUFFER_BYTES);
    TRY_THAT(inflateInit2(&r->stream, -MAX_WBITS) == Z_OK, ASPARSE_ERR_MEMORY, "%s: no memory to unpack it",
             zip->input->name);
    r->streaming = true;
  }
cleanup:
  return status;
}

void asparse_zip_end(asparse_zip_reader *r) {
  if (r->streaming) inflateEnd(&r->stream);
  r->streaming = false;
  FREE(r->buffer);
}

static asparse_status damaged(const asparse_zip_reader *r, const char *reason) {
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: member %s is damaged after %lld of %lld bytes (%s); fetch the file again",
                      r->input->name, r->member->name, (long long)(r->member->bytes - r->left),
                      (long long)r->member->bytes, reason);
}

static asparse_status inflate_some(asparse_zip_reader *r, unsigned char *to, int64_t bytes, int64_t *got) {
  z_stream *z = &r->stream;
  if (z->avail_in == 0) {
    int64_t n = r->packed_left < BUFFER_BYTES ? r->packed_left : BUFFER_BYTES;
    PASS(asparse_input_read(r->input, r->offset, r->buffer, n, r->member->name));
    r->offset += n;
    r->packed_left -= n;
    z->next_in = r->buffer;
    z->avail_in = (unsigned)n;
  }
  const unsigned room = bytes < 1 << 30 ? (unsigned)bytes : 1u << 30;
  z->next_out = to;
  z->avail_out = room;
  int code = inflate(z, Z_NO_FLUSH);
  *got = room - z->avail_out;
  if (code == Z_MEM_ERROR) return ASPARSE_FAIL(ASPARSE_ERR_MEMORY, "%s: no memory to unpack it", r->input->name);
  if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return damaged(r, z->msg ? z->msg : "unknown data");
  if (*got == 0 && (code == Z_STREAM_END || (z->avail_in == 0 && r->packed_left == 0)))
    return damaged(r, "it ends too early");
  return ASPARSE_OK;
}

/* All threads read, some blocks at a time, and the checksum is put together from those of the blocks. */
static asparse_status read_stored(asparse_zip_reader *r, unsigned char *to, int64_t bytes) {
  enum { BLOCK_BYTES = 256 << 10, BLOCKS = 64 };
  asparse_status statuses[BLOCKS];
  uLong crcs[BLOCKS];
  int64_t sizes[BLOCKS];
  while (bytes > 0) {
    int n = 0;
    int64_t total = 0;
    for (; n < BLOCKS && total < bytes; total += sizes[n++])
      sizes[n] = bytes - total < BLOCK_BYTES ? bytes - total : BLOCK_BYTES;
#pragma omp parallel for schedule(static) if (n > 1)
    for (int i = 0; i < n; i++) {
      unsigned char *at = to + (int64_t)i * BLOCK_BYTES;
      statuses[i] = asparse_input_read(r->input, r->offset + (int64_t)i * BLOCK_BYTES, at, sizes[i], r->member->name);
      if (statuses[i] == ASPARSE_OK) crcs[i] = crc32_z(0, at, (size_t)sizes[i]);
    }
    for (int i = 0; i < n; i++) {
      PASS(statuses[i]);
      r->crc = (uint32_t)crc32_combine(r->crc, crcs[i], (z_off_t)sizes[i]);
    }
    to += total;
    bytes -= total;
    r->offset += total;
    r->left -= total;
  }
  return ASPARSE_OK;
}

static asparse_status read_deflated(asparse_zip_reader *r, unsigned char *to, int64_t bytes) {
  while (bytes > 0) {
    int64_t got = 0;
    PASS(inflate_some(r, to, bytes, &got));
    r->crc = (uint32_t)crc32_z(r->crc, to, (size_t)got);
    to += got;
    bytes -= got;
    r->left -= got;
  }
  return ASPARSE_OK;
}

asparse_status asparse_zip_read(asparse_zip_reader *r, void *to, int64_t bytes) {
  if (bytes > r->left) return damaged(r, "it ends too early");
  PASS(r->member->deflated ? read_deflated(r, to, bytes) : read_stored(r, to, bytes));
  if (r->left == 0 && !r->skipped && r->crc != r->member->crc) return damaged(r, "its checksum differs");
  return ASPARSE_OK;
}

asparse_status asparse_zip_skip(asparse_zip_reader *r, int64_t bytes) {
  asparse_status status = ASPARSE_OK;
  unsigned char *ignored = NULL;
  if (bytes == 0) return ASPARSE_OK;
  if (!r->member->deflated) {
    if (bytes > r->left) return damaged(r, "it ends too early");
    r->offset += bytes;
    r->left -= bytes;
    r->skipped = true;
    return ASPARSE_OK;
  }
  ALLOC(ignored, BUFFER_BYTES);
  while (bytes > 0) {
    int64_t n = bytes < BUFFER_BYTES ? bytes : BUFFER_BYTES;
    TRY(asparse_zip_read(r, ignored, n));
    bytes -= n;
  }
cleanup:
  asparse_free(ignored);
  return status;
}
