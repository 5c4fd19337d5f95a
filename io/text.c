#include "io/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_BYTES = 32 << 20 };

static asparse_status allocate(asparse_text *text, int64_t length) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_budget_allows(text->name, length, "its text"));
  ALLOC(text->bytes, length + 1);
  text->length = length;
  text->bytes[length] = '\n';
cleanup:
  return status;
}

/* ---- a file of known length: all threads read ------------------------------------------------- */

static asparse_status load_file(const asparse_input *input, asparse_text *text) {
  asparse_status status = ASPARSE_OK;
  PASS(allocate(text, input->file_bytes));
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t first = 0; first < text->length; first += BLOCK_BYTES) {
    const int64_t left = text->length - first, bytes = left < BLOCK_BYTES ? left : BLOCK_BYTES;
    asparse_status block_status = asparse_input_read(input, first, text->bytes + first, bytes, "text");
#pragma omp critical(asparse_text)
    if (block_status != ASPARSE_OK) status = block_status;
  }
  return status;
}

/* ---- a stream --------------------------------------------------------------------------------- */

typedef struct block {
  struct block *next;
  int64_t length;
  char bytes[]; /* [BLOCK_BYTES] */
} block;

static void free_blocks(block *first) {
  while (first) {
    block *next = first->next;
    asparse_free(first);
    first = next;
  }
}

/* Appends blocks until the stream ends; *length: bytes of all of them. */
static asparse_status read_blocks(asparse_input *input, block **end, int64_t *length) {
  int64_t got = BLOCK_BYTES;
  for (; got == BLOCK_BYTES; end = &(*end)->next) {
    PASS(asparse_budget_allows(input->name, BLOCK_BYTES, "its text"));
    *end = asparse_malloc(1, sizeof **end + BLOCK_BYTES, "text");
    if (!*end) return ASPARSE_ERR_MEMORY;
    **end = (block){.length = 0};
    PASS(asparse_stream_read(input->stream, (*end)->bytes, BLOCK_BYTES, &got));
    (*end)->length = got;
    *length += got;
  }
  return ASPARSE_OK;
}

/* The blocks are freed one by one as they are put together: at no time is there much more than the text. */
static asparse_status load_stream(asparse_input *input, asparse_text *text) {
  asparse_status status = ASPARSE_OK;
  block *first = NULL;
  int64_t length = input->head_length, at = length;
  TRY(read_blocks(input, &first, &length));
  TRY(allocate(text, length));
  memcpy(text->bytes, input->head, (size_t)at);
  while (first) {
    block *next = first->next;
    memcpy(text->bytes + at, first->bytes, (size_t)first->length);
    at += first->length;
    asparse_free(first);
    first = next;
  }
cleanup:
  free_blocks(first);
  return status;
}

asparse_status asparse_text_load(asparse_input *input, asparse_text *text) {
  *text = (asparse_text){.name = input->name};
  if (input->object[0])
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s is text with one matrix, \"::%s\" cannot be chosen in it", input->name,
                        input->object);
  /* Standard input may stand behind its beginning; a file of the system (/proc) has no length. */
  if (strcmp(input->path, "-") == 0 || asparse_stream_file(input->stream) < 0) return load_stream(input, text);
  PASS(asparse_input_seek(input));
  return input->file_bytes >= input->head_length ? load_file(input, text) : load_stream(input, text);
}

void asparse_text_free(asparse_text *text) { FREE(text->bytes); }

/* Lines end with "\n", "\r\n" or "\r". */
static int64_t line_number(const asparse_text *text, const char *at) {
  int64_t lines = 1;
  for (const char *p = text->bytes; p < at; p++) lines += *p == '\n' || (*p == '\r' && p[1] != '\n');
  return lines;
}

asparse_status asparse_text_fail(const asparse_text *text, const char *at, const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s, line %lld: %s", text->name, (long long)line_number(text, at), message);
}

bool asparse_text_note(asparse_text_error *error, const char *at, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  error->at = at;
  return false;
}

asparse_quote asparse_quoted(const char *at) {
  enum { SHOWN = 24 };
  asparse_quote quote = {{0}};
  int n = 0;
  for (; n < SHOWN && !asparse_is_blank(at[n]) && !asparse_is_line_end(at[n]); n++)
    quote.word[n] = at[n] > ' ' && at[n] < 127 ? at[n] : '?';
  if (n == SHOWN) strcpy(quote.word + n, "...");
  return quote;
}

const char *asparse_text_cut(const char *begin, const char *end, int pieces, int piece) {
  const char *p = begin + asparse_even_start(end - begin, pieces, piece);
  while (p > begin && p < end && !(p[-1] == '\n' || (p[-1] == '\r' && *p != '\n'))) p++;
  return p;
}
