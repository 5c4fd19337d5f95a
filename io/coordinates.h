/* Entries as (row, column, value) in the order of a file, and the CSR matrix they make. Local. */
#ifndef ASPARSE_COORDINATES_H
#define ASPARSE_COORDINATES_H

#include "base/csr.h"
#include "io/structure.h"

typedef struct asparse_coordinates {
  int64_t m, k, n;             /* rows, columns, entries */
  int64_t *rows;               /* [n], from 0 */
  int64_t *cols;               /* [n], from 0 */
  double *values;              /* [n]; NULL: all are 1 */
  asparse_structure structure; /* GENERAL; another one: entries off the diagonal also stand for their mirror image */
} asparse_coordinates;

/* Memory for n entries, checked against what is available for the file `name`; contents undefined. */
asparse_status asparse_coordinates_create(const char *name, int64_t n, bool with_values, asparse_coordinates *c);
void asparse_coordinates_free(asparse_coordinates *c);

/* All rows as one slab in fp64: sorted, duplicates summed in their order. Indices must be in range. Threaded. c is
 * emptied as early as possible. */
asparse_status asparse_coordinates_to_csr(const char *name, asparse_coordinates *c, asparse_csr **a);

#endif
