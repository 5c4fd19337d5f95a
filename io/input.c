#include "io/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/io.h"

enum { COPY_BYTES = 4 << 20, LARGEST_READ = 1 << 30 };

asparse_status asparse_input_open(const char *path, asparse_input *input) {
  asparse_status status = ASPARSE_OK;
  *input = (asparse_input){.name = "", .object = "", .file = -1, .parts = 1};
  TRY(asparse_path_split(path, &input->path, &input->rest));
  input->name = strcmp(input->path, "-") == 0 ? "standard input" : input->path;
  input->object = input->rest;
  TRY(asparse_stream_open(input->path, &input->stream));
  ALLOC(input->head, ASPARSE_INPUT_HEAD + 1);
  TRY(asparse_stream_read(input->stream, input->head, ASPARSE_INPUT_HEAD, &input->head_length));
  TRY_THAT(input->head_length > 0, ASPARSE_ERR_DATA, "%s is empty, a file with a matrix is needed", input->name);
  input->head[input->head_length] = '\n';
  input->head_is_all = input->head_length < ASPARSE_INPUT_HEAD;
cleanup:
  return status;
}

void asparse_input_close(asparse_input *input) {
  asparse_stream_close(&input->stream);
  if (input->spooled && input->file >= 0) close(input->file);
  FREE(input->head);
  FREE(input->path);
  FREE(input->rest);
}

static asparse_status open_temporary(asparse_input *input, const char *folder) {
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/asparse-input-XXXXXX", folder);
  if (length < 0 || length >= (int)sizeof path)
    return ASPARSE_FAIL(ASPARSE_ERR_IO, "%s: the folder for temporary files has too long a name", folder);
  input->file = mkostemp(path, O_CLOEXEC);
  if (input->file < 0)
    return ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot make a temporary file in %s: %s; set TMPDIR to a folder with room",
                        folder, strerror(errno));
  input->spooled = true;
  unlink(path);
  return ASPARSE_OK;
}

static asparse_status append(asparse_input *input, const char *bytes, int64_t count, const char *folder) {
  while (count > 0) {
    ssize_t n = write(input->file, bytes, (size_t)count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return ASPARSE_FAIL(ASPARSE_ERR_IO,
                          "cannot copy %s to a temporary file in %s: %s; set TMPDIR to a folder with room", input->name,
                          folder, strerror(errno));
    bytes += n;
    count -= n;
    input->file_bytes += n;
  }
  return ASPARSE_OK;
}

static asparse_status spool(asparse_input *input) {
  asparse_status status = ASPARSE_OK;
  const char *set = getenv("TMPDIR"), *folder = set && *set ? set : "/tmp";
  char *bytes = NULL;
  int64_t got = 0;
  ALLOC(bytes, COPY_BYTES);
  TRY(open_temporary(input, folder));
  TRY(append(input, input->head, input->head_length, folder));
  do {
    TRY(asparse_stream_read(input->stream, bytes, COPY_BYTES, &got));
    TRY(append(input, bytes, got, folder));
  } while (got == COPY_BYTES);
cleanup:
  asparse_free(bytes);
  return status;
}

asparse_status asparse_input_seek(asparse_input *input) {
  struct stat info;
  input->file = asparse_stream_file(input->stream);
  if (input->file < 0) return spool(input);
  if (fstat(input->file, &info) != 0)
    return ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot examine %s: %s", input->name, strerror(errno));
  input->file_bytes = (int64_t)info.st_size;
  return ASPARSE_OK;
}

asparse_status asparse_input_read(const asparse_input *input, int64_t offset, void *to, int64_t bytes,
                                  const char *what) {
  char *at = to;
  if (offset < 0 || bytes < 0 || offset > input->file_bytes || bytes > input->file_bytes - offset)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "%s has %lld bytes; expected %lld bytes of %s from byte %lld on: it is cut off", input->name,
                        (long long)input->file_bytes, (long long)bytes, what, (long long)offset);
  while (bytes > 0) {
    ssize_t n = pread(input->file, at, (size_t)(bytes < LARGEST_READ ? bytes : LARGEST_READ), (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot read %s at byte %lld: %s", input->name, (long long)offset,
                          n < 0 ? strerror(errno) : "the file became shorter");
    at += n;
    offset += n;
    bytes -= n;
  }
  return ASPARSE_OK;
}
