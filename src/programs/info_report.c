#include "programs/info_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "asparse_config.h"
#include "programs/option_values.h"

double info_fraction_of_all_gather(const info_record *r, const exchange_table *t, const exchange_way *way) {
  const double row_bytes = (double)r->options->cols * r->exchange.shape.b_bytes;
  const double all = (double)(t->ranks - 1) * (double)r->s.k * row_bytes;
  return all > 0 ? (double)way->total.bytes_received / all : 0;
}

double info_nnz_imbalance(const asparse_volumes *v) {
  int64_t most = 0;
  for (int q = 0; q < v->parts; q++) most = v->part[q].nnz > most ? v->part[q].nnz : most;
  return v->nnz > 0 ? (double)most * v->parts / (double)v->nnz : 1;
}

static double per_column(const info_record *r, int height) {
  const int64_t columns = r->s.windows[height].columns;
  return columns > 0 ? (double)r->s.nnz / (double)columns : 0;
}

void info_reason(const info_record *r, char *text, size_t size) {
  const asparse_kernel_config *c = &r->chosen;
  int i = 0;
  switch (c->format) {
  case ASPARSE_FORMAT_WCSR:
    while (structure_heights[i] != c->unit) i++;
    snprintf(text, size, "a row of B gathered for a window of %d rows serves %.1f entries, in CSR 1", c->unit,
             per_column(r, i));
    return;
  case ASPARSE_FORMAT_BCSR:
    while (structure_sizes[i] != c->unit) i++;
    snprintf(text, size, "blocks of %d × %d are %.0f %% full, so that dense arithmetic on them wastes little", c->unit,
             c->unit, 100 * structure_block_fill(&r->s, i));
    return;
  default:
    snprintf(text, size,
             "a window of %d rows would multiply %.1f values for each entry, which costs more than it saves",
             structure_heights[0], r->s.nnz > 0 ? 1 / structure_window_fill(&r->s, 0) : 0);
  }
}

static double percent(int64_t part, int64_t whole) { return whole > 0 ? 100.0 * (double)part / (double)whole : 0; }

static void print_degrees(const char *name, const degrees *d) {
  printf("  %-11s entries in each: least %" PRId64 ", median %" PRId64 ", mean %.2f, largest %" PRId64, name, d->least,
         d->median, d->mean, d->largest);
  if (d->mean > 0) printf(" (%.1f × the mean)", (double)d->largest / d->mean);
  printf("; %" PRId64 " empty\n", d->empty);
}

static void print_symmetry(const structure *s) {
  int64_t off_diagonal = s->nnz - s->diagonal;
  if (s->m != s->k) {
    printf("  symmetry    not square\n");
  } else if (off_diagonal == 0) {
    printf("  symmetry    diagonal\n");
  } else {
    printf("  symmetry    %s; off-diagonal entries with a mirror image: %.4g %%, of the same value: %.4g %%",
           !structure_pattern_symmetric(s) ? "none"
           : s->equal == off_diagonal      ? "symmetric"
           : s->opposite == off_diagonal   ? "skew-symmetric up to the diagonal"
                                           : "symmetric pattern",
           percent(s->mirrored, off_diagonal), percent(s->equal, off_diagonal));
    if (s->opposite > 0) printf(", of opposite value: %.4g %%", percent(s->opposite, off_diagonal));
    printf("\n");
  }
}

static void print_matrix(const info_record *r) {
  const structure *s = &r->s;
  printf("  shape       %" PRId64 " × %" PRId64 ", %" PRId64 " entries", s->m, s->k, s->nnz);
  if (s->m > 0 && s->k > 0) printf(", density %.3g %%", 100 * (double)s->nnz / (double)s->m / (double)s->k);
  if (r->options->generate) printf("\n  generated   seed %" PRId64 "\n", r->options->seed);
  else
    printf("\n  stored as   %s, %s, %s, %" PRId64 " entries in the file\n", r->source.format, r->source.value_type,
           r->source.structure, r->source.stored_entries);
  if (r->n_duplicates > 0) printf("              %" PRId64 " duplicates were summed\n", r->n_duplicates);
  if (r->n_inexact > 0) printf("              %" PRId64 " integers were rounded to fp64\n", r->n_inexact);
  print_degrees("rows", &s->rows);
  print_degrees("columns", &s->columns);
  printf("  diagonal    %" PRId64 " entries on it; |i - j| at most %" PRId64 ", %.1f on average\n", s->diagonal,
         s->bandwidth, s->mean_distance);
  print_symmetry(s);
}

