/* The input of an importer: a file or standard input, opened, with its first bytes at hand. Local. */
#ifndef ASPARSE_INPUT_H
#define ASPARSE_INPUT_H

#include "io/stream.h"

enum { ASPARSE_INPUT_HEAD = 64 << 10 };

typedef struct asparse_input {
  const char *name;   /* for messages: the file's path, or "standard input" */
  const char *object; /* what follows "::" in the path; "" when nothing does */
  asparse_stream *stream;
  char *head;          /* [head_length + 1] its first bytes, decompressed; head[head_length] is a line end */
  int64_t head_length; /* ≤ ASPARSE_INPUT_HEAD */
  bool head_is_all;    /* there are no more bytes */
  int file;            /* of asparse_input_seek: decompressed, to be read at any place; otherwise -1 */
  int64_t file_bytes;
  bool spooled;      /* file is a temporary copy, which other processes do not see */
  int part, parts;   /* this process wants part `part` of `parts` */
  char *path, *rest; /* what name and object point at */
} asparse_input;

/* Opens "path[::object]" ("-": standard input) as part 0 of 1. input is valid for close in any case.
 * ERR_NO_INPUT, ERR_DATA (empty, damaged), ERR_IO, ERR_MEMORY. */
asparse_status asparse_input_open(const char *path, asparse_input *input);
void asparse_input_close(asparse_input *input);

/* Makes input->file: the file itself, or what its stream gives, copied to a temporary file without a name in
 * $TMPDIR (else /tmp). The stream cannot be read any more. */
asparse_status asparse_input_seek(asparse_input *input);

/* bytes bytes at offset of input->file. ERR_DATA when the file ends before, naming `what`. */
asparse_status asparse_input_read(const asparse_input *input, int64_t offset, void *to, int64_t bytes,
                                  const char *what);

#endif
