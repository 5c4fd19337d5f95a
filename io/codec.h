/* Decompressors behind one table: {name, first bytes, begin, step, end}. Local. */
#ifndef ASPARSE_CODEC_H
#define ASPARSE_CODEC_H

#include "base/status.h"

/* Compressed bytes come in, plain bytes go out; step moves both. */
typedef struct asparse_codec_buffers {
  const unsigned char *in;
  size_t n_in;
  bool in_ended; /* no more comes after in */
  unsigned char *out;
  size_t n_out;
  const char *error; /* what the library says of damaged data; NULL: nothing */
} asparse_codec_buffers;

typedef enum asparse_codec_result {
  ASPARSE_CODEC_MORE = 0,
  ASPARSE_CODEC_ENDED,   /* a whole member ended; another may follow */
  ASPARSE_CODEC_DAMAGED, /* with buffers->error */
  ASPARSE_CODEC_NO_MEMORY
} asparse_codec_result;

typedef struct asparse_codec {
  const char *name, *command; /* "gzip", what decompresses it */
  const char *magic;          /* its first bytes */
  void *(*begin)(void);       /* NULL: no memory. The member NULL: not in this build */
  asparse_codec_result (*step)(void *state, asparse_codec_buffers *buffers);
  void (*end)(void *state);
} asparse_codec;

/* The codec whose magic these bytes begin with; NULL: not compressed. */
const asparse_codec *asparse_codec_detect(const void *bytes, size_t n);

#endif
