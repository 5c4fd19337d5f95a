#include <inttypes.h>
#include <stdio.h>

#include "asparse_config.h"
#include "programs/option_values.h"
#include "programs/report_json.h"
#include "programs/summary.h"

typedef struct text {
  char value[64];
} text;

static text bytes_text(double bytes) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  text t;
  int unit = 0;
  for (; bytes >= 1000 && unit < 4; unit++) bytes /= 1000;
  snprintf(t.value, sizeof t.value, unit == 0 ? "%.0f %s" : "%.3g %s", bytes, units[unit]);
  return t;
}

static text seconds_text(double seconds) {
  text t;
  if (seconds >= 1) snprintf(t.value, sizeof t.value, "%.3g s", seconds);
  else if (seconds >= 1e-3) snprintf(t.value, sizeof t.value, "%.3g ms", 1e3 * seconds);
  else snprintf(t.value, sizeof t.value, "%.3g µs", 1e6 * seconds);
  return t;
}

static const char *const in_chunks[] = {"", "", " in 2 chunks", " in 3 chunks", " in 4 chunks"};

/* "rows in 2 chunks", "columns", "grid of 2 × 4 ranks, rows". */
static text exchange_text(const asparse_stats *stats) {
  text t;
  const asparse_exchange_mode mode = summary_exchange(stats);
  if (mode == ASPARSE_EXCHANGE_GRID)
    snprintf(t.value, sizeof t.value, "grid of %d × %d ranks, %s%s", stats->grid_rows, stats->grid_columns,
             option_name(option_exchanges, stats->exchange), in_chunks[stats->chunks]);
  else snprintf(t.value, sizeof t.value, "%s%s", option_name(option_exchanges, mode), in_chunks[stats->chunks]);
  return t;
}

static void print_inputs(const solve_record *r) {
  double density = r->m > 0 && r->k > 0 ? 100.0 * (double)r->nnz / ((double)r->m * (double)r->k) : 0;
  printf("asparse_solve %s: C = A·B\n", ASPARSE_VERSION);
  printf("  A          %s: %" PRId64 " × %" PRId64 ", %" PRId64 " entries (%.3g %%)", r->options->matrix, r->m, r->k,
         r->nnz, density);
  if (r->source.format[0]) printf(", %s, %s, %s", r->source.format, r->source.value_type, r->source.structure);
  else printf(", partition file");
  printf("\n  B          %s, %" PRId64 " × %" PRId64 "; computed in %s", r->b_source, r->k, r->n,
         asparse_dtype_name(r->dtype));
  if (r->result != r->dtype) printf(", C in %s", asparse_dtype_name(r->result));
  printf("\n");
  if (r->n_duplicates > 0) printf("  note       duplicate entries were summed: %" PRId64 "\n", r->n_duplicates);
  if (r->b_rounded) printf("  note       B was rounded to the precision of the saved shards\n");
  if (r->n_inexact > 0) printf("  note       integers too large for fp64 were rounded: %" PRId64 "\n", r->n_inexact);
}

/* The best other way of the planner. */
static void print_planning(const asparse_planning *planning) {
  int second = -1;
  for (int i = 0; i < planning->n_ways; i++) {
    if (i != planning->best &&
        (second < 0 || planning->ways[i].predicted_seconds < planning->ways[second].predicted_seconds))
      second = i;
  }
  if (second < 0) return;
  const asparse_planned_way *way = &planning->ways[second];
  printf("  planner    %s expected; next best %s", seconds_text(planning->ways[planning->best].predicted_seconds).value,
         option_name(option_exchanges, (int)way->exchange));
  if (way->exchange == ASPARSE_EXCHANGE_GRID) printf(" %d × %d", way->grid_rows, way->grid_columns);
  printf("%s %s; links %s/s (%s), planned in %s\n", in_chunks[way->chunks], seconds_text(way->predicted_seconds).value,
         bytes_text(planning->link.bytes_per_second).value,
         planning->link_remembered ? "measured by an earlier run" : "measured", seconds_text(planning->seconds).value);
}

