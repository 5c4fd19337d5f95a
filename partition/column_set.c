#include "partition/column_set.h"

static int64_t words_for(int64_t members) { return members / 64 + (members % 64 != 0); }

asparse_status asparse_column_sets_create(asparse_column_set **out, int count, int64_t range) {
  asparse_status status = ASPARSE_OK;
  asparse_column_set *sets = NULL;
  uint64_t *storage = NULL;
  int64_t n_words[ASPARSE_COLUMN_SET_LEVELS], all_words = 0;
  int levels = 0;
  for (int64_t members = range > 0 ? range : 1; levels == 0 || members > 1; members = n_words[levels++])
    all_words += n_words[levels] = words_for(members);

  /* One array for all sets: the words of all levels, then the positions, two to a word. */
  int64_t stride = all_words + n_words[0] / 2 + 1;
  ALLOC_ZERO(sets, count);
  ALLOC_ZERO(storage, count * stride);
  for (int i = 0; i < count; i++) {
    uint64_t *next = storage + i * stride;
    sets[i].levels = levels;
    for (int level = 0; level < levels; next += n_words[level++]) sets[i].words[level] = next;
    sets[i].word_position = (int32_t *)next;
  }
  *out = sets;
  return ASPARSE_OK;
cleanup:
  asparse_free(sets);
  return status;
}

void asparse_column_sets_destroy(asparse_column_set **sets) {
  if (!sets || !*sets) return;
  asparse_free((*sets)[0].words[0]);
  FREE(*sets);
}

static int32_t list_below(asparse_column_set *set, int level, int32_t word, int32_t *members, int32_t n) {
  if (level == 0) set->word_position[word] = n;
  for (uint64_t bits = set->words[level][word]; bits; bits &= bits - 1) {
    int32_t member = word * 64 + __builtin_ctzll(bits);
    if (level == 0) members[n++] = member;
    else n = list_below(set, level - 1, member, members, n);
  }
  return n;
}

int32_t asparse_column_set_list(asparse_column_set *set, int32_t *members) {
  return list_below(set, set->levels - 1, 0, members, 0);
}

static void clear_below(asparse_column_set *set, int level, int64_t word) {
  uint64_t bits = set->words[level][word];
  set->words[level][word] = 0;
  if (level == 0) return;
  for (; bits; bits &= bits - 1) clear_below(set, level - 1, word * 64 + __builtin_ctzll(bits));
}

void asparse_column_set_clear(asparse_column_set *set) { clear_below(set, set->levels - 1, 0); }
