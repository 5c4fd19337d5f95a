/* The banner and the size line of a Matrix Market file (Boisvert, Pozo, Remington: The Matrix Market
 * Exchange Formats, NISTIR 5935, 1996). Local. */
#ifndef ASPARSE_MTX_HEADER_H
#define ASPARSE_MTX_HEADER_H

#include "io/text.h"

typedef enum asparse_mtx_field { ASPARSE_MTX_REAL = 0, ASPARSE_MTX_INTEGER, ASPARSE_MTX_PATTERN } asparse_mtx_field;

typedef enum asparse_mtx_symmetry {
  ASPARSE_MTX_GENERAL = 0,
  ASPARSE_MTX_SYMMETRIC, /* a_ji = a_ij; hermitian too, as values are real */
  ASPARSE_MTX_SKEW       /* a_ji = -a_ij */
} asparse_mtx_symmetry;

typedef struct asparse_mtx_header {
  bool vector, array; /* a line of entries: row, column, value; a vector has no column, an array neither */
  asparse_mtx_field field;
  asparse_mtx_symmetry symmetry;
  char field_name[16], symmetry_name[16]; /* as in the banner, in lower case */
  int64_t m, k;
  int64_t n_entries;   /* lines of entries that must follow */
  const char *sizes;   /* the size line, in the text */
  const char *entries; /* what follows it */
} asparse_mtx_header;

/* Checked: known words, sizes in range, square where it must be. Nothing is allocated by n_entries, so it need not
 * be true: whether as many follow is seen when they are counted. */
asparse_status asparse_mtx_header_parse(const asparse_text *text, asparse_mtx_header *header);

#endif
