#include <string.h>

#include "io/entries.h"
#include "io/matrix_read.h"

typedef struct reader {
  asparse_comm *comm;
  const asparse_layout *layout;
  int64_t begin;    /* first element of this rank */
  int64_t width;    /* elements of a line */
  int64_t capacity; /* of entries */
  asparse_entries entries;
  int64_t n_inexact;
} reader;

/* Room for count more entries, at least twice as much as before. */
static asparse_status reserve(reader *r, int64_t count) {
  asparse_status status = ASPARSE_OK;
  asparse_entries larger = {0};
  int64_t needed = r->entries.count + count;
  if (needed <= r->capacity) return ASPARSE_OK;
  int64_t capacity = needed > 2 * r->capacity ? needed : 2 * r->capacity;
  TRY(asparse_entries_create(r->comm, capacity, r->layout->label, &larger));
  if (r->entries.count > 0) memcpy(larger.list, r->entries.list, (size_t)r->entries.count * sizeof *larger.list);
  larger.count = r->entries.count;
  asparse_entries_free(&r->entries);
  r->entries = larger;
  r->capacity = capacity;
cleanup:
  return status;
}

static asparse_status take(void *context, int64_t first, int64_t count, const void *rows) {
  asparse_status status = ASPARSE_OK;
  reader *r = context;
  const asparse_dataset *dataset = &r->layout->values;
  bool by_rows = r->layout->arrangement == ASPARSE_DENSE_BY_ROWS;
  int64_t n = count * dataset->cols, position = r->begin + first * dataset->cols, n_entries = 0;
  double *values = NULL;
  ALLOC(values, n);
  r->n_inexact += asparse_element_to_values(dataset->element, rows, n, ASPARSE_FP64, values, 0);
  for (int64_t i = 0; i < n; i++) n_entries += values[i] != 0;
  TRY(reserve(r, n_entries));
  for (int64_t i = 0; i < n; i++) {
    if (values[i] == 0) continue;
    int64_t line = (position + i) / r->width, place = (position + i) % r->width;
    r->entries.list[r->entries.count++] =
        by_rows ? (asparse_entry){line, place, values[i]} : (asparse_entry){place, line, values[i]};
  }
cleanup:
  asparse_free(values);
  return status;
}

asparse_status asparse_elements_read(asparse_comm *comm, asparse_layout *layout, asparse_csr **a) {
  asparse_status status = ASPARSE_OK;
  const asparse_dataset *values = &layout->values;
  reader r = {.comm = comm, .layout = layout};
  int64_t begin = asparse_even_start(values->rows, comm->size, comm->rank);
  int64_t end = asparse_even_start(values->rows, comm->size, comm->rank + 1);
  r.width = layout->arrangement == ASPARSE_DENSE_BY_ROWS ? layout->k : layout->m;
  r.begin = begin * values->cols;
  if (layout->m > 0 && layout->k > 0) TRY(asparse_dataset_read(comm, values, begin, end - begin, NULL, take, &r));
  TRY(asparse_entries_to_slabs(comm, layout->m, layout->k, asparse_element_dtype(values->element), &r.entries, a));
  (*a)->n_inexact = r.n_inexact;
  layout->source.stored_entries = layout->m * layout->k;
cleanup:
  asparse_entries_free(&r.entries);
  return status;
}
