/* asparse_bench: every kernel on many matrices, checked and timed side by side. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "programs/bench_fields.h"
#include "programs/bench_matrix.h"
#include "programs/bench_plot.h"
#include "programs/bench_report.h"
#include "programs/bench_sources.h"
#include "programs/program.h"

static const char program[] = "asparse_bench";

/* Everything a run works with. */
typedef struct bench {
  asparse_comm *comm; /* one rank */
  const bench_options *options;
  bench_engine *engine;
  const bench_kernel *kernels[BENCH_MOST_KERNELS];
  int n_kernels;
  bench_sources sources;
  FILE *csv;
  bool prints; /* text goes to standard output */
  bench_record record;
} bench;

static asparse_status copy_text(const char *text, char **copy) {
  asparse_status status = ASPARSE_OK;
  const size_t length = strlen(text) + 1;
  ALLOC(*copy, (int64_t)length);
  memcpy(*copy, text, length);
cleanup:
  return status;
}

/* The run goes on with the next matrix. */
static asparse_status note_failure(bench *b, const char *path, asparse_status failure) {
  bench_failure *f = &b->record.failures[b->record.n_failures++];
  char message[512];
  if (!strstr(asparse_error_message(), path)) asparse_error_prefix("%s", path);
  snprintf(message, sizeof message, "%.*s", (int)sizeof message - 1, asparse_error_message());
  asparse_error_clear();
  fprintf(stderr, "%s: %s\n", program, message);
  f->status = failure;
  PASS(copy_text(path, &f->path));
  return copy_text(message, &f->message);
}

static asparse_status report_cases(bench *b, int first) {
  for (int i = first; i < b->record.n_cases; i++) {
    if (b->prints) bench_print_case(&b->record.cases[i]);
    if (b->csv) PASS(bench_csv_case(b->csv, &b->record.cases[i]));
  }
  return ASPARSE_OK;
}

static asparse_status time_matrix(bench *b, int source) {
  asparse_status status = ASPARSE_OK;
  const char *path = b->sources.paths[source];
  const bool is_file = source < b->sources.n_files;
  char name[256];
  bench_matrix matrix = {.name = is_file ? name : path};
  asparse_csr *slab = NULL;
  bench_source_name(path, name, sizeof name);
  TRY(is_file ? bench_matrix_read(b->comm, path, &slab) : bench_matrix_generate(b->options, path, &slab));
  TRY(bench_matrix_convert(b->options, b->engine, slab, &matrix.a));
  asparse_csr_destroy(&slab);
  if (matrix.a->row_ptr[matrix.a->m] < b->options->min_nnz) {
    b->record.n_skipped++;
  } else {
    TRY(bench_matrix_time(b->engine, b->options, &matrix, b->kernels, b->n_kernels, &b->record));
    b->record.n_matrices++;
  }
cleanup:
  asparse_csr_destroy(&slab);
  asparse_local_csr_destroy(&matrix.a);
  return status;
}

static asparse_status time_all(bench *b) {
  for (int i = 0; i < b->sources.count; i++) {
    const int first = b->record.n_cases;
    asparse_program_progress(b->comm, b->sources.paths[i]);
    const asparse_status status = time_matrix(b, i);
    asparse_program_progress(b->comm, NULL);
    PASS(report_cases(b, first));
    if (status == ASPARSE_ERR_DEVICE) return status;
    if (status != ASPARSE_OK) PASS(note_failure(b, b->sources.paths[i], status));
    b->record.interrupted = asparse_interrupt_came() && i + 1 < b->sources.count;
    if (b->record.interrupted) break;
  }
  return ASPARSE_OK;
}

static bool is_stdout(const char *path) { return path && strcmp(path, "-") == 0; }

static asparse_status check_outputs(const bench *b) {
  const bench_options *o = b->options;
  const char *const outputs[] = {is_stdout(o->json) ? NULL : o->json, o->csv, o->plot};
  for (int i = 0; i < 3; i++) {
    PASS(asparse_program_output_check(b->comm, NULL, outputs[i]));
    for (int j = 0; j < b->sources.n_files; j++)
      PASS(asparse_program_output_check(b->comm, b->sources.paths[j], outputs[i]));
  }
  return ASPARSE_OK;
}

