/* Moving rows between ranks: from slabs to the owners of a partition, and dense rows back. */
#ifndef ASPARSE_ROWS_H
#define ASPARSE_ROWS_H

#include "base/dense.h"
#include "partition/partition.h"

/* Collective. Rank r receives the rows of part part_of_rank[r] (-1: none; several ranks may ask for one) of the
 * partition, in the new order, columns in the original numbering; *row_map [rows] holds their original numbers when the
 * partition is permuted, NULL otherwise. With consume the slab's columns and values are freed as they
 * leave, so that little is held twice; its row_ptr stays. */
asparse_status asparse_rows_gather(asparse_comm *comm, asparse_csr *slab, const asparse_partition *partition,
                                   const int *part_of_rank, bool consume, asparse_csr **rows, int64_t **row_map);

/* Collective. New numbers of the (sorted, unique) original rows wanted[n], from the ranks whose slabs hold
 * them. */
asparse_status asparse_rows_new_numbers(asparse_comm *comm, const asparse_csr *slab, const asparse_partition *partition,
                                        const int64_t *wanted, int64_t n, int64_t *new_numbers);

/* Collective. The same for columns in any order: new_col_idx[count] from col_idx[count], which it may be. */
asparse_status asparse_rows_renumber(asparse_comm *comm, const asparse_csr *slab, const asparse_partition *partition,
                                     const int64_t *col_idx, int64_t count, int64_t *new_col_idx);

/* Collective. to: even row slabs of the m_global rows (rank r: asparse_even_start …), created here;
 * from: rows with original numbers row_map[from->m], ascending. The way back: from == given, filled. */
asparse_status asparse_rows_to_even(asparse_comm *comm, const asparse_dense *from, const int64_t *row_map,
                                    int64_t m_global, asparse_dense **to);
asparse_status asparse_rows_from_even(asparse_comm *comm, const asparse_dense *even, const int64_t *row_map,
                                      int64_t m_global, asparse_dense *to);

#endif
