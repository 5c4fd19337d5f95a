#include "io/unique.h"

#include <string.h>

#include "base/memory.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Sorts by one digit, from → to; keeps the order of equal ones. */
static void sort_by_digit(const int64_t *from, int64_t *to, int64_t n, int shift) {
  int64_t starts[DIGITS + 1] = {0};
  for (int64_t i = 0; i < n; i++) starts[(from[i] >> shift & (DIGITS - 1)) + 1]++;
  for (int d = 0; d < DIGITS; d++) starts[d + 1] += starts[d];
  for (int64_t i = 0; i < n; i++) to[starts[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

/* Least significant digit first (Knuth, TAOCP vol. 3, 5.2.5), as many digits as the largest value has. */
asparse_status asparse_unique_int64(int64_t *values, int64_t n, int64_t *n_unique) {
  asparse_status status = ASPARSE_OK;
  int64_t *other = NULL, largest = 0, kept = 0;
  ALLOC(other, n);
  int64_t *from = values, *to = other;
  for (int64_t i = 0; i < n; i++) largest = values[i] > largest ? values[i] : largest;
  for (int shift = 0; shift < 63 && largest >> shift > 0; shift += DIGIT_BITS) {
    sort_by_digit(from, to, n, shift);
    int64_t *swapped = from;
    from = to;
    to = swapped;
  }
  /* from may be values: what is kept never overtakes what is read. */
  for (int64_t i = 0; i < n; i++) {
    if (kept == 0 || from[i] != values[kept - 1]) values[kept++] = from[i];
  }
  *n_unique = kept;
cleanup:
  asparse_free(other);
  return status;
}

int64_t asparse_unique_find(const int64_t *sorted, int64_t n, int64_t value) {
  int64_t low = 0, high = n;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (sorted[middle] <= value) low = middle;
    else high = middle;
  }
  return low;
}
