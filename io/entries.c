#include "io/entries.h"

#include <string.h>

#include "io/budget.h"

asparse_status asparse_entries_create(const asparse_comm *comm, int64_t count, const char *what,
                                      asparse_entries *entries) {
  asparse_status status = ASPARSE_OK;
  entries->count = count;
  TRY(asparse_budget_check(comm, count, sizeof(asparse_entry), what));
  ALLOC(entries->list, count);
cleanup:
  return status;
}

void asparse_entries_free(asparse_entries *entries) {
  FREE(entries->list);
  entries->count = 0;
}

/* ---- sorting -------------------------------------------------------------------------------- */

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

static bool is_sorted(const asparse_entries *entries) {
  for (int64_t i = 1; i < entries->count; i++) {
    if (entries->list[i - 1].row > entries->list[i].row) return false;
  }
  return true;
}

/* One stable pass over the digit of the row that begins at bit shift. */
static void scatter_by_digit(const asparse_entry *from, int64_t count, int shift, asparse_entry *to) {
  int64_t places[DIGITS + 1] = {0};
  for (int64_t i = 0; i < count; i++) places[(from[i].row >> shift & (DIGITS - 1)) + 1]++;
  for (int d = 0; d < DIGITS; d++) places[d + 1] += places[d];
  for (int64_t i = 0; i < count; i++) to[places[from[i].row >> shift & (DIGITS - 1)]++] = from[i];
}

/* Radix sort from the least significant digit, which is stable and takes two or three passes. */
asparse_status asparse_entries_sort_by_row(const asparse_comm *comm, int64_t rows, asparse_entries *entries) {
  asparse_status status = ASPARSE_OK;
  asparse_entries other = {0};
  if (is_sorted(entries)) return ASPARSE_OK;
  TRY(asparse_entries_create(comm, entries->count, "sorting the entries", &other));
  for (int shift = 0; shift < 63 && (rows - 1) >> shift > 0; shift += DIGIT_BITS) {
    scatter_by_digit(entries->list, entries->count, shift, other.list);
    asparse_entry *sorted = other.list;
    other.list = entries->list;
    entries->list = sorted;
  }
cleanup:
  asparse_entries_free(&other);
  return status;
}

/* ---- exchange ------------------------------------------------------------------------------- */

/* Number of entries, sorted by row, below a row. */
static int64_t count_below(const asparse_entries *entries, int64_t row) {
  int64_t low = 0, high = entries->count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (entries->list[middle].row < row) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Bytes and displacements of what goes to and comes from each rank; each [size]. */
typedef struct traffic {
  int64_t *send_bytes, *send_displs, *receive_bytes, *receive_displs;
} traffic;

static void traffic_free(traffic *t) {
  asparse_free(t->send_bytes);
  asparse_free(t->send_displs);
  asparse_free(t->receive_bytes);
  asparse_free(t->receive_displs);
}

static asparse_status traffic_create(int size, const int64_t *starts, const asparse_entries *entries, traffic *t) {
  asparse_status status = ASPARSE_OK;
  ALLOC_ZERO(t->send_bytes, size);
  ALLOC_ZERO(t->send_displs, size);
  ALLOC_ZERO(t->receive_bytes, size);
  ALLOC_ZERO(t->receive_displs, size);
  for (int r = 0; r < size; r++) {
    int64_t begin = count_below(entries, starts[r]), end = count_below(entries, starts[r + 1]);
    t->send_displs[r] = begin * (int64_t)sizeof(asparse_entry);
    t->send_bytes[r] = (end - begin) * (int64_t)sizeof(asparse_entry);
  }
cleanup:
  return status;
}

static asparse_status prepare_receive(const asparse_comm *comm, traffic *t, asparse_entries *received) {
  int64_t bytes = 0;
  for (int r = 0; r < comm->size; r++) {
    t->receive_displs[r] = bytes;
    bytes += t->receive_bytes[r];
  }
  return asparse_entries_create(comm, bytes / (int64_t)sizeof(asparse_entry), "receiving the entries of own rows",
                                received);
}

asparse_status asparse_entries_exchange(asparse_comm *comm, const int64_t *starts, asparse_entries *entries) {
  asparse_status status = ASPARSE_OK;
  traffic t = {0};
  asparse_entries received = {0};
  if (comm->size == 1) return ASPARSE_OK;
  TRY(asparse_comm_agree(comm, traffic_create(comm->size, starts, entries, &t)));
  TRY(asparse_comm_alltoall_int64(comm, t.send_bytes, t.receive_bytes));
  TRY(asparse_comm_agree(comm, prepare_receive(comm, &t, &received)));
  TRY(asparse_comm_alltoallv(comm, entries->list, t.send_bytes, t.send_displs, received.list, t.receive_bytes,
                             t.receive_displs));
  asparse_entries_free(entries);
  *entries = received;
  received.list = NULL;
cleanup:
  asparse_entries_free(&received);
  traffic_free(&t);
  return status;
}

/* ---- slabs ---------------------------------------------------------------------------------- */

/* starts[part] is the least row c with (entries of all ranks below c) + c ≥ its share of entries + rows, found
 * for all parts at once by bisection; low and below: scratch, [size + 1]. Entries are sorted by row. Collective. */
static asparse_status choose_starts(asparse_comm *comm, int64_t m, const asparse_entries *entries, int64_t *starts,
                                    int64_t *low, int64_t *below) {
  int size = comm->size;
  int64_t total = entries->count;
  PASS(asparse_comm_sum(comm, &total, 1));
  if (total > INT64_MAX - m)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%lld rows and %lld entries exceed 64-bit sizes", (long long)m,
                        (long long)total);
  for (int part = 0; part <= size; part++) {
    low[part] = 0;
    starts[part] = m;
  }
  for (bool found = m == 0; !found;) {
    for (int part = 0; part <= size; part++)
      below[part] = count_below(entries, low[part] + (starts[part] - low[part]) / 2);
    PASS(asparse_comm_sum(comm, below, size + 1));
    found = true;
    for (int part = 0; part <= size; part++) {
      int64_t middle = low[part] + (starts[part] - low[part]) / 2;
      if (below[part] + middle >= asparse_even_start(total + m, size, part)) starts[part] = middle;
      else low[part] = middle + 1;
      if (low[part] < starts[part]) found = false;
    }
  }
  return ASPARSE_OK;
}

