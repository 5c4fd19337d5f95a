#include "io/mtx_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "io/budget.h"

enum { READ_BYTES = 64 << 20, FIRST_BYTES = 1 << 20, GZIP_BUFFER = 256 << 10, GZIP_RATIO = 4 };

asparse_status asparse_mtx_budget(const char *name, int64_t bytes, const char *what) {
  int64_t available = asparse_budget_available();
  if (bytes <= available) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_MEMORY,
                      "%s: %s needs %.1f GiB of memory, %.1f GiB are available; use a machine with more memory", name,
                      what, (double)bytes / 0x1p30, (double)available / 0x1p30);
}

static asparse_status open_file(const char *path, int *file, struct stat *info) {
  bool standard_input = strcmp(path, "-") == 0;
  *file = standard_input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
  if (*file < 0) return ASPARSE_FAIL(ASPARSE_ERR_NO_INPUT, "cannot open %s: %s", path, strerror(errno));
  if (fstat(*file, info) != 0) return ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot examine %s: %s", path, strerror(errno));
  if (S_ISDIR(info->st_mode))
    return ASPARSE_FAIL(ASPARSE_ERR_NO_INPUT, "%s is a folder, a Matrix Market file is needed", path);
  return ASPARSE_OK;
}

static asparse_status grow(asparse_mtx_text *text, int64_t *capacity) {
  asparse_status status = ASPARSE_OK;
  char *larger = NULL;
  TRY(asparse_mtx_budget(text->name, 2 * *capacity, "its text"));
  ALLOC(larger, 2 * *capacity);
  memcpy(larger, text->bytes, (size_t)text->length);
  asparse_free(text->bytes);
  text->bytes = larger;
  *capacity *= 2;
cleanup:
  return status;
}

static asparse_status read_failure(const asparse_mtx_text *text, gzFile stream) {
  int code = Z_OK;
  const char *reason = gzerror(stream, &code), *after_name = strstr(reason, ": ");
  if (code == Z_ERRNO) return ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot read %s: %s", text->name, strerror(errno));
  if (code == Z_MEM_ERROR) return ASPARSE_FAIL(ASPARSE_ERR_MEMORY, "%s: no memory to decompress it", text->name);
  return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                      "%s: its gzip data are damaged or cut off after %lld bytes of text (%s); fetch the file again",
                      text->name, (long long)text->length, after_name ? after_name + 2 : reason);
}

/* zlib passes content through that is not gzip. */
static asparse_status read_all(asparse_mtx_text *text, gzFile stream, int64_t *capacity) {
  for (;;) {
    int64_t room = *capacity - 1 - text->length;
    int got = gzread(stream, text->bytes + text->length, (unsigned)(room < READ_BYTES ? room : READ_BYTES));
    if (got < 0) return read_failure(text, stream);
    text->length += got;
    int code = Z_OK;
    gzerror(stream, &code);
    if (code != Z_OK) return read_failure(text, stream);
    if (got == 0 && room > 0) return ASPARSE_OK;
    if (text->length + 1 == *capacity) PASS(grow(text, capacity));
  }
}

asparse_status asparse_mtx_text_load(const char *path, asparse_mtx_text *text) {
  asparse_status status = ASPARSE_OK;
  struct stat info;
  gzFile stream = NULL;
  int file = -1;
  *text = (asparse_mtx_text){.name = strcmp(path, "-") == 0 ? "standard input" : path};
  TRY(open_file(path, &file, &info));
  stream = gzdopen(file, "rb");
  TRY_THAT(stream, ASPARSE_ERR_MEMORY, "%s: no memory to read it", text->name);
  gzbuffer(stream, GZIP_BUFFER);

  /* One byte more than a plain file has, beside the line end, shows its end without growing. */
  int64_t size = S_ISREG(info.st_mode) ? (int64_t)info.st_size : 0, capacity = FIRST_BYTES;
  if (size > 0) capacity = gzdirect(stream) ? size + 2 : GZIP_RATIO * size + 2;
  TRY(asparse_mtx_budget(text->name, capacity, "its text"));
  ALLOC(text->bytes, capacity);
  TRY(read_all(text, stream, &capacity));
  TRY_THAT(text->length > 0, ASPARSE_ERR_DATA, "%s is empty, a Matrix Market file is needed", text->name);
  text->bytes[text->length] = '\n';
cleanup:
  if (stream) gzclose(stream);
  else if (file >= 0) close(file);
  return status;
}

void asparse_mtx_text_free(asparse_mtx_text *text) { FREE(text->bytes); }

/* Lines end with "\n", "\r\n" or "\r". */
static int64_t line_number(const asparse_mtx_text *text, const char *at) {
  int64_t lines = 1;
  for (const char *p = text->bytes; p < at; p++) lines += *p == '\n' || (*p == '\r' && p[1] != '\n');
  return lines;
}

asparse_status asparse_mtx_text_fail(const asparse_mtx_text *text, const char *at, const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s, line %lld: %s", text->name, (long long)line_number(text, at), message);
}

asparse_mtx_quote asparse_mtx_quoted(const char *at) {
  enum { SHOWN = 24 };
  asparse_mtx_quote quote = {{0}};
  int n = 0;
  for (; n < SHOWN && !asparse_is_blank(at[n]) && !asparse_is_line_end(at[n]); n++)
    quote.word[n] = at[n] > ' ' && at[n] < 127 ? at[n] : '?';
  if (n == SHOWN) strcpy(quote.word + n, "...");
  return quote;
}
