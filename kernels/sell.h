/* Sliced ELLPACK for the resident kernel: a rank-local bf16 matrix of few columns, laid out so that a warp streams
 * it past rows of B held in shared memory. Local, host. */
#ifndef ASPARSE_SELL_H
#define ASPARSE_SELL_H

#include "asparse_types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ASPARSE_SELL_QUAD = 4,             /* entries of a segment that are loaded together: 16 bytes */
  ASPARSE_SELL_SHARED_BYTES = 232448 /* what a CTA can hold of B (sm_90: 227 KiB) */
};

/* What one warp computes at a time: `height` segments side by side, each a row or an equal part of one. A row's parts
 * are neighbours. Quad q of segment s: the four entries from ((first_quad + q)·height + s)·4 on. */
typedef struct asparse_sell_slice {
  uint32_t first_quad;
  uint16_t n_quads;
  uint16_t parts; /* segments a row is cut into: 1, 2, 4, … height */
} asparse_sell_slice;

/* An entry is its bf16 value (high half) and where its row of B starts in shared memory, in units of 16 bytes (low
 * half). Padding has the value 0 and points to rows of zeros behind the k rows of B.
 *
 * Segments in groups of 64 / columns read shared memory in the same cycle; their rows then lie in different banks
 * when their column indices differ modulo 64 / columns. The entries of a segment are in the order that makes them
 * differ at most steps. */
typedef struct asparse_sell {
  int32_t m, k;
  int32_t columns; /* of B that are resident: 8, 16, 32 or 64 */
  int32_t height;  /* segments of a slice: 256 / columns */
  int32_t n_slices;
  int64_t nnz;
  int64_t n_stored;           /* entries with padding */
  asparse_sell_slice *slices; /* [n_slices], longest first */
  int32_t *rows;              /* [n_slices · height], the row of each segment; -1: none */
  uint32_t *entries;          /* [n_stored + 2 · height · 4]: two quads behind the end may be loaded */
} asparse_sell;

/* Largest k that can be resident at that many columns. Pure. */
int32_t asparse_sell_most_k(int32_t columns);

/* Lays out a (bf16). Rows of more than most_steps ≥ 1 entries are cut into 2, 4, … parts until these are as short or a
 * row fills a slice. The caller destroys the result. ERR_USAGE: another dtype, columns not 8, 16, 32 or 64, k above
 * asparse_sell_most_k(columns); ERR_RUNTIME: more entries than a slice's 32-bit offset counts; ERR_MEMORY. */
asparse_status asparse_sell_build(const asparse_local_csr *a, int32_t columns, int32_t most_steps, asparse_sell **out);
void asparse_sell_destroy(asparse_sell **a);

/* What the cost model knows of a matrix. */
typedef struct asparse_sell_profile {
  int64_t m, k;
  int64_t n_stored;    /* entries with padding, or nnz before they are known */
  int64_t longest_row; /* entries */
} asparse_sell_profile;

/* How a multiplication with n columns is laid out over a GPU, and the seconds it is predicted to take. */
typedef struct asparse_sell_config {
  int32_t columns, most_steps; /* for asparse_sell_build; columns = 0: k is too large for any */
  int32_t row_groups;          /* CTAs that share the same columns of B */
  double predicted_seconds;
} asparse_sell_config;

/* The cheapest configuration on a GPU of that many multiprocessors. Pure. */
asparse_sell_config asparse_sell_choose(const asparse_sell_profile *a, int64_t n, int32_t multiprocessors);

/* The same with columns given. */
asparse_sell_config asparse_sell_configure(const asparse_sell_profile *a, int64_t n, int32_t multiprocessors,
                                           int32_t columns);

#ifdef __cplusplus
}
#endif
#endif
