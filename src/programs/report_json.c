#include "programs/report_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "asparse_config.h"
#include "programs/machine.h"
#include "programs/option_values.h"

/* Raised when a key changes its name or meaning. */
enum { SCHEMA_VERSION = 1 };

static json_t *spread_json(const spread *s) {
  return json_pack("{s:f, s:f, s:f, s:f, s:f}", "min", s->min, "median", s->median, "p95", s->p95, "max", s->max,
                   "mean", s->mean);
}

static json_t *versions_json(void) {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(mpi, &length);
  mpi[strcspn(mpi, ",\n")] = '\0';
  return json_pack("{s:s, s:s, s:s, s:s, s:b}", "asparse", ASPARSE_VERSION, "compiler", ASPARSE_COMPILER, "build",
                   ASPARSE_BUILD_TYPE, "mpi", mpi, "hdf5_parallel", ASPARSE_HDF5_PARALLEL);
}

static json_t *matrix_json(const solve_record *r) {
  char hash[24], description[ASPARSE_GENERATOR_TEXT] = "";
  if (r->options->generate) asparse_generator_text(&r->options->generator, description);
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->matrix_hash);
  return json_pack("{s:s, s:s?, s:I, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:s}", "path", r->options->matrix, "generated",
                   r->options->generate ? description : NULL, "rows", (json_int_t)r->m, "columns", (json_int_t)r->k,
                   "nnz", (json_int_t)r->nnz, "file_format",
                   r->source.format[0] ? r->source.format : "asparse partition", "value_type", r->source.value_type,
                   "structure", r->source.structure, "duplicates_summed", (json_int_t)r->n_duplicates,
                   "integers_rounded", (json_int_t)r->n_inexact, "hash", hash);
}

static json_t *choices_json(const solve_record *r, const summary *s) {
  const asparse_stats *stats = &r->stats;
  return json_pack(
      "{s:s, s:s, s:s, s:i, s:s, s:i, s:s, s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:s?, s:s, s:s, s:s, s:f, s:b, s:b}",
      "result", asparse_dtype_name(r->result), "precision", asparse_dtype_name(r->dtype), "format",
      asparse_format_name(stats->format), "unit", stats->unit, "halo_format", asparse_format_name(stats->offd_format),
      "halo_unit", stats->offd_unit, "partition", r->partition == ASPARSE_PARTITION_METIS ? "metis" : "contiguous",
      "exchange", option_name(option_exchanges, (int)summary_exchange(stats)), "grid_rows", stats->grid_rows,
      "grid_columns", stats->grid_columns, "chunks", stats->chunks, "column_exchange",
      option_name(option_exchanges, (int)stats->exchange), "placement",
      option_name(option_placements, (int)r->options->plan.operands), "transport", stats->transport, "backend",
      stats->backend, "device", stats->device, "kernel", stats->kernel, "halo_kernel", stats->offd_kernel, "isa",
      asparse_host_isa(), "predicted_seconds", s->quantities[QUANTITY_PREDICTED].max, "ready_shards",
      r->stats.ready_shards, "reproducible", r->options->plan.reproducible);
}

static json_t *planning_json(const asparse_planning *planning) {
  json_t *ways = json_array();
  for (int i = 0; i < planning->n_ways; i++) {
    const asparse_planned_way *way = &planning->ways[i];
    json_array_append_new(ways, json_pack("{s:s, s:i, s:i, s:i, s:I, s:f, s:b}", "exchange",
                                          option_name(option_exchanges, (int)way->exchange), "grid_rows",
                                          way->grid_rows, "grid_columns", way->grid_columns, "chunks", way->chunks,
                                          "bytes_max", (json_int_t)way->bytes_max, "predicted_seconds",
                                          way->predicted_seconds, "chosen", i == planning->best));
  }
  return json_pack("{s:o, s:f, s:f, s:b, s:f}", "ways", ways, "link_latency_seconds", planning->link.latency_seconds,
                   "link_bytes_per_second", planning->link.bytes_per_second, "link_remembered",
                   planning->link_remembered, "seconds", planning->seconds);
}

