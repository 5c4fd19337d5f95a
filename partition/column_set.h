/* A set of columns that lists itself in order: the columns of a window, the block columns of a block
 * row. Local; one set per thread.
 *
 * A bitmap with summaries: bit w of level l+1 says that word w of level l is not zero. Inserting
 * touches one word unless that word was empty; listing and clearing visit non-empty words only, so
 * that members come sorted without sorting, at a cost that follows their number. It needs 0.2 bytes
 * per possible member and so stays in cache where an array of positions would not. */
#ifndef ASPARSE_COLUMN_SET_H
#define ASPARSE_COLUMN_SET_H

#include "base/memory.h"

enum { ASPARSE_COLUMN_SET_LEVELS = 11 }; /* 64^11 > 2^63 */

typedef struct asparse_column_set {
  int levels;                                 /* the last one has a single word */
  uint64_t *words[ASPARSE_COLUMN_SET_LEVELS]; /* [⌈range / 64^(level + 1)⌉] */
  int32_t *word_position;                     /* [words of level 0] members before the word; set by list */
} asparse_column_set;

/* count empty sets, each of members 0 … range-1. */
asparse_status asparse_column_sets_create(asparse_column_set **sets, int count, int64_t range);
void asparse_column_sets_destroy(asparse_column_set **sets);

/* Writes the members, all below 2^31, in increasing order and returns how many; prepares
 * asparse_column_set_position. */
int32_t asparse_column_set_list(asparse_column_set *set, int32_t *members);
void asparse_column_set_clear(asparse_column_set *set);

/* Returns whether c is new. */
static inline bool asparse_column_set_insert(asparse_column_set *set, int64_t c) {
  uint64_t word = (uint64_t)c >> 6, bit = (uint64_t)1 << (c & 63), before = set->words[0][word];
  set->words[0][word] = before | bit;
  bool was_empty = before == 0;
  for (int level = 1; was_empty && level < set->levels; level++) {
    uint64_t *summary = &set->words[level][word >> 6];
    was_empty = *summary == 0;
    *summary |= (uint64_t)1 << (word & 63);
    word >>= 6;
  }
  return !(before & bit);
}

/* Place of member c in the list. */
static inline int32_t asparse_column_set_position(const asparse_column_set *set, int32_t c) {
  uint32_t word = (uint32_t)c >> 6;
  uint64_t below = set->words[0][word] & (((uint64_t)1 << (c & 63)) - 1);
  return set->word_position[word] + __builtin_popcountll(below);
}

#endif
