/* Sorting of 64-bit keys. Local. */
#ifndef ASPARSE_SORT_KEYS_H
#define ASPARSE_SORT_KEYS_H

#include <stdint.h>

/* Sorts keys[n], none above `largest`, without repetition; returns how many remain. scratch [n]. */
int64_t asparse_sort_unique(uint64_t *keys, uint64_t *scratch, int64_t n, uint64_t largest);

#endif
