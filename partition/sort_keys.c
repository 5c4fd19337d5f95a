#include "partition/sort_keys.h"

#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Stable counting sort by one digit. */
static void sort_by_digit(const uint64_t *from, uint64_t *to, int64_t n, int shift) {
  int64_t starts[DIGITS + 1] = {0};
  for (int64_t i = 0; i < n; i++) starts[(from[i] >> shift) % DIGITS + 1]++;
  for (int d = 0; d < DIGITS; d++) starts[d + 1] += starts[d];
  for (int64_t i = 0; i < n; i++) to[starts[(from[i] >> shift) % DIGITS]++] = from[i];
}

int64_t asparse_sort_unique(uint64_t *keys, uint64_t *scratch, int64_t n, uint64_t largest) {
  uint64_t *from = keys, *to = scratch;
  for (int shift = 0; shift < 64 && largest >> shift; shift += DIGIT_BITS) {
    sort_by_digit(from, to, n, shift);
    uint64_t *swapped = from;
    from = to;
    to = swapped;
  }
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++)
    if (i == 0 || from[i] != from[i - 1]) to[kept++] = from[i];
  if (to != keys) memcpy(keys, to, (size_t)kept * sizeof *keys);
  return kept;
}