static asparse_status begin(bench *b) {
  asparse_status status = ASPARSE_OK;
  TRY_THAT(b->comm->size == 1, ASPARSE_ERR_USAGE, "kernels are timed on one rank, not %d", b->comm->size);
  b->record.threads = asparse_program_threads(b->comm, b->options->threads);
  TRY(bench_sources_find(b->options, &b->sources));
  TRY(check_outputs(b));
  TRY(bench_engine_open(b->options, &b->engine));
  TRY(bench_kernels_select(b->engine, b->options, b->kernels, &b->n_kernels));
  ALLOC_ZERO(b->record.cases, (int64_t)b->sources.count * b->options->n_cols);
  ALLOC_ZERO(b->record.failures, b->sources.count);
  b->record.backend = b->engine->backend;
  b->record.device = b->engine->device;
  b->record.libraries = b->engine->libraries;
  b->prints = !is_stdout(b->options->json);
  if (b->options->csv) {
    b->csv = fopen(b->options->csv, "w");
    TRY_THAT(b->csv, ASPARSE_ERR_IO, "cannot write %s: %s", b->options->csv, strerror(errno));
    TRY(bench_csv_header(b->csv));
  }
cleanup:
  return status;
}

/* Reports also what was timed before a failure. */
static asparse_status report(bench *b) {
  if (b->prints) PASS(bench_print_summary(&b->record));
  if (b->options->json) PASS(bench_write_json(b->comm, &b->record));
  if (b->options->plot) PASS(bench_write_plot(b->comm, &b->record));
  return ASPARSE_OK;
}

/* The gravest thing that happened to any matrix. */
static asparse_status verdict(const bench_record *r) {
  asparse_status worst = r->n_wrong > 0 ? ASPARSE_ERR_VERIFY : r->interrupted ? ASPARSE_INTERRUPTED : ASPARSE_OK;
  for (int i = 0; i < r->n_failures; i++) {
    if (r->failures[i].status > worst) worst = r->failures[i].status;
  }
  if (worst == ASPARSE_OK) return ASPARSE_OK;
  if (worst == ASPARSE_INTERRUPTED)
    return ASPARSE_FAIL(worst, "ended early on SIGUSR1, after %d matrices", r->n_matrices + r->n_skipped);
  if (r->n_failures == 0) return ASPARSE_FAIL(worst, "results beyond their error bound: %d", r->n_wrong);
  return ASPARSE_FAIL(worst, "%d of %d matrices failed, the first: %s", r->n_failures,
                      r->n_failures + r->n_matrices + r->n_skipped, r->failures[0].message);
}

static asparse_status run(bench *b) {
  asparse_status status = ASPARSE_OK;
  TRY(begin(b));
  if (b->prints) bench_print_head(&b->record);
  status = time_all(b);
  const asparse_status reported = report(b);
  if (status == ASPARSE_OK) status = reported;
  if (status == ASPARSE_OK) status = verdict(&b->record);
cleanup:
  if (b->csv && fclose(b->csv) != 0 && status == ASPARSE_OK)
    status = ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot write %s: %s", b->options->csv, strerror(errno));
  bench_record_free(&b->record);
  bench_sources_free(&b->sources);
  bench_engine_close(&b->engine);
  return status;
}

int main(int argc, char **argv) {
  bench_options options;
  asparse_interrupt_listen();
  if (bench_options_parse(argc, argv, &options) != ASPARSE_OK) return asparse_program_usage_error(program);
  if (options.help) return bench_options_help(), 0;
  if (options.version) return asparse_program_version(program), 0;

  bench b = {.options = &options};
  b.record.options = &options;
  b.record.command = asparse_program_command(argc, argv);
  asparse_program_begin(&argc, &argv);
  asparse_status status = asparse_comm_create(&b.comm, MPI_COMM_WORLD);
  if (status == ASPARSE_OK) status = run(&b);
  free((char *)b.record.command);
  return asparse_program_end(&b.comm, status, program);
}
