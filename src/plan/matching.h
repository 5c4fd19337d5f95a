/* Maximum matching in a bipartite graph, and with it a minimum vertex cover. Local. */
#ifndef ASPARSE_MATCHING_H
#define ASPARSE_MATCHING_H

#include "base/memory.h"

/* Columns on one side, rows on the other; no edge twice. A row may be matched to row_capacity columns, a column to one
 * row. */
typedef struct asparse_bipartite {
  int32_t n_cols;
  const int32_t *col_ptr; /* [n_cols + 1], col_ptr[0] = 0; col_ptr[n_cols] · row_capacity fits int32 */
  const int32_t *rows;    /* [col_ptr[n_cols]] */
  int32_t row_capacity;   /* ≥ 1 */
} asparse_bipartite;

/* For graphs of at most so many rows and columns, one after the other. */
typedef struct asparse_matching {
  int32_t *used;  /* [rows] columns matched to each row; 0 between calls */
  int32_t *mates; /* [rows · row_capacity] those columns */
  bool *matched;  /* [columns] */
  int32_t *level; /* [columns] length of the shortest alternating path from a free column, in columns */
  int32_t *queue; /* [columns] of the search in breadth; then the path of the search in depth */
  int32_t *slot;  /* [columns] place in mates through which the path leaves its column */
  int32_t *next;  /* [columns] edge · row_capacity + mate to try next */
} asparse_matching;

asparse_status asparse_matching_create(asparse_matching *matching, int64_t n_rows, int64_t n_cols, int row_capacity);
void asparse_matching_free(asparse_matching *matching);

/* The most edges that can be matched, by Hopcroft and Karp (SIAM J. Comput. 2, 1973), in O(edges · √columns). It equals
 * the least weight of rows and columns that touch every edge, where a column weighs 1 and a row row_capacity (König
 * 1931; with weights by the duality of linear programs). */
int64_t asparse_matching_size(const asparse_bipartite *graph, asparse_matching *matching);

/* The same, and a cover of that weight: col_covered[n_cols]; its rows are those that other columns touch. Of several
 * covers one with as many columns as possible. */
int64_t asparse_matching_cover(const asparse_bipartite *graph, asparse_matching *matching, bool *col_covered);

#endif
