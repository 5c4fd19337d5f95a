#include "io/codec.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "asparse_config.h"

enum { LARGEST_STEP = 1 << 30 };

static unsigned limited(size_t n) { return n < LARGEST_STEP ? (unsigned)n : LARGEST_STEP; }

/* ---- gzip ---------------------------------------------------------------------------------- */

static void *gzip_begin(void) {
  z_stream *z = calloc(1, sizeof *z);
  if (z && inflateInit2(z, 16 + MAX_WBITS) == Z_OK) return z;
  free(z);
  return NULL;
}

static asparse_codec_result gzip_step(void *state, asparse_codec_buffers *b) {
  z_stream *z = state;
  z->next_in = (unsigned char *)b->in;
  unsigned in = z->avail_in = limited(b->n_in), out = z->avail_out = limited(b->n_out);
  z->next_out = b->out;
  int code = inflate(z, Z_NO_FLUSH);
  b->in += in - z->avail_in;
  b->n_in -= in - z->avail_in;
  b->out += out - z->avail_out;
  b->n_out -= out - z->avail_out;
  if (code == Z_OK || code == Z_BUF_ERROR) return ASPARSE_CODEC_MORE;
  if (code == Z_MEM_ERROR) return ASPARSE_CODEC_NO_MEMORY;
  if (code == Z_STREAM_END && inflateReset(z) == Z_OK) return ASPARSE_CODEC_ENDED;
  b->error = z->msg ? z->msg : "unknown data";
  return ASPARSE_CODEC_DAMAGED;
}

static void gzip_end(void *state) {
  inflateEnd(state);
  free(state);
}

/* ---- the table ----------------------------------------------------------------------------- */

static const asparse_codec codecs[] = {
    {"gzip", "gzip -d", "\x1f\x8b", gzip_begin, gzip_step, gzip_end},
    {"xz", "xz -d",
     "\xfd"
     "7zXZ",
     NULL, NULL, NULL},
    {"zstd", "zstd -d", "\x28\xb5\x2f\xfd", NULL, NULL, NULL},
    {"bzip2", "bzip2 -d", "BZh", NULL, NULL, NULL},
};

const asparse_codec *asparse_codec_detect(const void *bytes, size_t n) {
  for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
    size_t length = strlen(codecs[i].magic);
    if (n >= length && memcmp(bytes, codecs[i].magic, length) == 0) return &codecs[i];
  }
  return NULL;
}
