/* The structure of a distributed matrix: degrees, bandwidth, symmetry, and how it fills windows and blocks. */
#ifndef ASPARSE_STRUCTURE_H
#define ASPARSE_STRUCTURE_H

#include "base/comm.h"
#include "base/csr.h"
#include "base/shard.h"

enum { STRUCTURE_HEIGHTS = 4, STRUCTURE_SIZES = 3 };
extern const int32_t structure_heights[STRUCTURE_HEIGHTS]; /* 8, 16, 32, 64 */
extern const int32_t structure_sizes[STRUCTURE_SIZES];     /* 16, 32, 64 */

typedef struct degrees {
  int64_t count; /* rows or columns */
  int64_t least, median, largest, empty;
  double mean;
} degrees;

typedef struct structure {
  int64_t m, k, nnz;
  degrees rows, columns;
  int64_t diagonal;        /* stored entries (i, i) */
  int64_t bandwidth;       /* largest |i - j| */
  double mean_distance;    /* mean |i - j| */
  int64_t mirrored;        /* off-diagonal entries (i, j) for which (j, i) is stored as well; 0 unless square */
  int64_t equal, opposite; /* … with a(i,j) = a(j,i); with a(i,j) = -a(j,i) */
  asparse_window_counts windows[STRUCTURE_HEIGHTS];
  int64_t blocks[STRUCTURE_SIZES]; /* non-empty blocks */
} structure;

/* Collective. *slab is replaced by one whose cuts are multiples of 64 rows, so that no window or block row is
 * cut and every number found in it is the same for any number of ranks. */
asparse_status structure_align(asparse_comm *comm, asparse_csr **slab);

/* Collective. slab: aligned. Every rank gets the whole matrix's numbers. */
asparse_status structure_measure(asparse_comm *comm, const asparse_csr *slab, structure *s);

bool structure_pattern_symmetric(const structure *s);
/* Entries of A over entries stored with padding. */
double structure_window_fill(const structure *s, int height);
double structure_block_fill(const structure *s, int size);

#endif
