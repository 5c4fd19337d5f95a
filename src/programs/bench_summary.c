#include "programs/bench_summary.h"

#include <math.h>

#include "base/memory.h"
#include "programs/program.h"

const char *const bench_band_names[BENCH_BANDS] = {"all", ">= 1 %", "0.1-1 %", "0.01-0.1 %", "< 0.01 %"};

static bool in_band(double density, int band) {
  static const double edges[BENCH_BANDS + 1] = {0, INFINITY, 1e-2, 1e-3, 1e-4, 0};
  if (band == 0) return true;
  return density < edges[band] && density >= edges[band + 1];
}

/* A geometric mean under way. */
typedef struct mean {
  double logarithms;
  int count;
} mean;

static void add(mean *m, double ratio) {
  if (!(ratio > 0) || !isfinite(ratio)) return;
  m->logarithms += log(ratio);
  m->count++;
}

static double value(const mean *m) { return m->count > 0 ? exp(m->logarithms / m->count) : NAN; }

/* Seconds of row over seconds of ours; NAN when there is no such row. */
static double speedup(const bench_row *row, const bench_row *ours) { return row ? row->seconds / ours->seconds : NAN; }

asparse_status bench_group_of(const bench_record *record, int64_t n, int band, bench_group *group) {
  asparse_status status = ASPARSE_OK;
  mean chosen = {0}, best = {0}, ell = {0}, cublas = {0}, tflops = {0}, loss = {0};
  double *fractions = NULL;
  int below = 0;
  *group = (bench_group){.n = n, .band = band};
  ALLOC(fractions, record->n_cases);
  for (int i = 0; i < record->n_cases; i++) {
    const bench_case *c = &record->cases[i];
    if (c->profile.n != n || c->chosen < 0 || !in_band(bench_density(c), band)) continue;
    const bench_row *ours = &c->rows[c->chosen], *fastest = &c->rows[c->best], *baseline = bench_baseline(c);
    add(&chosen, speedup(baseline, ours));
    add(&best, speedup(baseline, fastest));
    add(&ell, speedup(bench_row_at(c, c->best_ell), ours));
    add(&cublas, speedup(bench_row_at(c, c->cublas), ours));
    add(&tflops, bench_tflops(c, ours->seconds));
    add(&loss, ours->seconds / fastest->seconds);
    below += baseline && baseline->seconds < ours->seconds;
    fractions[group->count++] = c->least_seconds / ours->seconds;
  }
  asparse_program_sort(fractions, group->count);
  group->chosen_speedup = value(&chosen);
  group->best_speedup = value(&best);
  group->below_share = group->count > 0 ? (double)below / group->count : NAN;
  group->ell_speedup = value(&ell);
  group->cublas_speedup = value(&cublas);
  group->tflops = value(&tflops);
  group->fraction_of_least = group->count > 0 ? fractions[group->count / 2] : NAN;
  group->choice_loss = value(&loss);
cleanup:
  asparse_free(fractions);
  return status;
}
