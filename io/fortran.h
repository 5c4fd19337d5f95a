/* Numbers in fields of fixed width, as FORTRAN writes them: no blank need be between them. Local. */
#ifndef ASPARSE_FORTRAN_H
#define ASPARSE_FORTRAN_H

#include "io/text.h"

/* (16I5), (1P5D16.8), (1P,4E20.12), (10F7.1) */
typedef struct asparse_fortran_format {
  int per_line, width;
  char kind;    /* 'I', 'F', 'E', 'D' or 'G' */
  int decimals; /* d of w.d, -1: none */
  int scale;    /* P: what has no exponent is divided by 10^scale */
} asparse_fortran_format;

/* The format between parentheses at *cursor, which moves behind it. False: none that is understood. */
bool asparse_fortran_parse(const char **cursor, asparse_fortran_format *format);

/* The fields of one line: `count` ≤ per_line integers or reals from the line at p on. The error names the field. A real
 * without point and exponent is a whole number, whatever `decimals` says, as all readers of such files take it. */
bool asparse_fortran_integers(const asparse_fortran_format *format, const char *p, int count, int64_t *to,
                              asparse_text_error *error);
bool asparse_fortran_reals(const asparse_fortran_format *format, const char *p, int count, double *to,
                           asparse_text_error *error);

#endif
