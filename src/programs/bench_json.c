#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "asparse_config.h"
#include "base/dtype.h"
#include "programs/bench_fields.h"
#include "programs/bench_report.h"
#include "programs/bench_summary.h"
#include "programs/json_record.h"

/* Raised when a key changes its name or meaning. */
enum { SCHEMA_VERSION = 1 };

static json_t *real_or_null(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *versions_json(const bench_record *r) {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(mpi, &length);
  mpi[strcspn(mpi, ",\n")] = '\0';
  return json_pack("{s:s, s:s, s:s, s:s, s:s}", "asparse", ASPARSE_VERSION, "compiler", ASPARSE_COMPILER, "build",
                   ASPARSE_BUILD_TYPE, "mpi", mpi, "peers", r->libraries);
}

static json_t *options_json(const bench_options *o) {
  json_t *cols = json_array();
  for (int i = 0; i < o->n_cols; i++) json_array_append_new(cols, json_integer(o->cols[i]));
  return json_pack("{s:o, s:I, s:f, s:b, s:b, s:b, s:b, s:I, s:I, s:I}", "cols", cols, "repeat", (json_int_t)o->repeat,
                   "seconds", o->case_seconds, "flush_l2", o->flush_l2, "no_graph", o->no_graph, "all", o->all,
                   "no_peers", o->no_peers, "min_nnz", (json_int_t)o->min_nnz, "max_bytes", (json_int_t)o->max_bytes,
                   "seed", (json_int_t)o->seed);
}

static json_t *group_json(const bench_group *g) {
  return json_pack("{s:I, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "n", (json_int_t)g->n, "density",
                   bench_band_names[g->band], "cases", g->count, "chosen_speedup", real_or_null(g->chosen_speedup),
                   "best_speedup", real_or_null(g->best_speedup), "below_share", real_or_null(g->below_share),
                   "ell_speedup", real_or_null(g->ell_speedup), "cublas_speedup", real_or_null(g->cublas_speedup),
                   "tflops", real_or_null(g->tflops), "fraction_of_least", real_or_null(g->fraction_of_least),
                   "choice_loss", real_or_null(g->choice_loss));
}

static asparse_status append_groups(const bench_record *r, json_t *groups) {
  for (int i = 0; i < r->options->n_cols; i++) {
    for (int band = 0; band < BENCH_BANDS; band++) {
      bench_group group;
      PASS(bench_group_of(r, r->options->cols[i], band, &group));
      if (group.count > 0) json_array_append_new(groups, group_json(&group));
    }
  }
  return ASPARSE_OK;
}

static json_t *rows_json(const bench_record *r) {
  json_t *rows = json_array();
  for (int i = 0; i < r->n_cases; i++) {
    for (int j = 0; j < r->cases[i].n_rows; j++)
      json_array_append_new(rows, bench_row_json(&r->cases[i], &r->cases[i].rows[j]));
  }
  return rows;
}

static json_t *failures_json(const bench_record *r) {
  json_t *failures = json_array();
  for (int i = 0; i < r->n_failures; i++)
    json_array_append_new(failures,
                          json_pack("{s:s, s:s, s:s}", "path", r->failures[i].path, "status",
                                    asparse_status_name(r->failures[i].status), "message", r->failures[i].message));
  return failures;
}

static asparse_status record_json(const bench_record *r, json_t **out) {
  char date[32] = "";
  time_t now = time(NULL);
  struct tm utc;
  json_t *groups = json_array();
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  asparse_status status = append_groups(r, groups);
  *out = json_pack("{s:i, s:s, s:s, s:s, s:o, s:s, s:s, s:i, s:o, s:i, s:i, s:i, s:i, s:b, s:o, s:o, s:o}", "schema",
                   SCHEMA_VERSION, "program", "asparse_bench", "command", r->command, "date", date, "versions",
                   versions_json(r), "backend", r->backend, "device", r->device, "threads", r->threads, "options",
                   options_json(r->options), "matrices", r->n_matrices, "skipped", r->n_skipped, "wrong", r->n_wrong,
                   "wrong_peers", r->n_wrong_peers, "interrupted", r->interrupted, "failures", failures_json(r),
                   "summary", groups, "results", rows_json(r));
  return status;
}

asparse_status bench_write_json(asparse_comm *comm, const bench_record *r) {
  json_t *record = NULL;
  const asparse_status status = record_json(r, &record);
  if (status == ASPARSE_OK) return json_record_write(comm, r->options->json, record);
  json_decref(record);
  return status;
}
