#include "programs/info_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "asparse_config.h"

double info_all_gather_rows(const info_record *r, int ranks) { return (double)(ranks - 1) * (double)r->s.k; }

double info_fraction_of_all_gather(const info_record *r, const exchange_volume *v) {
  double all = info_all_gather_rows(r, v->ranks);
  return all > 0 ? (double)v->quality.halo_total / all : 0;
}

double info_megabytes(const info_record *r, double rows) {
  return 1e-6 * rows * (double)r->options->cols * (double)asparse_dtype_size(r->dtype);
}

static double per_column(const info_record *r, int height) {
  return r->s.window_columns[height] > 0 ? (double)r->s.nnz / (double)r->s.window_columns[height] : 0;
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
  snprintf(name, sizeof name, c->unit > 1 ? "%s %d" : "%s", asparse_format_name(c->format), c->unit);
  printf("    %-8s %10.3f ms", name, 1e3 * c->predicted_seconds);
}

static void print_advice(const info_record *r) {
  char reason[256];
  info_reason(r, reason, sizeof reason);
  printf("\n  format for %" PRId64 " dense columns in %s: predicted on this host, %d thread%s\n", r->options->cols,
         asparse_dtype_name(r->dtype), r->rates.threads, r->rates.threads == 1 ? "" : "s");
  for (int i = 0; i < r->n_candidates; i++) {
    const asparse_kernel_config *c = &r->candidates[i];
    bool chosen = c->format == r->chosen.format && c->unit == r->chosen.unit;
    print_config(c);
    if (chosen) printf("  best: %s", reason);
    printf("\n");
  }
}

static void print_volumes(const info_record *r) {
  if (r->n_volumes == 0) return;
  printf("\n  exchange of B rows for %" PRId64 " dense columns in %s (all-gather: every rank receives all of B)\n",
         r->options->cols, asparse_dtype_name(r->dtype));
  printf("    ranks  partition   rows received    by one rank   MB by one   of all-gather   entries   cost\n");
  printf("                        by all ranks        at most     at most                   (largest / mean)\n");
  for (int i = 0; i < r->n_volumes; i++) {
    const exchange_volume *v = &r->volumes[i];
    printf("    %5d  %-10s %14" PRId64 " %14" PRId64 " %11.3f %13.2f %% %9.2f %6.2f\n", v->ranks,
           v->method == ASPARSE_PARTITION_METIS ? "metis" : "contiguous", v->quality.halo_total, v->quality.halo_max,
           info_megabytes(r, (double)v->quality.halo_max), 100 * info_fraction_of_all_gather(r, v),
           v->quality.nnz_imbalance, v->quality.imbalance);
  }
}

void info_report_print(const info_record *r) {
  printf("asparse_info %s: %s\n", ASPARSE_VERSION, r->options->matrix);
  print_matrix(r);
  print_fill(r);
  print_advice(r);
  print_volumes(r);
}
