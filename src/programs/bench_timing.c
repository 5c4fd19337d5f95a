#include "programs/bench_timing.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "programs/program.h"

/* A sample lasts at least about this long, so that the clock's steps (half a microsecond on a GPU) do not count. */
static const double SAMPLE_SECONDS = 60e-6;
enum { MOST_LAUNCHES = 20, FEWEST_SAMPLES = 3 };

/* Kernels this many times slower than the fastest get few samples; those that would take more than this part of the
 * budget for one product, none beside the first. */
static const double SLOW = 10, HOPELESS = 0.01;

/* Rows that take part, and how. */
typedef struct turns {
  int count;
  int *rows;          /* [count] of the case */
  void **prepared;    /* [count] */
  int *launches;      /* [count] of a sample */
  int *samples;       /* [count] wanted */
  bool *first_counts; /* [count] the first estimate is the only sample */
  double *seconds;    /* [count × most] */
  int most;           /* samples of a row */
} turns;

static void turns_free(turns *t) {
  FREE(t->rows);
  FREE(t->prepared);
  FREE(t->launches);
  FREE(t->samples);
  FREE(t->first_counts);
  FREE(t->seconds);
}

static asparse_status turns_create(int count, int most, turns *t) {
  asparse_status status = ASPARSE_OK;
  t->most = most;
  ALLOC_ZERO(t->rows, count);
  ALLOC_ZERO(t->prepared, count);
  ALLOC_ZERO(t->launches, count);
  ALLOC_ZERO(t->samples, count);
  ALLOC_ZERO(t->first_counts, count);
  ALLOC_ZERO(t->seconds, (int64_t)count * most);
cleanup:
  return status;
}

asparse_status bench_row_settle(bench_row *row, asparse_status status) {
  if (status == ASPARSE_OK) return ASPARSE_OK;
  if (status != ASPARSE_ERR_USAGE && status != ASPARSE_ERR_MEMORY) return status;
  row->outcome = status == ASPARSE_ERR_USAGE ? BENCH_UNSUPPORTED : BENCH_TOO_LARGE;
  snprintf(row->note, sizeof row->note, "%.*s", (int)sizeof row->note - 1, asparse_error_message());
  asparse_error_clear();
  return ASPARSE_OK;
}

/* One checked product, then one timed: its seconds are the first estimate. */
static asparse_status check(bench_engine *engine, void *prepared, bench_row *row) {
  PASS(engine->functions->ready(engine, prepared, &row->preprocess_seconds));
  PASS(engine->functions->check(engine, prepared, &row->max_error));
  if (!(row->max_error <= 1)) {
    row->outcome = BENCH_WRONG;
    snprintf(row->note, sizeof row->note, "largest error is %.3g of its bound", row->max_error);
    return ASPARSE_OK;
  }
  return engine->functions->sample(engine, prepared, 1, &row->seconds);
}

static asparse_status check_all(bench_engine *engine, void *const *prepared, bench_case *c, turns *t) {
  for (int i = 0; i < c->n_rows; i++) {
    bench_row *row = &c->rows[i];
    if (row->outcome != BENCH_TIMED) continue;
    PASS(bench_row_settle(row, check(engine, prepared[i], row)));
    if (row->outcome != BENCH_TIMED) continue;
    t->rows[t->count] = i;
    t->prepared[t->count++] = prepared[i];
  }
  return ASPARSE_OK;
}

/* Launches and samples of every row, within the budget of the case. */
static void plan_turns(const bench_options *options, const bench_case *c, turns *t) {
  double fastest = INFINITY, turn_seconds = 0;
  for (int i = 0; i < t->count; i++) fastest = fmin(fastest, c->rows[t->rows[i]].seconds);
  for (int i = 0; i < t->count; i++) {
    const double seconds = c->rows[t->rows[i]].seconds;
    const double launches = seconds > 0 ? ceil(SAMPLE_SECONDS / seconds) : MOST_LAUNCHES;
    t->launches[i] = options->flush_l2 ? 1 : (int)fmin(fmax(launches, 1), MOST_LAUNCHES);
    if (seconds <= SLOW * fastest) turn_seconds += (t->launches[i] + 1) * seconds;
  }
  const double affordable = turn_seconds > 0 ? options->case_seconds / turn_seconds : t->most;
  const int usual = (int)fmin(fmax(affordable, fmin(FEWEST_SAMPLES, t->most)), t->most);
  for (int i = 0; i < t->count; i++) {
    const double seconds = c->rows[t->rows[i]].seconds;
    const bool slow = seconds > SLOW * fastest, hopeless = slow && seconds > HOPELESS * options->case_seconds;
    t->samples[i] = hopeless ? 1 : slow && usual > FEWEST_SAMPLES ? FEWEST_SAMPLES : usual;
    t->first_counts[i] = hopeless;
  }
}

static asparse_status take_turns(bench_engine *engine, turns *t) {
  for (int turn = 0; turn < t->most; turn++) {
    for (int i = 0; i < t->count; i++) {
      if (turn >= t->samples[i] || t->first_counts[i]) continue;
      PASS(engine->functions->sample(engine, t->prepared[i], t->launches[i], &t->seconds[i * t->most + turn]));
    }
  }
  return ASPARSE_OK;
}

static void fill_rows(const turns *t, bench_case *c) {
  for (int i = 0; i < t->count; i++) {
    bench_row *row = &c->rows[t->rows[i]];
    double *seconds = t->seconds + i * t->most;
    const int n = t->samples[i];
    if (t->first_counts[i]) seconds[0] = row->seconds;
    asparse_program_sort(seconds, n);
    row->samples = n;
    row->launches = t->launches[i];
    row->seconds = seconds[n / 2];
    row->p5 = seconds[(n - 1) * 5 / 100];
    row->p95 = seconds[(n - 1) * 95 / 100];
  }
}

asparse_status bench_time(bench_engine *engine, const bench_options *options, void *const *prepared, bench_case *c) {
  asparse_status status = ASPARSE_OK;
  turns t = {0};
  TRY(turns_create(c->n_rows, (int)options->repeat, &t));
  TRY(check_all(engine, prepared, c, &t));
  plan_turns(options, c, &t);
  TRY(engine->functions->arm(engine, t.prepared, t.launches, t.count, &c->method));
  TRY(take_turns(engine, &t));
  fill_rows(&t, c);
cleanup:
  turns_free(&t);
  return status;
}