static json_t *multiply_json(const solve_record *r, const summary *s) {
  json_t *repeats = json_array();
  for (int i = 0; i < r->n_repeats; i++) json_array_append_new(repeats, json_real(r->repeats[i]));
  return json_pack("{s:f, s:f, s:f, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:o}", "median_seconds", s->median_seconds,
                   "min_seconds", s->min_seconds, "max_seconds", s->max_seconds, "repeat", r->options->repeat,
                   "repeats_done", r->n_repeats, "launches", r->launches, "warmup", r->options->warmup, "gflops",
                   s->gflops, "least_seconds", s->least_seconds, "fraction_of_least",
                   s->median_seconds > 0 ? s->least_seconds / s->median_seconds : 0.0, "predicted_seconds",
                   s->quantities[QUANTITY_PREDICTED_EXECUTE].max, "sorted_seconds", repeats);
}

static json_t *verification_json(const solve_record *r) {
  const asparse_verification *v = &r->verification;
  if (!r->options->verify || r->options->dry_run) return json_pack("{s:b}", "checked", 0);
  return json_pack("{s:b, s:b, s:I, s:I, s:I, s:f, s:f, s:f, s:I}", "checked", 1, "passed", v->passed, "rows_checked",
                   (json_int_t)v->rows_checked, "elements_checked", (json_int_t)v->elements_checked, "rows_unchecked",
                   (json_int_t)v->rows_unchecked, "error_over_bound", v->worst_bound_ratio, "error_over_detection",
                   v->worst_detect_ratio, "max_relative_error", v->max_relative_error, "failed_row",
                   (json_int_t)v->failed_row);
}

/* Integers stay integers: a spread of bytes or rows is exact below 2^53. */
static json_t *quantities_json(const summary *s) {
  json_t *object = json_object();
  for (int i = 0; i < N_QUANTITIES; i++) {
    const spread *q = &s->quantities[i];
    json_t *entry =
        i == QUANTITY_PREDICTED || i == QUANTITY_PREDICTED_EXECUTE || i == QUANTITY_DEVICE_LEAST
            ? spread_json(q)
            : json_pack("{s:I, s:I, s:I, s:I, s:I}", "min", (json_int_t)q->min, "median", (json_int_t)q->median, "p95",
                        (json_int_t)q->p95, "max", (json_int_t)q->max, "sum", (json_int_t)q->sum);
    json_object_set_new(object, quantity_names[i], entry);
  }
  return object;
}

static json_t *phases_json(const summary *s) {
  json_t *object = json_object();
  for (int i = 0; i < N_PHASES; i++) json_object_set_new(object, phase_names[i], spread_json(&s->seconds[i]));
  return object;
}

/* Where the ranks run: each one's host, cores and GPU. */
static json_t *machine_json(const summary *s) {
  char cpu[128];
  json_t *binding = json_array();
  for (int r = 0; r < s->ranks; r++) {
    const rank_place *place = &s->places[r];
    json_array_append_new(binding, json_pack("{s:s, s:s, s:s?}", "host", place->host, "cores", place->cores, "device",
                                             place->device[0] ? place->device : NULL));
  }
  machine_cpu(cpu, sizeof cpu);
  return json_pack("{s:s, s:i, s:f, s:o}", "cpu", cpu, "hosts", s->n_hosts, "core_share", s->core_share, "binding",
                   binding);
}

static json_t *report_json(const solve_record *r, const summary *s) {
  char date[32] = "";
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  json_t *report = json_pack("{s:i, s:s, s:s, s:s, s:i, s:i, s:s, s:I, s:b, s:b}", "schema", SCHEMA_VERSION, "program",
                             "asparse_solve", "command", r->command, "date", date, "ranks", s->ranks, "threads",
                             r->threads, "hosts", s->hosts, "seed", (json_int_t)r->options->seed, "dry_run",
                             r->options->dry_run, "interrupted", r->interrupted);
  json_t *parts = json_pack(
      "{s:o, s:o, s:o, s:{s:s, s:I, s:I}, s:o, s:o, s:{s:f, s:f, s:f}, s:o, s:o, s:o, s:f, s:o}", "versions",
      versions_json(), "machine", machine_json(s), "matrix", matrix_json(r), "b", "source", r->b_source, "rows",
      (json_int_t)r->k, "columns", (json_int_t)r->n, "choices", choices_json(r, s), "planning",
      planning_json(&r->planning), "balance", "cost_max_over_mean", r->imbalance, "fill_ratio", s->fill_ratio,
      "replicate_bytes", s->replicate_bytes, "multiply", multiply_json(r, s), "phases", phases_json(s), "per_rank",
      quantities_json(s), "saved_seconds", r->saved_seconds, "verification", verification_json(r));
  json_object_update(report, parts);
  json_decref(parts);
  return report;
}