static void print_choices(const solve_record *r, const summary *s) {
  const asparse_stats *stats = &r->stats;
  const spread *received = &s->quantities[QUANTITY_BYTES_RECEIVED], *nnz = &s->quantities[QUANTITY_NNZ];
  printf("  ranks      %d on %d host%s, %d thread%s each, %s backend (%s)\n", s->ranks, s->n_hosts,
         s->n_hosts == 1 ? "" : "s", r->threads, r->threads == 1 ? "" : "s", stats->backend,
         stats->device ? stats->device : asparse_host_isa());
  printf("  partition  %s; largest / mean: cost %.2f, entries %.2f\n",
         r->partition == ASPARSE_PARTITION_METIS ? "metis" : "contiguous", r->imbalance,
         nnz->sum > 0 ? nnz->max * s->ranks / nnz->sum : 1.0);
  printf("  format     %s", asparse_format_name(stats->format));
  if (stats->unit > 1) printf(" %d", stats->unit);
  if (stats->device) printf(", kernel %s", stats->kernel);
  if (s->ranks > 1) printf(" (halo columns: %s", asparse_format_name(stats->offd_format));
  if (s->ranks > 1 && stats->offd_unit > 1) printf(" %d", stats->offd_unit);
  printf("%s; %.0f %% of stored entries are A's%s\n", s->ranks > 1 ? ")" : "", 100 * s->fill_ratio,
         r->stats.ready_shards ? "; ready shards loaded" : "");
  if (s->ranks > 1)
    printf("  exchange   %s: %s of B a multiplication over all ranks, at most %s to one (all of B everywhere: %s)\n",
           exchange_text(stats).value, bytes_text(received->sum).value, bytes_text(received->max).value,
           bytes_text(s->replicate_bytes).value);
  if (s->quantities[QUANTITY_LAYOUT_BYTES_RECEIVED].sum > 0)
    printf("             B to blocks of columns and C back to rows: %s over all ranks, at most %s to one\n",
           bytes_text(s->quantities[QUANTITY_LAYOUT_BYTES_RECEIVED].sum).value,
           bytes_text(s->quantities[QUANTITY_LAYOUT_BYTES_RECEIVED].max).value);
  print_planning(&r->planning);
  if (r->saved_seconds > 0)
    printf("  saved      partitioning and building took %s when the file was made\n",
           seconds_text(r->saved_seconds).value);
}

static void print_times(const solve_record *r, const summary *s) {
  const spread *t = s->seconds;
  printf("  prepare    %s %s, partition %s, move rows %s, build shards %s", r->options->generate ? "generate" : "read",
         seconds_text(t[PHASE_READ].max).value, seconds_text(t[PHASE_PARTITION].max).value,
         seconds_text(t[PHASE_MOVE].max).value, seconds_text(t[PHASE_BUILD].max).value);
  if (s->median_seconds > 0) printf(" (%.3g multiplications)", t[PHASE_BUILD].max / s->median_seconds);
  printf("\n");
  if (r->stats.device && !r->options->dry_run)
    printf("  copies     B to the GPU and C back %s, not in the time below\n", seconds_text(t[PHASE_COPY].max).value);
  if (r->options->dry_run) {
    printf("  multiply   not run (--dry-run); predicted %s\n",
           seconds_text(s->quantities[QUANTITY_PREDICTED_EXECUTE].max).value);
    return;
  }
  if (r->interrupted)
    printf("  note       ended early on SIGUSR1, after %d of %d timed multiplications\n", r->n_repeats,
           r->options->repeat);
  if (r->n_repeats == 0) {
    printf("  multiply   not timed\n");
    return;
  }
  printf("  multiply   %s (median of %d; %s to %s): %.3g GFLOP/s, %.0f %% of what memory and arithmetic allow\n",
         seconds_text(s->median_seconds).value, r->n_repeats, seconds_text(s->min_seconds).value,
         seconds_text(s->max_seconds).value, s->gflops,
         s->median_seconds > 0 ? 100 * s->least_seconds / s->median_seconds : 0.0);
  printf("             predicted %s", seconds_text(s->quantities[QUANTITY_PREDICTED_EXECUTE].max).value);
  if (r->stats.device && r->launches > 1) printf("; %d in a row each time", r->launches);
  printf("\n");
  if (s->ranks > 1)
    printf("             own columns %s, waiting for halo %s, halo columns %s; exchange %s by %s, packing %s (slowest "
           "rank)\n",
           seconds_text(t[PHASE_DIAG].max).value, seconds_text(t[PHASE_EXPOSED].max).value,
           seconds_text(t[PHASE_OFFD].max).value, seconds_text(t[PHASE_COMMUNICATION].max).value, r->stats.transport,
           seconds_text(t[PHASE_PACK].max).value);
  if (t[PHASE_LAYOUT].max > 0)
    printf("             B to blocks of columns and C back to rows %s\n", seconds_text(t[PHASE_LAYOUT].max).value);
}

