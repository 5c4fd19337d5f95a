/* What the WCSR and BCSR builders share: rows in units of equal height (windows, block rows), and the
 * distinct columns (shift 0) or block columns (shift log2 of the block size) of each. Local. */
#ifndef ASPARSE_ROW_UNITS_H
#define ASPARSE_ROW_UNITS_H

#include "base/csr.h"
#include "partition/column_set.h"

/* Units a thread takes at once: enough to hide the scheduling, few enough to balance skewed rows. */
enum { ASPARSE_UNIT_CHUNK = 16 };

static inline int32_t asparse_units_over(int32_t length, int32_t height) {
  return length / height + (length % height != 0);
}
static inline int32_t asparse_unit_end(int32_t unit, int32_t height, int32_t m) {
  int64_t end = ((int64_t)unit + 1) * height;
  return end < m ? (int32_t)end : m;
}

/* Threads worth starting for that many units; as many sets are needed. */
int asparse_unit_threads(int64_t n_units);

/* The (block) columns of one unit into the set; returns how many are new. */
int32_t asparse_unit_insert(asparse_column_set *set, const asparse_local_csr *a, int32_t height, int shift,
                            int32_t unit);

/* Threaded. distinct[u] = distinct (block) columns of unit u; sets are empty before and after. */
void asparse_units_count(const asparse_local_csr *a, int32_t height, int shift, asparse_column_set *sets,
                         int64_t *distinct);

/* The same with sets of its own. */
asparse_status asparse_units_distinct(const asparse_local_csr *a, int32_t height, int shift, int64_t *distinct);

/* The same for a slab, units counted from its first row: distinct[⌈n_rows / height⌉]. */
asparse_status asparse_slab_units_count(const asparse_csr *a, int32_t height, int shift, int64_t *distinct);

#endif