static void print_fill(const info_record *r) {
  printf("\n  windows of rows that share a column list      ");
  for (int i = 0; i < STRUCTURE_HEIGHTS; i++) printf("%9d", structure_heights[i]);
  printf("  rows\n    entries for each row of B gathered          ");
  for (int i = 0; i < STRUCTURE_HEIGHTS; i++) printf("%9.2f", per_column(r, i));
  printf("\n    stored values that are entries              ");
  for (int i = 0; i < STRUCTURE_HEIGHTS; i++) printf("%7.1f %%", 100 * structure_window_fill(&r->s, i));
  printf("\n  dense blocks                                  ");
  for (int i = 0; i < STRUCTURE_SIZES; i++) printf("%9d", structure_sizes[i]);
  printf("  square\n    stored values that are entries              ");
  for (int i = 0; i < STRUCTURE_SIZES; i++) printf("%7.1f %%", 100 * structure_block_fill(&r->s, i));
  printf("\n");
}

static void print_config(const asparse_kernel_config *c) {
  char name[32];
  snprintf(name, sizeof name, c->unit > 1 ? "%s %d" : "%s", c->kernel ? c->kernel : asparse_format_name(c->format),
           c->unit);
  printf("    %-16s %10.3f ms", name, 1e3 * c->predicted_seconds);
}

static void print_where(const info_record *r) {
  if (r->options->device) printf("predicted for an H200");
  else printf("predicted on this host, %d thread%s", r->rates.threads, r->rates.threads == 1 ? "" : "s");
}

static void print_advice(const info_record *r) {
  char reason[256];
  info_reason(r, reason, sizeof reason);
  printf("\n  format for %" PRId64 " dense columns in %s: ", r->options->cols, asparse_dtype_name(r->dtype));
  print_where(r);
  printf("\n");
  for (int i = 0; i < r->n_candidates; i++) {
    const asparse_kernel_config *c = &r->candidates[i];
    const bool chosen = c->format == r->chosen.format && c->unit == r->chosen.unit && c->kernel == r->chosen.kernel;
    if (isinf(c->predicted_seconds)) continue;
    print_config(c);
    if (chosen) printf("  best: %s", reason);
    printf("\n");
  }
}

/* Of grids only the fastest is shown. */
static bool is_shown(const exchange_table *t, int i) {
  if (t->candidates[i].mode != ASPARSE_EXCHANGE_GRID) return true;
  for (int j = 0; j < t->n_ways; j++) {
    if (t->candidates[j].mode != ASPARSE_EXCHANGE_GRID || j == i) continue;
    const double other = t->candidates[j].predicted_seconds, own = t->candidates[i].predicted_seconds;
    if (other < own || (other == own && j < i)) return false;
  }
  return true;
}

static void print_way(const info_record *r, const exchange_table *t, int i) {
  const asparse_mode_candidate *c = &t->candidates[i];
  const exchange_way *way = &t->ways[i];
  char name[48];
  snprintf(name, sizeof name, c->mode == ASPARSE_EXCHANGE_GRID ? "%s %d × %d" : "%s",
           option_name(option_exchanges, (int)c->mode), c->volumes->parts, c->pn);
  /* × is one column wide and two bytes long. */
  printf("    %c %-*s %12.3f %12.3f %10.2f %% %9" PRId64 " %12.3f %12.3f%s\n", i == t->best ? '*' : ' ',
         c->mode == ASPARSE_EXCHANGE_GRID ? 17 : 16, name, 1e-6 * (double)way->largest.bytes_received,
         1e-6 * (double)way->total.bytes_received, 100 * info_fraction_of_all_gather(r, t, way), way->largest.messages,
         r->options->row_operands ? 1e-6 * (double)way->largest.layout_bytes : 0, 1e3 * c->predicted_seconds,
         way->exact ? "" : "  at most: too many entries to count covers");
}

