/* What every way of exchanging B moves, for any number of ranks: counted from the matrix, without running it.
 *
 * A grid of pm × pn ranks holds part i of the rows of A on its ranks (i, j), j = 0 … pn-1; rank (i, j) multiplies block
 * j of the columns of B. Among the ranks of one block a row of B goes where its column is used. The other ways are
 * grids too, of p × 1 ranks but for columns. */
#ifndef ASPARSE_VOLUMES_H
#define ASPARSE_VOLUMES_H

#include "partition/partition.h"

/* One part of a partition. Rows of B and partial rows of C that travel are counted for every receiving part. */
typedef struct asparse_part_volume {
  int64_t rows, b_rows;                  /* of A and C; of B */
  int64_t nnz, own_nnz;                  /* entries of A; those in columns of the part itself */
  int64_t received, sent;                /* rows of B, only those used */
  int64_t sources, destinations;         /* parts that they come from and go to */
  int64_t cover_received, cover_sent;    /* with minimum vertex covers, in rows of B */
  int64_t all_sources, all_destinations; /* the same parts when every part receives all of B */
} asparse_part_volume;

typedef struct asparse_volumes {
  int parts;
  int64_t m, k, nnz;
  asparse_partition_method method;
  bool cover_is_exact;       /* else the cover's volumes are those of rows, which it never exceeds */
  double imbalance;          /* largest cost / mean cost of a part */
  asparse_part_volume *part; /* [parts] */
} asparse_volumes;

/* Collective; the same on every rank, whatever their number. c_weight: bytes of a partial sum of C over bytes of an
 * element of B, which weighs rows of both against each other. Memory beside the slab: 8 bytes an entry where the
 * partition permutes; that of asparse_partition_traffic; 8 bytes (with threads working: 40) for a foreign entry of a
 * few parts for the covers. */
asparse_status asparse_volumes_count(asparse_comm *comm, const asparse_csr *slab, const asparse_partition *partition,
                                     int c_weight, asparse_volumes **volumes);
void asparse_volumes_destroy(asparse_volumes **volumes);

/* B and C: n columns; bytes of an element of B, and of C. */
typedef struct asparse_volume_shape {
  int64_t n;
  int b_bytes, c_bytes;
} asparse_volume_shape;

/* What one rank does in a multiplication: bytes and messages, each way the larger of all ranks or the sum. */
typedef struct asparse_volume {
  int64_t rows;           /* of B received, of the columns of the rank's block */
  int64_t bytes_received; /* by the exchange */
  int64_t bytes_sent;
  int64_t messages; /* received; sent ones are as many in total */
  /* Where the caller's B and C are row slices, each part's cut evenly among its pn ranks: bytes received to bring B to
   * blocks and C back, and messages. Nothing where pn = 1. */
  int64_t layout_bytes, layout_messages;
} asparse_volume;

/* Pure. What rank (i, j) of the grid volumes->parts × pn does in that mode. */
asparse_volume asparse_volumes_rank(const asparse_volumes *volumes, asparse_exchange_mode mode, int pn,
                                    const asparse_volume_shape *shape, int i, int j);

/* Pure. The largest of each number over ranks, and their sums. */
void asparse_volumes_summarise(const asparse_volumes *volumes, asparse_exchange_mode mode, int pn,
                               const asparse_volume_shape *shape, asparse_volume *largest, asparse_volume *total);

#endif
