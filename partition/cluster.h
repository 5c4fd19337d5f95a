/* Bringing rows that share columns together, so that the windows of WCSR have fewer distinct columns. Local. */
#ifndef ASPARSE_CLUSTER_H
#define ASPARSE_CLUSTER_H

#include "base/csr.h"

/* A local matrix with its rows in another order. */
typedef struct asparse_clustered {
  int32_t *order;          /* [m] row i of rows is row order[i] of the matrix it was made from */
  asparse_local_csr *rows; /* the matrix in that order */
} asparse_clustered;

/* Threaded; the same whatever the threads. Greedy: a window of 16 rows starts with a row that its predecessor's columns
 * suggest and takes, one after the other, the row that shares most with the window and adds least to it. */
asparse_status asparse_rows_cluster(const asparse_local_csr *a, asparse_clustered *out);
void asparse_clustered_free(asparse_clustered *clustered);

#endif
