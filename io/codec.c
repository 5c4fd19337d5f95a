#include "io/codec.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "asparse_config.h"
#include "io/budget.h"
#if ASPARSE_HAVE_XZ
#include <lzma.h>
#endif
#if ASPARSE_HAVE_ZSTD
#include <zstd.h>
#endif

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

/* ---- xz ------------------------------------------------------------------------------------ */

#if ASPARSE_HAVE_XZ
/* A stream says how much memory it takes, which may be any amount. */
static bool xz_start(lzma_stream *z) {
  return lzma_stream_decoder(z, (uint64_t)asparse_budget_available(), 0) == LZMA_OK;
}

static void *xz_begin(void) {
  lzma_stream *z = calloc(1, sizeof *z);
  if (z && xz_start(z)) return z;
  free(z);
  return NULL;
}

static void xz_end(void *state) {
  lzma_end(state);
  free(state);
}

static const char *xz_reason(lzma_ret code) {
  if (code == LZMA_FORMAT_ERROR) return "no header of xz";
  if (code == LZMA_OPTIONS_ERROR) return "unknown options";
  return "incorrect data";
}

static asparse_codec_result xz_step(void *state, asparse_codec_buffers *b) {
  lzma_stream *z = state;
  z->next_in = b->in;
  z->avail_in = b->n_in;
  z->next_out = b->out;
  z->avail_out = b->n_out;
  lzma_ret code = lzma_code(z, LZMA_RUN);
  b->in = z->next_in;
  b->n_in = z->avail_in;
  b->out = z->next_out;
  b->n_out = z->avail_out;
  if (code == LZMA_OK || code == LZMA_BUF_ERROR) return ASPARSE_CODEC_MORE;
  if (code == LZMA_MEM_ERROR || code == LZMA_MEMLIMIT_ERROR) return ASPARSE_CODEC_NO_MEMORY;
  if (code == LZMA_STREAM_END) return xz_start(z) ? ASPARSE_CODEC_ENDED : ASPARSE_CODEC_NO_MEMORY;
  b->error = xz_reason(code);
  return ASPARSE_CODEC_DAMAGED;
}
#else
#define xz_begin NULL
#define xz_step NULL
#define xz_end NULL
#endif

/* ---- zstd ---------------------------------------------------------------------------------- */

#if ASPARSE_HAVE_ZSTD
static void *zstd_begin(void) { return ZSTD_createDStream(); }

static void zstd_end(void *state) { ZSTD_freeDStream(state); }

static asparse_codec_result zstd_step(void *state, asparse_codec_buffers *b) {
  ZSTD_inBuffer in = {b->in, b->n_in, 0};
  ZSTD_outBuffer out = {b->out, b->n_out, 0};
  size_t code = ZSTD_decompressStream(state, &out, &in);
  b->in += in.pos;
  b->n_in -= in.pos;
  b->out += out.pos;
  b->n_out -= out.pos;
  if (code == 0) return ASPARSE_CODEC_ENDED;
  if (!ZSTD_isError(code)) return ASPARSE_CODEC_MORE;
  b->error = ZSTD_getErrorName(code);
  return ASPARSE_CODEC_DAMAGED;
}
#else
#define zstd_begin NULL
#define zstd_step NULL
#define zstd_end NULL
#endif

/* ---- the table ----------------------------------------------------------------------------- */

static const asparse_codec codecs[] = {
    {"gzip", "gzip -d", "\x1f\x8b", gzip_begin, gzip_step, gzip_end},
    {"xz", "xz -d", "\xfd\x37zXZ", xz_begin, xz_step, xz_end},
    {"zstd", "zstd -d", "\x28\xb5\x2f\xfd", zstd_begin, zstd_step, zstd_end},
    {"bzip2", "bzip2 -d", "BZh", NULL, NULL, NULL},
};

const asparse_codec *asparse_codec_detect(const void *bytes, size_t n) {
  for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
    size_t length = strlen(codecs[i].magic);
    if (n >= length && memcmp(bytes, codecs[i].magic, length) == 0) return &codecs[i];
  }
  return NULL;
}
