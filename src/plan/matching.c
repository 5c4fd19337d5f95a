#include "plan/matching.h"

#include <string.h>

asparse_status asparse_matching_create(asparse_matching *matching, int64_t n_rows, int64_t n_cols, int row_capacity) {
  asparse_status status = ASPARSE_OK;
  *matching = (asparse_matching){0};
  ALLOC_ZERO(matching->used, n_rows);
  ALLOC(matching->mates, n_rows * row_capacity);
  ALLOC(matching->matched, n_cols);
  ALLOC(matching->level, n_cols);
  ALLOC(matching->queue, n_cols);
  ALLOC(matching->slot, n_cols);
  ALLOC(matching->next, n_cols);
cleanup:
  if (status != ASPARSE_OK) asparse_matching_free(matching);
  return status;
}

void asparse_matching_free(asparse_matching *matching) {
  FREE(matching->used);
  FREE(matching->mates);
  FREE(matching->matched);
  FREE(matching->level);
  FREE(matching->queue);
  FREE(matching->slot);
  FREE(matching->next);
}

/* Matches what can be matched at once, columns of few edges first. Returns how many. */
static int64_t match_greedily(const asparse_bipartite *g, asparse_matching *m) {
  int64_t size = 0;
  memset(m->matched, 0, (size_t)g->n_cols * sizeof *m->matched);
  for (int most = 1; most <= 2; most++) { /* columns of one edge, then all */
    for (int32_t c = 0; c < g->n_cols; c++) {
      if (m->matched[c] || (most == 1 && g->col_ptr[c + 1] - g->col_ptr[c] > 1)) continue;
      for (int32_t e = g->col_ptr[c]; e < g->col_ptr[c + 1] && !m->matched[c]; e++) {
        const int32_t row = g->rows[e];
        if (m->used[row] == g->row_capacity) continue;
        m->mates[row * g->row_capacity + m->used[row]++] = c;
        m->matched[c] = true;
        size++;
      }
    }
  }
  return size;
}

/* Levels of columns from the free ones, up to the first level with a row that has room. Returns whether there is one.
 */
static bool search_in_breadth(const asparse_bipartite *g, asparse_matching *m) {
  int32_t begin = 0, end = 0, last = INT32_MAX;
  for (int32_t c = 0; c < g->n_cols; c++) {
    m->level[c] = m->matched[c] ? -1 : 0;
    m->next[c] = g->col_ptr[c] * g->row_capacity;
    if (!m->matched[c]) m->queue[end++] = c;
  }
  for (; begin < end && m->level[m->queue[begin]] <= last; begin++) {
    const int32_t c = m->queue[begin];
    for (int32_t e = g->col_ptr[c]; e < g->col_ptr[c + 1]; e++) {
      const int32_t row = g->rows[e], *mates = m->mates + row * g->row_capacity;
      if (m->used[row] < g->row_capacity) last = m->level[c];
      for (int32_t i = 0; i < m->used[row] && last == INT32_MAX; i++) {
        if (m->level[mates[i]] >= 0) continue;
        m->level[mates[i]] = m->level[c] + 1;
        m->queue[end++] = mates[i];
      }
    }
  }
  return last != INT32_MAX;
}

/* Every column of the path takes the place of the next one; the last one a place that was free. */
static void augment(asparse_matching *m, const int32_t *path, int32_t length) {
  for (int32_t i = 0; i < length; i++) m->mates[m->slot[path[i]]] = path[i];
  m->matched[path[0]] = true;
}

/* A path of ascending levels from a free column to a row with room, along edges not tried in this phase. */
static bool search_in_depth(const asparse_bipartite *g, asparse_matching *m, int32_t start) {
  const int32_t capacity = g->row_capacity;
  int32_t *path = m->queue, length = 1;
  path[0] = start;
  while (length > 0) {
    const int32_t c = path[length - 1];
    if (m->next[c] == g->col_ptr[c + 1] * capacity) {
      length--;
      continue;
    }
    const int32_t row = g->rows[m->next[c] / capacity], i = m->next[c] % capacity;
    m->next[c]++;
    if (m->used[row] < capacity) {
      m->slot[c] = row * capacity + m->used[row]++;
      augment(m, path, length);
      return true;
    }
    const int32_t other = m->mates[row * capacity + i];
    if (m->level[other] != m->level[c] + 1) continue;
    m->slot[c] = row * capacity + i;
    path[length++] = other;
  }
  return false;
}

static int64_t match(const asparse_bipartite *g, asparse_matching *m) {
  int64_t size = match_greedily(g, m);
  while (size < g->n_cols && search_in_breadth(g, m)) {
    for (int32_t c = 0; c < g->n_cols; c++) size += !m->matched[c] && search_in_depth(g, m, c);
  }
  return size;
}

static void forget(const asparse_bipartite *g, asparse_matching *m) {
  for (int32_t e = 0; e < g->col_ptr[g->n_cols]; e++) m->used[g->rows[e]] = 0;
}

int64_t asparse_matching_size(const asparse_bipartite *g, asparse_matching *m) {
  const int64_t size = match(g, m);
  forget(g, m);
  return size;
}

/* König 1931: with Z what alternating paths from free columns reach, the columns outside Z and the rows in it. */
int64_t asparse_matching_cover(const asparse_bipartite *g, asparse_matching *m, bool *col_covered) {
  const int64_t size = match(g, m);
  const bool all_columns = size == g->n_cols;
  if (!all_columns) search_in_breadth(g, m);
  for (int32_t c = 0; c < g->n_cols; c++) col_covered[c] = all_columns || m->level[c] < 0;
  forget(g, m);
  return size;
}
