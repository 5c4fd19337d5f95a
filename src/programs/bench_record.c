#include "programs/bench_record.h"

#include <string.h>

#include "base/memory.h"

/* *best = row i when it is faster than the row there. */
static void keep_faster(const bench_case *c, int i, int *best) {
  if (*best < 0 || c->rows[i].seconds < c->rows[*best].seconds) *best = i;
}

void bench_case_finish(bench_case *c) {
  c->chosen = c->best = c->csr = c->best_cusparse = c->best_ell = c->cublas = -1;
  for (int i = 0; i < c->n_rows; i++) {
    const bench_kernel *kernel = c->rows[i].kernel;
    if (c->rows[i].outcome != BENCH_TIMED) continue;
    if (c->rows[i].chosen) c->chosen = i;
    if (!kernel->peer) keep_faster(c, i, &c->best);
    if (!kernel->peer && kernel->format == ASPARSE_FORMAT_CSR && strcmp(kernel->name, "csr") == 0) c->csr = i;
    if (kernel->cusparse) keep_faster(c, i, &c->best_cusparse);
    if (strcmp(kernel->name, "cusparse-ell") == 0) keep_faster(c, i, &c->best_ell);
    if (kernel->peer && !kernel->cusparse) keep_faster(c, i, &c->cublas);
  }
}

void bench_record_free(bench_record *record) {
  for (int i = 0; i < record->n_cases; i++) {
    FREE(record->cases[i].matrix);
    FREE(record->cases[i].rows);
  }
  for (int i = 0; i < record->n_failures; i++) {
    FREE(record->failures[i].path);
    FREE(record->failures[i].message);
  }
  FREE(record->cases);
  FREE(record->failures);
}

double bench_density(const bench_case *c) {
  const double size = (double)c->profile.m * (double)c->profile.k;
  return size > 0 ? (double)c->profile.nnz / size : 0;
}

double bench_tflops(const bench_case *c, double seconds) {
  return seconds > 0 ? 2e-12 * (double)c->profile.nnz * (double)c->profile.n / seconds : 0;
}

const bench_row *bench_baseline(const bench_case *c) {
  return bench_row_at(c, c->best_cusparse >= 0 ? c->best_cusparse : c->csr);
}
