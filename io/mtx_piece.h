/* A run of whole lines of a Matrix Market file, which one thread parses. Local.
 *
 * Pieces are read twice: once to count the entries of each row, once to put them into place. An error
 * is kept in the piece, so that the first one in the text is reported whichever thread is faster. */
#ifndef ASPARSE_MTX_PIECE_H
#define ASPARSE_MTX_PIECE_H

#include "io/mtx_header.h"

typedef struct asparse_mtx_piece {
  const char *begin, *end;               /* lines in the text */
  int64_t first_entry;                   /* lines of entries before this piece; needed for arrays only */
  int64_t n_entries;                     /* lines of entries */
  int64_t n_stored;                      /* entries of the expanded matrix */
  int64_t n_inexact;                     /* integers that fp64 cannot hold, in the expanded matrix */
  const char *first_lower, *first_upper; /* first line below and above the diagonal; NULL: none */
  const char *error;                     /* where the text is wrong; NULL: nowhere */
  char message[256];
} asparse_mtx_piece;

/* n_entries. */
void asparse_mtx_piece_count_lines(asparse_mtx_piece *piece);

/* row_counts[header->m] += entries of the expanded matrix. Sets n_entries, n_stored, first_lower,
 * first_upper. Values of coordinate files are not looked at. */
void asparse_mtx_piece_count(asparse_mtx_piece *piece, const asparse_mtx_header *header, int64_t *row_counts);

/* Puts the entries into place; next[i] is where the next one of row i goes. Sets n_inexact. */
void asparse_mtx_piece_place(asparse_mtx_piece *piece, const asparse_mtx_header *header, int64_t *next,
                             int64_t *col_idx, double *values);

#endif
