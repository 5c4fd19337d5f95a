#include "io/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_BYTES = 1 << 20 };

static asparse_status grow(asparse_text *text, int64_t *capacity) {
  asparse_status status = ASPARSE_OK;
  char *larger = NULL;
  TRY(asparse_budget_allows(text->name, 2 * *capacity, "its text"));
  ALLOC(larger, 2 * *capacity);
  memcpy(larger, text->bytes, (size_t)text->length);
  asparse_free(text->bytes);
  text->bytes = larger;
  *capacity *= 2;
cleanup:
  return status;
}

asparse_status asparse_text_load(asparse_input *input, asparse_text *text) {
  asparse_status status = ASPARSE_OK;
  int64_t got = 0;
  *text = (asparse_text){.name = input->name};
  TRY_THAT(input->object[0] == '\0', ASPARSE_ERR_USAGE, "%s is text with one matrix, \"::%s\" cannot be chosen in it",
           input->name, input->object);

  /* One byte more than a plain file has, beside the line end, shows its end without growing. */
  int64_t capacity = asparse_stream_expected(input->stream) + 2;
  if (capacity < input->head_length + 2) capacity = input->head_length + 2;
  if (capacity < FIRST_BYTES && !input->head_is_all) capacity = FIRST_BYTES;
  TRY(asparse_budget_allows(text->name, capacity, "its text"));
  ALLOC(text->bytes, capacity);
  memcpy(text->bytes, input->head, (size_t)input->head_length);
  text->length = input->head_length;
  for (;;) {
    int64_t room = capacity - 1 - text->length;
    TRY(asparse_stream_read(input->stream, text->bytes + text->length, room, &got));
    text->length += got;
    if (got < room) break;
    TRY(grow(text, &capacity));
  }
  text->bytes[text->length] = '\n';
cleanup:
  return status;
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
