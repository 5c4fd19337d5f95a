/* Sorted distinct numbers. Local. */
#ifndef ASPARSE_UNIQUE_H
#define ASPARSE_UNIQUE_H

#include "base/status.h"

/* Sorts values[n] ≥ 0 and keeps each once, at the front: *n_unique. Needs n more numbers of memory meanwhile. */
asparse_status asparse_unique_int64(int64_t *values, int64_t n, int64_t *n_unique);

/* Where value stands in sorted[n], which must hold it. */
int64_t asparse_unique_find(const int64_t *sorted, int64_t n, int64_t value);

#endif
