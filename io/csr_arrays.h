/* The three arrays of a CSR matrix, from the slabs of all ranks into 1-D datasets of an HDF5 file. Collective. */
#ifndef ASPARSE_CSR_ARRAYS_H
#define ASPARSE_CSR_ARRAYS_H

#include "io/hdf5_write.h"

typedef struct asparse_csr_arrays {
  const asparse_csr *a;                           /* this rank's slab */
  const char *pointers, *indices, *values;        /* names of the datasets */
  asparse_element pointer_element, value_element; /* of pointers and indices; of values */
  bool iso;                                       /* values holds one element, 1 */
  int64_t nnz, entry_begin;                       /* entries of all ranks; of the ranks before this one */
  bool last;                                      /* this rank also writes the closing pointer */
} asparse_csr_arrays;

/* Where a slab stands among all: entries before it, and of all ranks. ERR_RUNTIME unless slabs follow each other in
 * rank order and cover the matrix. */
asparse_status asparse_csr_place(asparse_comm *comm, const asparse_csr *a, int64_t *entry_begin, int64_t *nnz);

/* Sets a, nnz, entry_begin and last; the rest is the caller's. */
asparse_status asparse_csr_arrays_place(asparse_comm *comm, const asparse_csr *a, asparse_csr_arrays *arrays);

/* Declares the datasets, reserves the space (after which no metadata can be added) and fills them. */
asparse_status asparse_csr_arrays_write(asparse_writer *writer, const asparse_csr_arrays *arrays);

#endif
