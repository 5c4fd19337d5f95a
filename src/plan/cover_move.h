/* Which entries of A are multiplied by the owner of their row of B, and moving them there. */
#ifndef ASPARSE_COVER_MOVE_H
#define ASPARSE_COVER_MOVE_H

#include "plan/matrix.h"

typedef struct asparse_cover_parts {
  asparse_local_csr *kept; /* this rank's entries in covered columns, columns numbered as wanted */
  int64_t *wanted;         /* [kept->k] global columns, ascending */
  /* Partial rows of C that this rank receives, by rank and row. */
  int64_t n_received;
  int32_t *received_row;   /* [n_received] own row of C each is added to */
  int64_t *received_from;  /* [n_received] its number among the partial rows of all ranks, ascending */
  asparse_local_csr *sent; /* a row for each partial row this rank sends, by rank and row; columns: own rows of B */
  int64_t *sent_starts;    /* [ranks + 1] partial rows of the ranks before */
} asparse_cover_parts;

/* Collective among the ranks with the same block of columns. row_weight: bytes of a partial sum of C over bytes of an
 * element of B. */
asparse_status asparse_cover_split(const asparse_matrix *a, int row_weight, asparse_cover_parts *parts);
void asparse_cover_parts_free(asparse_cover_parts *parts);

#endif
