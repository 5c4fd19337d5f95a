/* Exchange by minimum vertex covers: between two ranks travel rows of B, or partial rows of C, whichever are less.
 *
 * For a rank and an owner of rows of B, the entries of A in those columns are the edges of a graph between rows of C
 * and rows of B. A minimum vertex cover of it (rows of both sides that touch every edge, weighed by their bytes) is the
 * least that must travel: a covered row of B goes to the rank; what is left of a row of C is multiplied by the owner,
 * and the partial row comes back to be added. Never more than the rows of B alone. */
#ifndef ASPARSE_COVER_H
#define ASPARSE_COVER_H

#include "plan/cover_move.h"
#include "plan/halo.h"

/* A sparse factor ready to multiply; without entries there is nothing to do. */
typedef struct asparse_factor {
  asparse_local_csr *a; /* borrowed */
  asparse_shard *shard;
  asparse_operator operator;
} asparse_factor;

typedef struct asparse_cover {
  asparse_engine *engine; /* borrowed */
  int64_t n;
  asparse_cover_parts parts;
  asparse_factor partial; /* parts.sent: times own rows of B, partial rows of C for other ranks */
  void *partial_rows;     /* [parts.sent->m × n] in the engine's space, of C's type */
  asparse_comm *comm;     /* of partial rows, whose messages are not to meet those of B */
  asparse_halo *halo;     /* partial rows from other ranks */
  /* C += add · halo: ones, in the order of ranks, so that the sum does not depend on time. */
  asparse_local_csr *ones;
  asparse_factor add;
} asparse_cover;

/* Collective. Chooses the covers, moves entries of A to where they are multiplied, and prepares to multiply n columns,
 * of which the widest block has `most`. Memory: O(offd + what others leave to this rank). ERR_USAGE for C in bf16. */
asparse_status asparse_cover_create(const asparse_matrix *a, asparse_engine *engine, const asparse_options *options,
                                    int64_t n, int64_t most, asparse_cover **cover);
void asparse_cover_destroy(asparse_cover **cover);

/* Local. Adds what the cover holds, multiplies and moves. */
void asparse_cover_add_stats(const asparse_cover *cover, asparse_stats *stats);

/* Collective among ranks that exchange: partial rows for others on their way; those of others added to c. */
asparse_status asparse_cover_begin(asparse_cover *cover, const void *b, int64_t ldb);
asparse_status asparse_cover_end(asparse_cover *cover, void *c, int64_t ldc);

#endif
