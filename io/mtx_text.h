/* The text of a Matrix Market file, whole in memory, and errors that name its lines. Local. */
#ifndef ASPARSE_MTX_TEXT_H
#define ASPARSE_MTX_TEXT_H

#include "base/memory.h"
#include "io/mtx_number.h"

typedef struct asparse_mtx_text {
  const char *name; /* for messages: the path, or "standard input"; borrowed */
  char *bytes;      /* [length + 1]; bytes[length] is a line end, so that scanning a line always stops */
  int64_t length;
} asparse_mtx_text;

/* Reads path ("-": standard input), decompressed when its content is gzip. ERR_NO_INPUT: cannot be opened;
 * ERR_DATA: empty, or damaged gzip; ERR_IO: reading failed. text is valid for free in any case. */
asparse_status asparse_mtx_text_load(const char *path, asparse_mtx_text *text);
void asparse_mtx_text_free(asparse_mtx_text *text);

/* ASPARSE_ERR_DATA "name, line l: …", where `at` stands in the text. */
asparse_status asparse_mtx_text_fail(const asparse_mtx_text *text, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The word at `at`, shortened and printable, for messages. */
typedef struct asparse_mtx_quote {
  char word[32];
} asparse_mtx_quote;
asparse_mtx_quote asparse_mtx_quoted(const char *at);

static inline const char *asparse_skip_blanks(const char *p) {
  while (asparse_is_blank(*p)) p++;
  return p;
}

static inline const char *asparse_skip_line(const char *p) {
  while (!asparse_is_line_end(*p)) p++;
  return p;
}

/* The first character from p on that is no blank, line end or comment; NULL when `end` comes before. */
static inline const char *asparse_next_line(const char *p, const char *end) {
  for (;;) {
    while (p < end && (asparse_is_blank(*p) || asparse_is_line_end(*p))) p++;
    if (p >= end) return NULL;
    if (*p != '%') return p;
    p = asparse_skip_line(p);
  }
}

/* ASPARSE_ERR_MEMORY when this machine has no `bytes` bytes left for `what`. */
asparse_status asparse_mtx_budget(const char *name, int64_t bytes, const char *what);

#endif
