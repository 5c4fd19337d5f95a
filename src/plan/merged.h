/* Sums that do not depend on the number of ranks: every row of A whole, its entries in the global order of columns.
 *
 * The halves of A would sum own and halo columns apart. Here the rows of B that come and the own ones are brought
 * together in one array, and one CSR matrix multiplies it; an element of C is then one chain of fused multiply-adds
 * from the lowest column to the highest, whoever computes it. It costs the overlap of exchange and computation, a copy
 * of the rows of B for every multiplication, and a second copy of this rank's entries. */
#ifndef ASPARSE_MERGED_H
#define ASPARSE_MERGED_H

#include "plan/halo.h"
#include "plan/matrix.h"

typedef struct asparse_merged {
  int64_t n;
  int64_t below, own;      /* halo rows of B before own rows, and own rows */
  asparse_local_csr *a;    /* columns: halo rows below, own rows, halo rows above */
  asparse_local_csr *none; /* what is left of offd: no entries */
  void *b;                 /* [a->k × n] on the host */
} asparse_merged;

/* Local. offd: with the columns of a halo buffer in global order, `below` of its rows before the own ones; n columns.
 */
asparse_status asparse_merged_create(const asparse_local_csr *diag, const asparse_local_csr *offd, int64_t below,
                                     int64_t n, asparse_merged **merged);
void asparse_merged_destroy(asparse_merged **merged);

/* Local, after the exchange. b [own × n] and the halo's rows together in merged->b. */
asparse_status asparse_merged_gather(asparse_merged *merged, const asparse_halo *halo, const void *b, int64_t ldb);

/* Bytes of its copies of A and of B. */
int64_t asparse_merged_csr_bytes(const asparse_merged *merged);
int64_t asparse_merged_b_bytes(const asparse_merged *merged);

#endif