static void print_outcome(const solve_record *r, const summary *s) {
  const spread *q = s->quantities;
  const asparse_verification *v = &r->verification;
  bool dry = r->options->dry_run; /* B and C are not there, but would be */
  printf("  memory     %sat most %s a rank (shards %s, CSR %s, B and C %s, halo %s)\n", dry ? "would be " : "",
         bytes_text(q[QUANTITY_PEAK_BYTES].max + (dry ? q[QUANTITY_OPERAND_BYTES].max : 0)).value,
         bytes_text(q[QUANTITY_SHARD_BYTES].max).value, bytes_text(q[QUANTITY_CSR_BYTES].max).value,
         bytes_text(q[QUANTITY_OPERAND_BYTES].max).value, bytes_text(q[QUANTITY_HALO_BYTES].max).value);
  if (r->stats.device)
    printf("             on the GPU: shards and workspace %s, B and C %s\n",
           bytes_text(q[QUANTITY_DEVICE_BYTES].max).value, bytes_text(q[QUANTITY_OPERAND_BYTES].max).value);
  if (dry) return;
  if (!r->options->verify) {
    printf("  verified   not checked (--verify=off)\n");
  } else {
    printf("  verified   %s: %" PRId64 " rows by A(Bx) = Cx, %" PRId64
           " elements one by one; largest error %.2g of its bound\n",
           v->passed ? "yes" : "NO", v->rows_checked, v->elements_checked, v->worst_bound_ratio);
    if (v->rows_unchecked > 0)
      printf("             %" PRId64 " rows hold Inf or NaN and were not all looked at\n", v->rows_unchecked);
  }
  if (r->options->output && v->passed + !r->options->verify > 0)
    printf("  C          written to %s\n", r->options->output);
}

static void print_report(const solve_record *record, const summary *s) {
  print_inputs(record);
  print_choices(record, s);
  print_times(record, s);
  print_outcome(record, s);
  fflush(stdout);
}

asparse_status solve_report(asparse_comm *comm, const solve_record *record) {
  asparse_status status = ASPARSE_OK;
  summary s = {0};
  solve_record whole = *record;
  int64_t notes[2] = {record->n_duplicates, record->n_inexact};
  TRY(summary_create(comm, record, &s));
  TRY(asparse_comm_sum(comm, notes, 2));
  whole.n_duplicates = notes[0];
  whole.n_inexact = notes[1];
  if (comm->rank == 0) {
    const solve_options *o = record->options;
    bool stdout_taken = o->json && o->json[0] == '-' && o->json[1] == '\0';
    if (!o->quiet && !stdout_taken) print_report(&whole, &s);
    if (o->json || o->csv) status = report_write(&whole, &s);
  }
  TRY(asparse_comm_agree(comm, status));
cleanup:
  summary_free(&s);
  return status;
}
