/* A set of global columns with their positions in ascending order. Local. */
#ifndef ASPARSE_COLUMNS_H
#define ASPARSE_COLUMNS_H

#include "base/memory.h"

typedef struct asparse_columns {
  int64_t n;
  int64_t *sorted; /* [n], ascending */
  /* Where k is small beside the entries: a bit for each column, and the count of bits before each
   * word, so that a position costs one popcount. NULL otherwise: binary search. */
  uint64_t *bits;       /* [⌈k / 64⌉] */
  int64_t *bits_before; /* [⌈k / 64⌉] */
} asparse_columns;

/* The distinct columns of col_idx[count], each in 0 … k-1, that lie outside [skip_begin, skip_end). */
asparse_status asparse_columns_create(asparse_columns *set, int64_t k, const int64_t *col_idx, int64_t count,
                                      int64_t skip_begin, int64_t skip_end);
void asparse_columns_destroy(asparse_columns *set);

/* Position of a column of the set in ascending order. */
int64_t asparse_columns_position(const asparse_columns *set, int64_t col);

#endif
