/* Checks of a layout that metadata allow, before anything is read or allocated. */
#include "io/layout.h"

static asparse_status check_array(const asparse_dataset *dataset, bool integers) {
  if (!asparse_dataset_is_there(dataset)) return ASPARSE_OK;
  if (dataset->rank != 1 && dataset->cols != 1)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s is %lld × %lld, expected one dimension", dataset->path,
                        (long long)dataset->rows, (long long)dataset->cols);
  if (integers && !asparse_element_is_integer(dataset->element))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s holds %s, expected integers", dataset->path,
                        asparse_element_name(dataset->element));
  return ASPARSE_OK;
}

/* The entries that are declared are there; iso: one value for all. */
static asparse_status check_entries(const asparse_layout *layout) {
  const asparse_dataset *arrays[] = {&layout->lines, &layout->indices, &layout->values};
  const asparse_dataset *values = &layout->values;
  int64_t stored = layout->stored;
  if (stored < 0 && layout->arrangement == ASPARSE_BY_ENTRY)
    stored = asparse_dataset_is_there(&layout->lines) ? layout->lines.rows : layout->indices.rows;
  if (layout->iso && values->rows != 1 && stored != 0)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s has %lld elements, expected 1 for the iso type %s", values->path,
                        (long long)values->rows, layout->source.value_type);
  for (int i = layout->arrangement == ASPARSE_BY_ENTRY ? 0 : 1; i < (layout->iso ? 2 : 3); i++) {
    if (asparse_dataset_is_there(arrays[i]) && arrays[i]->rows < stored)
      return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%lld stored values are declared, but %s has %lld elements",
                          (long long)stored, arrays[i]->path, (long long)arrays[i]->rows);
  }
  return ASPARSE_OK;
}

static asparse_status check_pointer_count(const asparse_layout *layout) {
  const asparse_dataset *pointers = &layout->pointers, *lines = &layout->lines;
  bool by_rows = layout->arrangement == ASPARSE_BY_ROWS, some = asparse_dataset_is_there(lines);
  int64_t count = some ? lines->rows : by_rows ? layout->m : layout->k;
  if (pointers->rows != count + 1)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s has %lld elements, expected %s + 1 = %lld for %lld × %lld",
                        pointers->path, (long long)pointers->rows,
                        some      ? "those of its list of lines"
                        : by_rows ? "rows"
                                  : "columns",
                        (long long)count + 1, (long long)layout->m, (long long)layout->k);
  return ASPARSE_OK;
}

/* All elements, in two dimensions or one after the other. */
static asparse_status check_dense(const asparse_layout *layout) {
  const asparse_dataset *values = &layout->values;
  bool by_rows = layout->arrangement == ASPARSE_DENSE_BY_ROWS;
  int64_t lines = by_rows ? layout->m : layout->k, width = by_rows ? layout->k : layout->m, count = 0;
  bool fits = !__builtin_mul_overflow(lines, width, &count) &&
              (values->rank == 1 ? values->rows == count : values->rows == lines && values->cols == width);
  if (!fits)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s has %lld × %lld elements, expected those of a %lld × %lld matrix",
                        values->path, (long long)values->rows, (long long)values->cols, (long long)layout->m,
                        (long long)layout->k);
  return ASPARSE_OK;
}

asparse_status asparse_layout_check(const asparse_layout *layout) {
  if (asparse_is_dense(layout->arrangement)) return check_dense(layout);
  PASS(check_array(&layout->pointers, true));
  PASS(check_array(&layout->lines, true));
  PASS(check_array(&layout->indices, true));
  PASS(check_array(&layout->values, false));
  if (layout->arrangement != ASPARSE_BY_ENTRY) PASS(check_pointer_count(layout));
  return check_entries(layout);
}
