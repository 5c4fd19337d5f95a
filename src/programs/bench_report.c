#include "programs/bench_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "asparse_config.h"
#include "base/dtype.h"
#include "programs/bench_summary.h"

void bench_print_head(const bench_record *record) {
  printf("asparse_bench %s: %s\n", ASPARSE_VERSION, record->device);
  printf("  peers      %s\n", record->libraries);
  printf("  * the cost model's choice; least: what gathering, moving and multiplying take at the least\n");
}

static void print_number(const char *format, int width, double value) {
  if (isfinite(value)) printf(format, value);
  else printf("%*s", width, "-");
}

static void print_row(const bench_case *c, const bench_row *row) {
  const bench_row *baseline = bench_baseline(c);
  printf("  %c %-18s %3d", row->chosen ? '*' : ' ', row->kernel->name, row->kernel->unit);
  if (row->outcome != BENCH_TIMED) {
    printf("  %s: %s\n", row->outcome == BENCH_WRONG ? "WRONG" : "not timed", row->note);
    return;
  }
  printf(" %10.4f %9.4f-%-9.4f %8.2f", 1e3 * row->seconds, 1e3 * row->p5, 1e3 * row->p95,
         bench_tflops(c, row->seconds));
  print_number(" %6.2fx", 8, baseline ? baseline->seconds / row->seconds : NAN);
  printf(" %6.2f", c->least_seconds / row->seconds);
  print_number(" %10.4f", 11, 1e3 * row->predicted);
  printf(" %9.2f %8.2f %8.2g\n", 1e3 * row->plan_seconds, 1e3 * row->preprocess_seconds, row->max_error);
}

void bench_print_case(const bench_case *c) {
  const asparse_profile *p = &c->profile;
  printf("\n%s: %" PRId64 " x %" PRId64 ", %" PRId64 " entries (%.3g %%), longest row %" PRId64 "; N = %" PRId64
         ", %s to %s; least %.4f ms; %s\n",
         c->matrix, p->m, p->k, p->nnz, 100 * bench_density(c), p->longest_row, p->n, asparse_dtype_name(p->dtype),
         asparse_dtype_name(c->c_dtype), 1e3 * c->least_seconds, c->method);
  printf("    %-18s %3s %10s %19s %8s %7s %6s %10s %9s %8s %8s\n", "kernel", "", "ms", "p5-p95", "TFLOP/s",
         c->best_cusparse >= 0 ? "cuSP" : "csr", "least", "predicted", "plan ms", "prep ms", "error");
  for (int i = 0; i < c->n_rows; i++) print_row(c, &c->rows[i]);
  fflush(stdout);
}

static void print_group(const bench_group *g) {
  printf("  %6" PRId64 "  %-12s %5d", g->n, bench_band_names[g->band], g->count);
  print_number(" %8.2fx", 10, g->chosen_speedup);
  print_number(" %8.2fx", 10, g->best_speedup);
  print_number(" %8.0f%%", 10, 100 * g->below_share);
  print_number(" %8.2fx", 10, g->ell_speedup);
  print_number(" %8.2fx", 10, g->cublas_speedup);
  print_number(" %9.2f", 10, g->tflops);
  print_number(" %9.2f", 10, g->fraction_of_least);
  print_number(" %9.3f\n", 10, g->choice_loss);
}

asparse_status bench_print_summary(const bench_record *record) {
  const bench_options *o = record->options;
  const bool cusparse = record->n_cases > 0 && record->cases[0].best_cusparse >= 0;
  printf("\n%d matrices timed, %d failed, %d below --min-nnz; wrong results: %d of ours, %d of libraries\n",
         record->n_matrices, record->n_failures, record->n_skipped, record->n_wrong, record->n_wrong_peers);
  if (record->interrupted) printf("  note       ended early on SIGUSR1: matrices are left\n");
  for (int i = 0; i < record->n_failures; i++) printf("  failed     %s\n", record->failures[i].message);
  if (record->n_cases == 0) return ASPARSE_OK;
  printf("Geometric means over matrices; speed-ups over %s\n",
         cusparse ? "the best of cuSPARSE (CSR 1-3, BSR, Blocked-ELL)" : "our CSR kernel");
  printf("  %6s  %-12s %5s %9s %9s %9s %9s %9s %9s %9s %9s\n", "N", "density", "cases", "chosen", "fastest", "below 1x",
         "vs ELL", "vs dense", "TFLOP/s", "of least", "choice");
  for (int i = o->n_cols - 1; i >= 0; i--) {
    for (int band = 0; band < BENCH_BANDS; band++) {
      bench_group group;
      PASS(bench_group_of(record, o->cols[i], band, &group));
      if (group.count > 0) print_group(&group);
    }
  }
  printf("  chosen, fastest: of the chosen and of our fastest kernel; of least: median of the chosen kernel's;\n"
         "  choice: time of the chosen kernel over our fastest\n");
  return ASPARSE_OK;
}