/* What most of a way's time goes to. */
static const char *limit_of(const asparse_mode_candidate *c) {
  if (c->compute_seconds >= c->exchange_seconds && c->compute_seconds >= c->layout_seconds) return "multiplying";
  return c->exchange_seconds >= c->layout_seconds ? "exchange" : "change of layout";
}

/* How far more ranks help, each number with its best way. */
static void print_scaling(const info_record *r) {
  const exchange_table *last = NULL;
  const double one = r->chosen.predicted_seconds;
  printf("\n  scaling, predicted, the best way of each (one rank: %.3f ms)\n", 1e3 * one);
  printf("      ranks  exchange                  ms  speed-up  efficiency  limited by\n");
  for (int i = 0; i < r->exchange.n_tables; i++) {
    const exchange_table *t = &r->exchange.tables[i];
    const asparse_mode_candidate *c = &t->candidates[t->best];
    char name[48];
    snprintf(name, sizeof name, c->mode == ASPARSE_EXCHANGE_GRID ? "%s %d × %d" : "%s",
             option_name(option_exchanges, (int)c->mode), c->volumes->parts, c->pn);
    if (t->counts->method != ASPARSE_PARTITION_CONTIGUOUS) continue;
    printf("    %7d  %-18s %9.3f  %8.2f  %8.0f %%  %s\n", t->ranks, name, 1e3 * c->predicted_seconds,
           one / c->predicted_seconds, 100 * one / c->predicted_seconds / t->ranks, limit_of(c));
    if (!last || c->predicted_seconds < 0.95 * last->candidates[last->best].predicted_seconds) last = t;
  }
  if (last && last->ranks < r->exchange.tables[r->exchange.n_tables - 1].ranks)
    printf("    beyond %d ranks the time falls by less than 5 %%: %s takes most of it\n", last->ranks,
           limit_of(&last->candidates[last->best]));
}

static void print_exchange(const info_record *r) {
  printf("\n  exchange of B for %" PRId64 " dense columns in %s, for one multiplication: ", r->options->cols,
         asparse_dtype_name(r->dtype));
  print_where(r);
  printf(" a rank\n    messages and MB to one: received by the rank with most; *: best; layout: %s\n",
         r->options->row_operands ? "MB to bring row slices of B to blocks of columns, and C back"
                                  : "none, operands already lie as they are multiplied");
  for (int i = 0; i < r->exchange.n_tables; i++) {
    const exchange_table *t = &r->exchange.tables[i];
    const asparse_volumes *v = t->counts->volumes;
    printf("\n  %d rank%s, %s: largest / mean entries %.2f, cost %.2f; link %.3g GB/s, %.2g µs a message\n", t->ranks,
           t->ranks == 1 ? "" : "s", v->method == ASPARSE_PARTITION_METIS ? "metis" : "contiguous",
           info_nnz_imbalance(v), v->imbalance, 1e-9 * t->link.bytes_per_second, 1e6 * t->link.latency_seconds);
    printf("      exchange           MB to one    MB to all  all-gather   messages    layout MB predicted ms\n");
    for (int w = 0; w < t->n_ways; w++) {
      if (is_shown(t, w)) print_way(r, t, w);
    }
  }
  if (r->exchange.n_tables > 1) print_scaling(r);
  if (r->exchange.metis_skipped[0]) printf("\n  without metis: %s\n", r->exchange.metis_skipped);
}

void info_report_print(const info_record *r) {
  printf("asparse_info %s: %s\n", ASPARSE_VERSION, r->options->matrix);
  print_matrix(r);
  print_fill(r);
  print_advice(r);
  print_exchange(r);
}
