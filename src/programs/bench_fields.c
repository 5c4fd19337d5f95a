#include "programs/bench_fields.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/shard.h"

static void put_number(json_t *o, const char *name, double value) {
  json_object_set_new(o, name, isfinite(value) ? json_real(value) : json_null());
}
static void put_integer(json_t *o, const char *name, int64_t value) {
  json_object_set_new(o, name, json_integer(value));
}
static void put_text(json_t *o, const char *name, const char *value) {
  json_object_set_new(o, name, json_string(value));
}

static void put_time(json_t *o, const char *name, double seconds, bool timed) {
  put_number(o, name, timed ? 1e3 * seconds : NAN);
}

static void put_windows(json_t *o, const char *kind, int height, const asparse_window_counts *counts) {
  char name[48];
  snprintf(name, sizeof name, "%s_columns_%d", kind, height);
  put_integer(o, name, counts->columns);
  snprintf(name, sizeof name, "%s_padded_%d", kind, height);
  put_integer(o, name, counts->padded);
  snprintf(name, sizeof name, "%s_widest_%d", kind, height);
  put_integer(o, name, counts->widest);
}

/* What the cost models count. */
static void put_profile(json_t *o, const asparse_profile *p) {
  static const int heights[] = {8, 16, 32, 64}, sizes[] = {16, 32, 64};
  char name[32];
  for (int i = 0; i < 4; i++) put_windows(o, "window", heights[i], &p->windows[i]);
  for (int i = 0; i < 4; i++) put_windows(o, "clustered", heights[i], &p->clustered[i]);
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "blocks_%d", sizes[i]);
    put_integer(o, name, p->blocks[i]);
  }
  put_integer(o, "longest_row", p->longest_row);
}

static const char *outcome_name(bench_outcome outcome) {
  static const char *const names[] = {"timed", "unsupported", "too large", "wrong"};
  return names[outcome];
}

static void put_ratios(json_t *o, const bench_case *c, const bench_row *row, bool timed) {
  const bench_row *cusparse = bench_row_at(c, c->best_cusparse), *csr = bench_row_at(c, c->csr);
  json_object_set_new(o, "best_cusparse", cusparse ? json_string(cusparse->kernel->name) : json_null());
  json_object_set_new(o, "best_cusparse_unit", cusparse ? json_integer(cusparse->kernel->unit) : json_null());
  put_number(o, "speedup_best_cusparse", timed && cusparse ? cusparse->seconds / row->seconds : NAN);
  put_number(o, "speedup_csr", timed && csr ? csr->seconds / row->seconds : NAN);
  put_number(o, "fraction_of_least", timed ? c->least_seconds / row->seconds : NAN);
}

json_t *bench_row_json(const bench_case *c, const bench_row *row) {
  const bool timed = row->outcome == BENCH_TIMED;
  json_t *o = json_object();
  put_text(o, "matrix", c->matrix);
  put_integer(o, "rows", c->profile.m);
  put_integer(o, "cols", c->profile.k);
  put_integer(o, "nnz", c->profile.nnz);
  put_number(o, "density", bench_density(c));
  put_integer(o, "n", c->profile.n);
  put_text(o, "precision", asparse_dtype_name(c->profile.dtype));
  put_text(o, "result", asparse_dtype_name(c->c_dtype));
  put_text(o, "kernel", row->kernel->name);
  put_integer(o, "unit", row->kernel->unit);
  put_text(o, "format", asparse_format_name(row->kernel->format));
  put_integer(o, "peer", row->kernel->peer);
  put_integer(o, "chosen", row->chosen);
  put_text(o, "outcome", outcome_name(row->outcome));
  put_text(o, "note", row->note);
  put_time(o, "time_ms", row->seconds, timed);
  put_time(o, "time_p5_ms", row->p5, timed);
  put_time(o, "time_p95_ms", row->p95, timed);
  put_integer(o, "samples", timed ? row->samples : 0);
  put_integer(o, "launches", timed ? row->launches : 0);
  put_text(o, "method", c->method);
  put_number(o, "tflops", timed ? bench_tflops(c, row->seconds) : NAN);
  put_ratios(o, c, row, timed);
  put_time(o, "least_ms", c->least_seconds, true);
  put_time(o, "predicted_ms", row->predicted, true);
  put_time(o, "plan_ms", row->plan_seconds, timed);
  put_time(o, "preprocess_ms", row->preprocess_seconds, timed);
  put_number(o, "max_error", timed || row->outcome == BENCH_WRONG ? row->max_error : NAN);
  put_profile(o, &c->profile);
  return o;
}

static void write_text(FILE *file, const char *text) {
  const bool quote = strpbrk(text, ",\"\n") != NULL;
  if (quote) fputc('"', file);
  for (const char *at = text; *at; at++) {
    if (*at == '"') fputc('"', file);
    fputc(*at, file);
  }
  if (quote) fputc('"', file);
}

static void write_value(FILE *file, const json_t *value) {
  if (json_is_null(value)) return;
  if (json_is_integer(value)) fprintf(file, "%lld", (long long)json_integer_value(value));
  else if (json_is_real(value)) fprintf(file, "%.7g", json_real_value(value));
  else write_text(file, json_string_value(value));
}

/* Writes the object's names or values as one line. */
static void write_line(FILE *file, json_t *object, bool names) {
  const char *name, *separator = "";
  json_t *value;
  json_object_foreach(object, name, value) {
    fputs(separator, file);
    if (names) write_text(file, name);
    else write_value(file, value);
    separator = ",";
  }
  fputc('\n', file);
}

static asparse_status finish(FILE *file) {
  if (fflush(file) == 0 && !ferror(file)) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot write the CSV file: %s", strerror(errno));
}

asparse_status bench_csv_header(FILE *file) {
  static const bench_kernel kernel = {.name = "", .unit = 1};
  bench_row row = {.kernel = &kernel};
  bench_case c = {.matrix = (char[]){""}, .method = "", .rows = &row, .n_rows = 1};
  c.chosen = c.best = c.csr = c.best_cusparse = c.best_ell = c.cublas = -1;
  json_t *object = bench_row_json(&c, &row);
  write_line(file, object, true);
  json_decref(object);
  return finish(file);
}

asparse_status bench_csv_case(FILE *file, const bench_case *c) {
  for (int i = 0; i < c->n_rows; i++) {
    json_t *object = bench_row_json(c, &c->rows[i]);
    write_line(file, object, false);
    json_decref(object);
  }
  return finish(file);
}
