/* Counts of the entries of each row in each of several pieces of a file, which become the places of the entries:
 * pieces are then placed at the same time, and in a row they follow in the order of the file. Local. */
#ifndef ASPARSE_ROW_COUNTS_H
#define ASPARSE_ROW_COUNTS_H

#include "base/memory.h"

/* How many pieces a matrix of m rows is counted in: a thread each, at most `most`, fewer where counts of [n_pieces][m]
 * would fill the memory. ERR_MEMORY naming the file when one piece is too much. */
asparse_status asparse_row_counts_pieces(const char *name, int64_t m, int64_t most, int *n_pieces);

/* row_ptr[m + 1] from counts[n_pieces][m], which become the place of the next entry of each row and piece. */
void asparse_row_counts_lay_out(int n_pieces, int64_t m, int64_t *counts, int64_t *row_ptr);

#endif