/* Entries of rows row_begin … row_begin+n_rows-1, in any order of rows. */
static asparse_status build_slab(const asparse_comm *comm, const asparse_entries *entries, const asparse_csr *shape,
                                 asparse_csr **out) {
  asparse_status status = ASPARSE_OK;
  int64_t *next = NULL; /* [n_rows] where the next entry of each row goes */
  asparse_csr *a = NULL;
  int64_t entry_bytes = 8 + (int64_t)asparse_dtype_size(shape->dtype);
  TRY(asparse_budget_check(comm, shape->n_rows + 1, 16, "the row pointers"));
  TRY(asparse_budget_check(comm, entries->count, entry_bytes, "the entries of own rows"));
  TRY(asparse_csr_create(&a, shape->m, shape->k, shape->row_begin, shape->n_rows, entries->count, shape->dtype));
  ALLOC(next, a->n_rows);
  for (int64_t i = 0; i < entries->count; i++) a->row_ptr[entries->list[i].row - a->row_begin + 1]++;
  for (int64_t i = 0; i < a->n_rows; i++) {
    next[i] = a->row_ptr[i];
    a->row_ptr[i + 1] += a->row_ptr[i];
  }
  for (int64_t i = 0; i < entries->count; i++) {
    const asparse_entry *entry = &entries->list[i];
    int64_t place = next[entry->row - a->row_begin]++;
    a->col_idx[place] = entry->col;
    asparse_store(a->dtype, a->values, place, entry->value);
  }
  *out = a;
  a = NULL;
cleanup:
  asparse_free(next);
  asparse_csr_destroy(&a);
  return status;
}

asparse_status asparse_entries_to_slabs(asparse_comm *comm, int64_t m, int64_t k, asparse_dtype dtype,
                                        asparse_entries *entries, asparse_csr **a) {
  asparse_status status = ASPARSE_OK;
  int64_t *scratch = asparse_malloc(3 * ((int64_t)comm->size + 1), sizeof *scratch, "cuts"), *starts = scratch;
  status = scratch ? asparse_entries_sort_by_row(comm, m, entries) : ASPARSE_ERR_MEMORY;
  TRY(asparse_comm_agree(comm, status));
  TRY(choose_starts(comm, m, entries, starts, starts + comm->size + 1, starts + 2 * (comm->size + 1)));
  TRY(asparse_entries_exchange(comm, starts, entries));
  int64_t row_begin = starts[comm->rank];
  asparse_csr shape = {
      .m = m, .k = k, .row_begin = row_begin, .n_rows = starts[comm->rank + 1] - row_begin, .dtype = dtype};
  TRY(asparse_comm_agree(comm, build_slab(comm, entries, &shape, a)));
cleanup:
  asparse_entries_free(entries);
  asparse_free(scratch);
  return status;
}
