#include <string.h>

#include "io/budget.h"
#include "io/entries.h"
#include "io/matrix_read.h"

typedef struct reader {
  asparse_comm *comm;
  const asparse_layout *layout;
  int64_t begin; /* first entry of this rank */
  asparse_entries entries;
  int64_t *indices; /* [entries.count] */
  double *values;   /* the same memory */
  int64_t n_inexact;
} reader;

static asparse_status reserve(reader *r, int64_t count) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_budget_check(r->comm, count, 2 * sizeof(asparse_entry) + sizeof(double), r->layout->label));
  TRY(asparse_entries_create(r->comm, count, r->layout->label, &r->entries));
  ALLOC(r->values, count);
  r->indices = (int64_t *)r->values;
cleanup:
  return status;
}

/* Rows or columns of this rank's entries into r->indices; all 0 where the file stores none (a vector). */
static asparse_status read_indices(reader *r, const asparse_dataset *dataset, int64_t extent, const char *what) {
  int64_t count = r->entries.count;
  if (!asparse_dataset_is_there(dataset)) {
    memset(r->indices, 0, (size_t)count * sizeof *r->indices);
    return ASPARSE_OK;
  }
  PASS(asparse_dataset_read_int64(r->comm, dataset, r->begin, count, r->indices));
  return asparse_comm_agree(r->comm, asparse_check_indices(dataset, r->begin, count, r->indices, extent, what));
}

static asparse_status take_values(void *context, int64_t first, int64_t count, const void *rows) {
  reader *r = context;
  r->n_inexact += asparse_element_to_values(r->layout->values.element, rows, count, ASPARSE_FP64, r->values, first);
  return ASPARSE_OK;
}

static asparse_status read_values(reader *r) {
  int64_t count = r->entries.count;
  if (!r->layout->iso) return asparse_dataset_read(r->comm, &r->layout->values, r->begin, count, NULL, take_values, r);
  double all = 0, *own = r->values;
  r->values = &all;
  asparse_status status =
      asparse_dataset_read(r->comm, &r->layout->values, 0, r->layout->values.rows, NULL, take_values, r);
  r->values = own;
  r->n_inexact *= count;
  for (int64_t e = 0; e < count; e++) own[e] = all;
  return status;
}

static asparse_status read_entries(reader *r) {
  const asparse_layout *layout = r->layout;
  asparse_entry *list = r->entries.list;
  int64_t count = r->entries.count;
  PASS(read_indices(r, &layout->lines, layout->m, "rows"));
  for (int64_t e = 0; e < count; e++) list[e].row = r->indices[e];
  PASS(read_indices(r, &layout->indices, layout->k, "columns"));
  for (int64_t e = 0; e < count; e++) list[e].col = r->indices[e];
  PASS(read_values(r));
  for (int64_t e = 0; e < count; e++) list[e].value = r->values[e];
  return ASPARSE_OK;
}

asparse_status asparse_coordinates_read(asparse_comm *comm, asparse_layout *layout, asparse_csr **a) {
  asparse_status status = ASPARSE_OK;
  reader r = {.comm = comm, .layout = layout};
  const asparse_dataset *list = asparse_dataset_is_there(&layout->lines) ? &layout->lines : &layout->indices;
  int64_t stored = layout->stored >= 0 ? layout->stored : list->rows;
  r.begin = asparse_even_start(stored, comm->size, comm->rank);
  TRY(asparse_comm_agree(comm, reserve(&r, asparse_even_start(stored, comm->size, comm->rank + 1) - r.begin)));
  if (stored > 0) TRY(read_entries(&r));
  FREE(r.values);
  TRY(asparse_entries_to_slabs(comm, layout->m, layout->k, asparse_element_dtype(layout->values.element), &r.entries,
                               a));
  (*a)->n_inexact = r.n_inexact;
  layout->source.stored_entries = stored;
cleanup:
  asparse_free(r.values);
  asparse_entries_free(&r.entries);
  return status;
}
