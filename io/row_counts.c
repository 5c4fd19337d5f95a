#include "io/row_counts.h"

#include <omp.h>
#include <stdio.h>

#include "io/budget.h"

enum { MEMORY_SHARE = 4 /* counts take at most 1/4 of memory */ };

asparse_status asparse_row_counts_pieces(const char *name, int64_t m, int64_t most, int *n_pieces) {
  const int64_t row_bytes = sizeof(int64_t);
  char what[48];
  snprintf(what, sizeof what, "a matrix of %lld rows", (long long)m);
  PASS(asparse_budget_allows(name, m < INT64_MAX / 4 / row_bytes ? 2 * row_bytes * (m + 1) : INT64_MAX, what));
  int64_t by_memory = asparse_budget_available() / MEMORY_SHARE / (row_bytes * (m + 1));
  int64_t n = omp_get_max_threads();
  if (n > most) n = most;
  if (n > by_memory) n = by_memory;
  *n_pieces = n < 1 ? 1 : (int)n;
  return ASPARSE_OK;
}

void asparse_row_counts_lay_out(int n_pieces, int64_t m, int64_t *counts, int64_t *row_ptr) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < m; i++) {
    int64_t count = 0;
    for (int p = 0; p < n_pieces; p++) count += counts[p * m + i];
    row_ptr[i + 1] = count;
  }
  for (int64_t i = 0; i < m; i++) row_ptr[i + 1] += row_ptr[i];
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < m; i++) {
    int64_t place = row_ptr[i];
    for (int p = 0; p < n_pieces; p++) {
      int64_t count = counts[p * m + i];
      counts[p * m + i] = place;
      place += count;
    }
  }
}
