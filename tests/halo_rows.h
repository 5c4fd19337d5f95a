/* Where the rows of a halo lie, whose columns come in chunks. */
#ifndef HALO_ROWS_H
#define HALO_ROWS_H

#include "plan/halo.h"

/* Index of row i, column j among the elements of the buffer. */
static inline int64_t halo_at(const asparse_halo *halo, int64_t i, int64_t j) {
  int c = 0;
  while (j >= asparse_halo_chunk_start(&halo->shape, c + 1)) c++;
  const int64_t start = asparse_halo_chunk_start(&halo->shape, c);
  return halo->n_rows * start + i * asparse_halo_chunk_columns(&halo->shape, c) + j - start;
}

#endif
