/* What the exchange by minimum vertex covers would move. */
#ifndef ASPARSE_COVER_VOLUME_H
#define ASPARSE_COVER_VOLUME_H

#include "partition/partition.h"

/* A slab whose rows and columns bear the new numbers of a partition, so that the columns of a part are contiguous. */
typedef struct asparse_numbered_slab {
  const asparse_csr *slab;
  const asparse_partition *partition;
  const int64_t *col_idx; /* [entries of the slab] new numbers; in each row in any order */
  int *part_of_row;       /* [slab->n_rows] */
  int64_t *foreign;       /* [parts] entries of each part in columns of others, of all ranks */
} asparse_numbered_slab;

/* Collective. Part q's entries in the columns of part s are the edges of a bipartite graph. For each edge either row
 * j of B travels from s to q, or s multiplies and the partial row i of C travels: a vertex cover. received[q] and
 * sent[s], both [parts], are the weights of the minimum covers with all other parts, summed over ranks; a row of B
 * weighs 1, a partial row of C c_weight. *exact is false, and nothing is counted, when all parts together have more
 * than ASPARSE_COVER_ENTRIES foreign entries. One rank holds all foreign entries of a part at a time. */
enum { ASPARSE_COVER_ENTRIES = 1 << 25 };
asparse_status asparse_cover_volume(asparse_comm *comm, const asparse_numbered_slab *a, int c_weight, int64_t *received,
                                    int64_t *sent, bool *exact);

#endif
