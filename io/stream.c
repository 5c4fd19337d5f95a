#include "io/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/codec.h"

enum { BUFFER_BYTES = 256 << 10, LARGEST_READ = 64 << 20 };

struct asparse_stream {
  const char *name; /* the path, or "standard input"; borrowed */
  int file;
  bool regular, file_ended;   /* file_ended: nothing comes after the buffer */
  const asparse_codec *codec; /* NULL: bytes as they are */
  void *state;
  bool within, ended;   /* within a compressed member; nothing comes any more */
  int64_t given;        /* bytes read from the stream */
  unsigned char *bytes; /* [BUFFER_BYTES] of the file */
  size_t next, end;     /* of those, still to be used */
};

static asparse_status open_file(asparse_stream *s, const char *path) {
  struct stat info;
  bool standard_input = strcmp(path, "-") == 0;
  s->file = standard_input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
  if (s->file < 0) return ASPARSE_FAIL(ASPARSE_ERR_NO_INPUT, "cannot open %s: %s", path, strerror(errno));
  if (fstat(s->file, &info) != 0) return ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot examine %s: %s", path, strerror(errno));
  if (S_ISDIR(info.st_mode))
    return ASPARSE_FAIL(ASPARSE_ERR_NO_INPUT, "%s is a folder, a file with a matrix is needed", path);
  s->regular = S_ISREG(info.st_mode);
  return ASPARSE_OK;
}

static asparse_status read_file(asparse_stream *s, void *to, int64_t capacity, int64_t *got) {
  ssize_t n;
  do n = read(s->file, to, (size_t)(capacity < LARGEST_READ ? capacity : LARGEST_READ));
  while (n < 0 && errno == EINTR);
  if (n < 0) return ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot read %s: %s", s->name, strerror(errno));
  if (n == 0) s->file_ended = true;
  *got = n;
  return ASPARSE_OK;
}

/* At least `needed` bytes in the buffer, unless the file ends before. */
static asparse_status fill(asparse_stream *s, size_t needed) {
  if (s->end - s->next >= needed) return ASPARSE_OK;
  memmove(s->bytes, s->bytes + s->next, s->end - s->next);
  s->end -= s->next;
  s->next = 0;
  while (s->end < needed && !s->file_ended) {
    int64_t got = 0;
    PASS(read_file(s, s->bytes + s->end, BUFFER_BYTES - (int64_t)s->end, &got));
    s->end += (size_t)got;
  }
  return ASPARSE_OK;
}

/* Starts decompressing where the content says so; the file position of an uncompressed one does not matter. */
static asparse_status detect(asparse_stream *s) {
  enum { MAGIC_BYTES = 8 };
  PASS(fill(s, MAGIC_BYTES));
  if (s->end == 0) return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s is empty, a file with a matrix is needed", s->name);
  s->codec = asparse_codec_detect(s->bytes, s->end);
  if (!s->codec) return ASPARSE_OK;
  if (!s->codec->begin)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "%s is compressed with %s, which this build cannot read; decompress it first (%s)", s->name,
                        s->codec->name, s->codec->command);
  s->state = s->codec->begin();
  s->within = true;
  if (!s->state) return ASPARSE_FAIL(ASPARSE_ERR_MEMORY, "%s: no memory to decompress it", s->name);
  return ASPARSE_OK;
}

asparse_status asparse_stream_open(const char *path, asparse_stream **stream) {
  asparse_status status = ASPARSE_OK;
  asparse_stream *s = NULL;
  ALLOC_ZERO(s, 1);
  s->file = -1;
  s->name = strcmp(path, "-") == 0 ? "standard input" : path;
  ALLOC(s->bytes, BUFFER_BYTES);
  TRY(open_file(s, path));
  TRY(detect(s));
  *stream = s;
  return ASPARSE_OK;
cleanup:
  asparse_stream_close(&s);
  return status;
}

void asparse_stream_close(asparse_stream **stream) {
  asparse_stream *s = *stream;
  if (!s) return;
  if (s->state) s->codec->end(s->state);
  if (s->file >= 0) close(s->file);
  FREE(s->bytes);
  FREE(*stream);
}

static asparse_status damaged(const asparse_stream *s, const char *reason) {
  return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                      "%s: its %s data are damaged or cut off after %lld decompressed bytes (%s); fetch the file again",
                      s->name, s->codec->name, (long long)s->given, reason);
}

static asparse_status read_plain(asparse_stream *s, unsigned char *to, int64_t capacity, int64_t *got) {
  size_t buffered = s->end - s->next;
  if (buffered == 0) {
    PASS(read_file(s, to, capacity, got));
  } else {
    *got = (int64_t)buffered < capacity ? (int64_t)buffered : capacity;
    memcpy(to, s->bytes + s->next, (size_t)*got);
    s->next += (size_t)*got;
  }
  s->ended = *got == 0;
  return ASPARSE_OK;
}

/* What follows a member and is no member itself is padding, which gzip ignores too. */
static asparse_status step(asparse_stream *s, unsigned char *to, int64_t capacity, int64_t *got) {
  PASS(fill(s, s->within ? 1 : 8));
  *got = 0;
  if (!s->within) {
    s->within = asparse_codec_detect(s->bytes + s->next, s->end - s->next) == s->codec;
    s->ended = !s->within;
    if (s->ended) return ASPARSE_OK;
  }
  asparse_codec_buffers b = {s->bytes + s->next, s->end - s->next, s->file_ended, to, (size_t)capacity, NULL};
  asparse_codec_result result = s->codec->step(s->state, &b);
  *got = capacity - (int64_t)b.n_out;
  size_t used = s->end - s->next - b.n_in;
  s->next += used;
  if (result == ASPARSE_CODEC_NO_MEMORY)
    return ASPARSE_FAIL(ASPARSE_ERR_MEMORY, "%s: no memory to decompress it", s->name);
  if (result == ASPARSE_CODEC_DAMAGED) return damaged(s, b.error);
  if (result == ASPARSE_CODEC_ENDED) s->within = false;
  else if (*got == 0 && used == 0 && s->file_ended) return damaged(s, "unexpected end of file");
  return ASPARSE_OK;
}

asparse_status asparse_stream_read(asparse_stream *s, void *to, int64_t capacity, int64_t *got) {
  int64_t done = 0, n = 0;
  while (done < capacity && !s->ended) {
    unsigned char *at = (unsigned char *)to + done;
    PASS(s->codec ? step(s, at, capacity - done, &n) : read_plain(s, at, capacity - done, &n));
    done += n;
    s->given += n;
  }
  *got = done;
  return ASPARSE_OK;
}

int asparse_stream_file(const asparse_stream *s) { return s->regular && !s->codec ? s->file : -1; }
