/* Status codes and the message of the first error. Local; one message per process. */
#ifndef ASPARSE_STATUS_H
#define ASPARSE_STATUS_H

#include "asparse_types.h"

/* Records the first error of this process with its place in the source and returns code.
 * Later errors keep the first message until asparse_error_clear(). The text says file, object,
 * what was found and what to do; no trailing newline. */
asparse_status asparse_fail(asparse_status code, const char *source, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts "text: " before the message of the error under way: what only the caller knows, such as a file name. */
void asparse_error_prefix(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Replaces message and place, for the message of another rank. */
void asparse_error_adopt(const char *message, const char *source, int line);

ASPARSE_API const char *asparse_error_message(void); /* "" when there was none */
ASPARSE_API const char *asparse_error_source(void);  /* "io/hdf5.c:120", "" when there was none */
ASPARSE_API void asparse_error_clear(void);
ASPARSE_API const char *asparse_status_name(asparse_status status);
ASPARSE_API int asparse_exit_code(asparse_status status);

#define ASPARSE_FAIL(code, ...) asparse_fail((code), __FILE__, __LINE__, __VA_ARGS__)

/* The two ways to use a call that can fail. TRY needs a local `status` and a label `cleanup` that
 * frees what the function holds and returns status; PASS is for functions that hold nothing. */
#define TRY(call)                                                                                                      \
  do {                                                                                                                 \
    if ((status = (call)) != ASPARSE_OK) goto cleanup;                                                                 \
  } while (0)
#define PASS(call)                                                                                                     \
  do {                                                                                                                 \
    asparse_status passed_ = (call);                                                                                   \
    if (passed_ != ASPARSE_OK) return passed_;                                                                         \
  } while (0)
/* TRY with an error of one's own. */
#define TRY_THAT(condition, code, ...)                                                                                 \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      status = ASPARSE_FAIL((code), __VA_ARGS__);                                                                      \
      goto cleanup;                                                                                                    \
    }                                                                                                                  \
  } while (0)

#endif
