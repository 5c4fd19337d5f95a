/* Entries sent to where their transpose would be: column degrees and symmetry. */
#ifndef ASPARSE_MIRROR_H
#define ASPARSE_MIRROR_H

#include "base/comm.h"
#include "base/csr.h"

typedef struct mirror {
  int64_t n_columns;      /* columns this rank counts: its slab's rows when square, else an even share */
  int64_t *column_counts; /* [n_columns] entries of each */
  /* Of the whole matrix; 0 unless square. Off-diagonal entries (i, j) with (j, i) stored; with equal and with
   * opposite values. */
  int64_t mirrored, equal, opposite;
} mirror;

/* Collective. Works in rounds, with buffers that do not grow with the matrix beyond 8 bytes an own entry. */
asparse_status mirror_measure(asparse_comm *comm, const asparse_csr *slab, mirror *found);
void mirror_free(mirror *found);

#endif
