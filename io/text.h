/* The text of a file, whole in memory, and errors that name its lines. Local. */
#ifndef ASPARSE_TEXT_H
#define ASPARSE_TEXT_H

#include "base/memory.h"
#include "io/budget.h"
#include "io/input.h"
#include "io/number.h"

typedef struct asparse_text {
  const char *name; /* for messages: the path, or "standard input"; borrowed */
  char *bytes;      /* [length + 1]; bytes[length] is a line end, so that scanning a line always stops */
  int64_t length;
} asparse_text;

/* The whole of an input just opened. ERR_DATA: damaged compressed data; ERR_MEMORY; ERR_IO. text is valid for
 * free in any case; its name is the input's. */
asparse_status asparse_text_load(asparse_input *input, asparse_text *text);
void asparse_text_free(asparse_text *text);

/* ASPARSE_ERR_DATA "name, line l: …", where `at` stands in the text. */
asparse_status asparse_text_fail(const asparse_text *text, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The first error of a thread's piece of the text, kept until all threads are done. */
typedef struct asparse_text_error {
  const char *at; /* NULL: none */
  char message[256];
} asparse_text_error;
bool asparse_text_note(asparse_text_error *error, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold)); /* false, for the caller to return */

/* The word at `at`, shortened and printable, for messages. */
typedef struct asparse_quote {
  char word[32];
} asparse_quote;
asparse_quote asparse_quoted(const char *at);

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

/* Where piece `piece` of `pieces` begins when begin … end is cut into near-equal runs of whole lines. */
const char *asparse_text_cut(const char *begin, const char *end, int pieces, int piece);

/* Behind the line end at p, which may be "\n", "\r\n" or "\r". */
static inline const char *asparse_skip_line_end(const char *p) { return p + 1 + (*p == '\r' && p[1] == '\n'); }

#endif
