/* Which rows a part reads. Local. */
#ifndef ASPARSE_SLAB_H
#define ASPARSE_SLAB_H

#include "base/comm.h"

/* The first row of part `part` when m rows are cut into parts with near-equal entries; row_ptr[m + 1] is monotone from
 * 0. part = parts gives m. */
static inline int64_t asparse_slab_begin(const int64_t *row_ptr, int64_t m, int parts, int part) {
  if (part == parts) return m;
  const int64_t target = asparse_even_start(row_ptr[m], parts, part);
  int64_t low = 0, high = m;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (row_ptr[middle] < target) low = middle + 1;
    else high = middle;
  }
  return low;
}

#endif
