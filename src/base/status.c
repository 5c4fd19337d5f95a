#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_LENGTH = 1024, SOURCE_LENGTH = 128 };

static char error_message[MESSAGE_LENGTH];
static char error_source[SOURCE_LENGTH];

static const char *below_project_root(const char *source) {
  static const char *const folders[] = {"src/", "io/", "kernels/", "partition/", "tests/"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const char *found = strstr(source, folders[i]);
    for (; found; found = strstr(found + 1, folders[i])) {
      if (found == source || found[-1] == '/') source = found;
    }
  }
  return source;
}

/* A failure inside a threaded region is recorded by one thread; the others keep quiet. */
asparse_status asparse_fail(asparse_status code, const char *source, int line, const char *format, ...) {
#pragma omp critical(asparse_error)
  if (error_message[0] == '\0') {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error_message, sizeof error_message, format, arguments);
    va_end(arguments);
    snprintf(error_source, sizeof error_source, "%s:%d", below_project_root(source), line);
  }
  return code;
}

void asparse_error_prefix(const char *format, ...) {
  char old[MESSAGE_LENGTH];
  memcpy(old, error_message, sizeof old);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error_message, sizeof error_message, format, arguments);
  va_end(arguments);
  size_t used = strlen(error_message);
  snprintf(error_message + used, sizeof error_message - used, ": %s", old);
}

void asparse_error_adopt(const char *message, const char *source, int line) {
  snprintf(error_message, sizeof error_message, "%s", message);
  if (line > 0) snprintf(error_source, sizeof error_source, "%s:%d", source, line);
  else snprintf(error_source, sizeof error_source, "%s", source);
}

const char *asparse_error_message(void) { return error_message; }
const char *asparse_error_source(void) { return error_source; }
void asparse_error_clear(void) { error_message[0] = error_source[0] = '\0'; }

const char *asparse_status_name(asparse_status status) {
  switch (status) {
  case ASPARSE_OK: return "ok";
  case ASPARSE_INTERRUPTED: return "interrupted";
  case ASPARSE_ERR_VERIFY: return "verification failed";
  case ASPARSE_ERR_USAGE: return "usage";
  case ASPARSE_ERR_NO_INPUT: return "no input";
  case ASPARSE_ERR_DATA: return "bad data";
  case ASPARSE_ERR_MEMORY: return "out of memory";
  case ASPARSE_ERR_IO: return "input/output";
  case ASPARSE_ERR_MPI: return "MPI";
  case ASPARSE_ERR_DEVICE: return "device";
  case ASPARSE_ERR_RUNTIME: return "run time";
  }
  return "unknown";
}

int asparse_exit_code(asparse_status status) {
  switch (status) {
  case ASPARSE_OK: return 0;
  case ASPARSE_ERR_USAGE: return 2;
  case ASPARSE_INTERRUPTED: return 85;
  case ASPARSE_ERR_VERIFY: return 3;
  case ASPARSE_ERR_DATA: return 65;
  case ASPARSE_ERR_NO_INPUT: return 66;
  default: return 1;
  }
}