static asparse_status write_json(const json_t *report, const char *path) {
  if (strcmp(path, "-") == 0) {
    if (json_dumpf(report, stdout, JSON_INDENT(2)) != 0 || putchar('\n') == EOF || fflush(stdout) != 0)
      return ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot write the JSON report to standard output: %s", strerror(errno));
    return ASPARSE_OK;
  }
  char temporary[4096];
  if (snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof temporary)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "the name of the JSON report is too long");
  if (json_dump_file(report, temporary, JSON_INDENT(2)) != 0 || rename(temporary, path) != 0) {
    asparse_status status = ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    unlink(temporary);
    return status;
  }
  return ASPARSE_OK;
}

/* ---- CSV: one column for each leaf of the JSON, named by its path; arrays are left out ------------ */

static void write_field(FILE *out, const char *text) {
  bool quote = strpbrk(text, ",\"\n") != NULL;
  if (quote) fputc('"', out);
  for (const char *c = text; *c; c++) {
    if (*c == '"') fputc('"', out);
    fputc(*c, out);
  }
  if (quote) fputc('"', out);
}

static void write_leaf(FILE *out, const json_t *value) {
  if (json_is_string(value)) {
    write_field(out, json_string_value(value));
  } else {
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    if (text) write_field(out, text);
    free(text);
  }
}

static void write_leaves(FILE *out, json_t *object, const char *prefix, bool names, bool *first) {
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    char name[256];
    snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] ? "." : "", key);
    if (json_is_array(value)) continue;
    if (json_is_object(value)) {
      write_leaves(out, value, name, names, first);
      continue;
    }
    if (!*first) fputc(',', out);
    *first = false;
    if (names) write_field(out, name);
    else write_leaf(out, value);
  }
}

static char *csv_line(json_t *report, bool names) {
  char *line = NULL;
  size_t length = 0;
  bool first = true;
  FILE *out = open_memstream(&line, &length);
  if (!out) return NULL;
  write_leaves(out, report, "", names, &first);
  fputc('\n', out);
  return fclose(out) == 0 ? line : (free(line), NULL);
}

/* A file with other columns is left alone. */
static asparse_status append_csv(json_t *report, const char *path) {
  asparse_status status = ASPARSE_OK;
  char *names = csv_line(report, true), *row = csv_line(report, false), *found = NULL;
  size_t room = 0;
  FILE *file = NULL;
  TRY_THAT(names && row, ASPARSE_ERR_MEMORY, "no memory for the CSV row");
  file = fopen(path, "a+");
  TRY_THAT(file, ASPARSE_ERR_IO, "cannot append to %s: %s", path, strerror(errno));
  rewind(file);
  bool empty = getline(&found, &room, file) < 0;
  TRY_THAT(empty || strcmp(found, names) == 0, ASPARSE_ERR_USAGE,
           "%s has other columns than this program writes; give --csv a new name", path);
  bool written = (!empty || fputs(names, file) >= 0) && fputs(row, file) >= 0 && fflush(file) == 0;
  TRY_THAT(written, ASPARSE_ERR_IO, "cannot append to %s: %s", path, strerror(errno));
cleanup:
  if (file) fclose(file);
  free(found);
  free(names);
  free(row);
  return status;
}

asparse_status report_write(const solve_record *record, const summary *s) {
  asparse_status status = ASPARSE_OK;
  json_t *report = report_json(record, s);
  TRY_THAT(report, ASPARSE_ERR_RUNTIME, "the report could not be put together");
  if (record->options->json) TRY(write_json(report, record->options->json));
  if (record->options->csv) TRY(append_csv(report, record->options->csv));
cleanup:
  json_decref(report);
  return status;
}
