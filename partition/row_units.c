#include "partition/row_units.h"

#include <omp.h>

int asparse_unit_threads(int64_t n_units) {
  int64_t useful = n_units / ASPARSE_UNIT_CHUNK + 1, available = omp_get_max_threads();
  return (int)(useful < available ? useful : available);
}

int32_t asparse_unit_insert(asparse_column_set *set, const asparse_local_csr *a, int32_t height, int shift,
                            int32_t unit) {
  int64_t begin = a->row_ptr[unit * height], end = a->row_ptr[asparse_unit_end(unit, height, a->m)];
  int32_t distinct = 0;
  for (int64_t e = begin; e < end; e++) distinct += asparse_column_set_insert(set, a->col_idx[e] >> shift);
  return distinct;
}

void asparse_units_count(const asparse_local_csr *a, int32_t height, int shift, asparse_column_set *sets,
                         int64_t *distinct) {
  int32_t n_units = asparse_units_over(a->m, height);
#pragma omp parallel for schedule(dynamic, ASPARSE_UNIT_CHUNK) num_threads(asparse_unit_threads(n_units))
  for (int32_t u = 0; u < n_units; u++) {
    asparse_column_set *set = &sets[omp_get_thread_num()];
    distinct[u] = asparse_unit_insert(set, a, height, shift, u);
    asparse_column_set_clear(set);
  }
}

asparse_status asparse_units_distinct(const asparse_local_csr *a, int32_t height, int shift, int64_t *distinct) {
  asparse_status status = ASPARSE_OK;
  asparse_column_set *sets = NULL;
  int32_t n_units = asparse_units_over(a->m, height);
  TRY(asparse_column_sets_create(&sets, asparse_unit_threads(n_units), asparse_units_over(a->k, 1 << shift)));
  asparse_units_count(a, height, shift, sets, distinct);
cleanup:
  asparse_column_sets_destroy(&sets);
  return status;
}

asparse_status asparse_slab_units_count(const asparse_csr *a, int32_t height, int shift, int64_t *distinct) {
  asparse_status status = ASPARSE_OK;
  asparse_column_set *sets = NULL;
  int64_t n_units = (a->n_rows + height - 1) / height, range = (a->k >> shift) + 1;
  TRY(asparse_column_sets_create(&sets, asparse_unit_threads(n_units), range));
#pragma omp parallel for schedule(dynamic, ASPARSE_UNIT_CHUNK) num_threads(asparse_unit_threads(n_units))
  for (int64_t u = 0; u < n_units; u++) {
    asparse_column_set *set = &sets[omp_get_thread_num()];
    int64_t end_row = (u + 1) * height < a->n_rows ? (u + 1) * height : a->n_rows;
    distinct[u] = 0;
    for (int64_t e = a->row_ptr[u * height]; e < a->row_ptr[end_row]; e++)
      distinct[u] += asparse_column_set_insert(set, a->col_idx[e] >> shift);
    asparse_column_set_clear(set);
  }
cleanup:
  asparse_column_sets_destroy(&sets);
  return status;
}
