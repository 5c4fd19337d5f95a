/* Entries in any order on their way to the ranks that own their rows. */
#ifndef ASPARSE_ENTRIES_H
#define ASPARSE_ENTRIES_H

#include "base/comm.h"
#include "base/csr.h"

typedef struct asparse_entry {
  int64_t row, col;
  double value;
} asparse_entry;

/* Owned by the caller; freed with asparse_entries_free. */
typedef struct asparse_entries {
  int64_t count;
  asparse_entry *list; /* [count] */
} asparse_entries;

/* Local. Room for count entries, budgeted. what: a file or step, for messages. */
asparse_status asparse_entries_create(const asparse_comm *comm, int64_t count, const char *what,
                                      asparse_entries *entries);
void asparse_entries_free(asparse_entries *entries);

/* Local. Sorts by row; entries of one row keep their order. rows: all are in 0 … rows-1. */
asparse_status asparse_entries_sort_by_row(const asparse_comm *comm, int64_t rows, asparse_entries *entries);

/* Collective. Entries sorted by row go to the owners of their rows: rank r owns rows starts[r] …
 * starts[r+1]-1. What arrives replaces them, by rank and then in the order they were sent. */
asparse_status asparse_entries_exchange(asparse_comm *comm, const int64_t *starts, asparse_entries *entries);

/* Collective. Makes slabs of an m × k matrix from the entries of all ranks, near-equal in rows + entries.
 * In a row, entries are in the order of the ranks and of their lists: not sorted, duplicates kept; the
 * result does not depend on how the ranks share a list. entries is emptied. ERR_MEMORY before what does not fit. */
asparse_status asparse_entries_to_slabs(asparse_comm *comm, int64_t m, int64_t k, asparse_dtype dtype,
                                        asparse_entries *entries, asparse_csr **a);

#endif
