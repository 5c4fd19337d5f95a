/* Arrays of a MATLAB 5 file (MathWorks: MAT-File Format, chapter 1), in memory. Local. */
#ifndef ASPARSE_MATLAB_H
#define ASPARSE_MATLAB_H

#include "base/status.h"

enum { ASPARSE_MATLAB_CELL = 1, ASPARSE_MATLAB_STRUCT = 2, ASPARSE_MATLAB_SPARSE = 5 }; /* classes of arrays */
enum { ASPARSE_MATLAB_UINT8 = 2 };                                                      /* a type of numbers */

typedef struct asparse_matlab_bytes {
  const unsigned char *at, *end;
  bool swapped; /* numbers are in the other byte order than this machine's */
} asparse_matlab_bytes;

/* A data element: numbers of one type. */
typedef struct asparse_matlab_element {
  uint32_t type; /* miINT8 = 1 … */
  int64_t bytes;
  const unsigned char *data;
} asparse_matlab_element;

typedef struct asparse_matlab_array {
  int class, n_dims;
  bool complex, logical;
  int64_t m, n, count; /* rows, columns, elements (of all dimensions) */
  char name[64];
  asparse_matlab_bytes rest; /* what is of its class: entries, fields, cells */
} asparse_matlab_array;

/* The next element of b, which moves behind it. False: none is whole. */
bool asparse_matlab_next(asparse_matlab_bytes *b, asparse_matlab_element *element);
/* The contents of an array element: flags, sizes, name. False: not whole. */
bool asparse_matlab_open(asparse_matlab_bytes contents, asparse_matlab_array *array);

int64_t asparse_matlab_count(const asparse_matlab_element *element); /* numbers; -1: not a type of numbers */
double asparse_matlab_number(const asparse_matlab_bytes *b, const asparse_matlab_element *element, int64_t i);

#endif
