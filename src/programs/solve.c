/* asparse_solve: a matrix, of a file or made in place, to a verified C = A·B. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asparse_config.h"
#include "base/interrupt.h"
#include "programs/generated.h"
#include "programs/program.h"
#include "programs/record.h"
#include "programs/solve_operands.h"

static const char program[] = "asparse_solve";

/* This rank's rows, from the file or made here. Collective. */
static asparse_status read_slab(asparse_comm *comm, const solve_options *options, asparse_csr **slab,
                                asparse_source *source) {
  if (options->generate) return generated_read(comm, &options->generator, slab, source);
  return asparse_csr_read_with(comm, options->matrix, &options->read, slab, source);
}

/* The matrix as this rank holds it: from a partition file as it is, else partitioned here. */
static asparse_status load_matrix(asparse_comm *comm, const solve_options *options, const operand_source *b,
                                  solve_record *record, asparse_matrix **a) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *slab = NULL;
  bool is_part_file = false;
  double start = asparse_seconds();
  asparse_program_progress(comm, options->generate ? "generating the matrix" : "reading the matrix");
  if (!options->generate) TRY(asparse_part_file_detect(comm, options->matrix, &is_part_file));
  TRY_THAT(!is_part_file || !options->read.transpose, ASPARSE_ERR_USAGE,
           "%s is partitioned already; --transpose goes with asparse_partition", options->matrix);
  if (is_part_file) {
    TRY(asparse_matrix_load(comm, options->matrix, a));
    record->seconds[PHASE_READ] = asparse_seconds() - start;
    TRY_THAT(options->plan.own_precision || options->plan.precision == (*a)->dtype, ASPARSE_ERR_USAGE,
             "%s holds shards in %s; leave out --precision, or partition again with --precision %s", options->matrix,
             asparse_dtype_name((*a)->dtype), asparse_dtype_name(options->plan.precision));
  } else {
    TRY(read_slab(comm, options, &slab, &record->source));
    record->seconds[PHASE_READ] = asparse_seconds() - start;
    record->n_duplicates = slab->n_duplicates;
    record->n_inexact = slab->n_inexact;
    TRY(asparse_interrupt_agree(comm));
    asparse_program_progress(comm, "partitioning");
    asparse_options wanted = options->plan;
    if (b->path && b->dtype == ASPARSE_FP64 && wanted.own_precision) { /* B's digits are not dropped unasked */
      wanted.own_precision = false;
      wanted.precision = ASPARSE_FP64;
    }
    TRY(asparse_matrix_create(comm, &slab, &wanted, b->n, a));
  }
  record->seconds[PHASE_PARTITION] = (*a)->partition_seconds;
  record->seconds[PHASE_MOVE] = (*a)->move_seconds;
  record->saved_seconds = (*a)->saved_seconds;
cleanup:
  asparse_csr_destroy(&slab);
  return status;
}

static void describe_matrix(const asparse_matrix *a, int64_t n, solve_record *record) {
  record->m = a->m;
  record->k = a->k;
  record->n = n;
  record->nnz = a->nnz;
  record->dtype = a->dtype;
  record->matrix_hash = a->hash;
  record->imbalance = a->imbalance;
  record->partition = a->method;
  record->planning = a->planning;
}

/* Seconds of a timed repeat on a GPU, at least: what is shorter would be the launch's and the clock's. */
static const double LEAST_SECONDS = 2e-3;
enum { MOST_LAUNCHES = 100 };

/* launches multiplications, one after the other, and the seconds of one. Local. */
static asparse_status run(asparse_plan *plan, int launches, const asparse_dense *b, asparse_dense *c, double *seconds) {
  const double start = asparse_seconds();
  for (int i = 0; i < launches; i++) PASS(asparse_plan_execute(plan, b, c));
  PASS(asparse_plan_wait(plan));
  *seconds = (asparse_seconds() - start) / launches;
  return ASPARSE_OK;
}

/* On one GPU a repeat is as many multiplications as take a while; ranks that exchange rows wait for each other. */
static int launches_for(const asparse_comm *comm, const asparse_stats *stats) {
  if (!stats->device || comm->size > 1 || !(stats->total_seconds > 0)) return 1;
  const double launches = LEAST_SECONDS / stats->total_seconds;
  return launches < 1 ? 1 : launches < MOST_LAUNCHES ? (int)launches : MOST_LAUNCHES;
}

/* The phases within a multiplication are those from PHASE_PACK to PHASE_LAYOUT. */
enum { N_PARTS = PHASE_LAYOUT - PHASE_PACK + 1 };

static void note_parts(const asparse_stats *stats, double parts[N_PARTS]) {
  parts[0] = stats->pack_seconds;
  parts[PHASE_COMMUNICATION - PHASE_PACK] = stats->communication_seconds;
  parts[PHASE_DIAG - PHASE_PACK] = stats->diag_seconds;
  parts[PHASE_EXPOSED - PHASE_PACK] = stats->exposed_seconds;
  parts[PHASE_OFFD - PHASE_PACK] = stats->offd_seconds;
  parts[PHASE_LAYOUT - PHASE_PACK] = stats->layout_seconds;
}

/* Sorts the repeats; the phases are those of the one that is the median. seconds, parts: as they were run. */
static void take_median(solve_record *record, const double *seconds, double (*parts)[N_PARTS]) {
  const int n = record->n_repeats;
  if (n == 0) return;
  asparse_program_sort(record->repeats, n);
  const double median = record->repeats[n / 2];
  int i = 0;
  while (i < n - 1 && seconds[i] != median) i++;
  memcpy(&record->seconds[PHASE_PACK], parts[i], sizeof parts[i]);
  record->seconds[PHASE_MULTIPLY] = median;
}

/* Every repeat starts together and lasts as long as its slowest rank; where ranks take turns on cores, until the last
 * of them has finished. SIGUSR1 to any rank ends them after the multiplication at hand. Collective. */
static asparse_status multiply(asparse_comm *comm, asparse_plan *plan, const solve_options *options,
                               const asparse_dense *b, asparse_dense *c, solve_record *record) {
  asparse_status status = ASPARSE_OK;
  double(*parts)[N_PARTS] = NULL, *each = NULL;
  const bool take_turns = !record->stats.device && asparse_comm_core_share(comm, record->threads) < 1;
  parts = asparse_malloc(options->repeat, sizeof *parts, "phases of repeats");
  each = asparse_malloc(options->repeat, sizeof *each, "repeats");
  TRY(asparse_comm_agree(comm, parts && each ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  asparse_program_progress(comm, "multiplying");
  for (int i = -options->warmup; i < options->repeat && !record->interrupted; i++) {
    double seconds = 0;
    record->launches = i < 0 ? 1 : launches_for(comm, &record->stats);
    TRY(asparse_comm_barrier(comm));
    const double start = asparse_seconds();
    status = run(plan, record->launches, b, c, &seconds);
    if (i + 1 < options->repeat) status = asparse_interrupt_check(comm, status);
    status = asparse_comm_agree(comm, status);
    record->interrupted = status == ASPARSE_INTERRUPTED;
    if (!record->interrupted) TRY(status);
    const double until_all = asparse_seconds() - start;
    asparse_plan_stats(plan, &record->stats);
    if (i < 0) continue;
    each[record->n_repeats] = take_turns                                ? until_all
                              : record->stats.device && comm->size == 1 ? seconds
                                                                        : record->stats.total_seconds;
    note_parts(&record->stats, parts[record->n_repeats++]);
  }
  if (record->interrupted) asparse_error_clear();
  status = ASPARSE_OK;
  TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, each, record->n_repeats, MPI_DOUBLE, MPI_MAX, comm->mpi));
  memcpy(record->repeats, each, (size_t)record->n_repeats * sizeof *each);
  take_median(record, each, parts);
cleanup:
  asparse_free(parts);
  asparse_free(each);
  return status;
}

/* Copies B to the GPU and C back around the timed multiplications: a solver's operands stay there. Collective. */
static asparse_status multiply_on_engine(asparse_comm *comm, asparse_plan *plan, const solve_options *options,
                                         const asparse_dense *b, asparse_dense *c, solve_record *record) {
  asparse_status status = ASPARSE_OK;
  asparse_dense *there_b = NULL, *there_c = NULL;
  TRY(asparse_comm_agree(comm, asparse_plan_engine_operands(plan, &there_b, &there_c)));
  double start = asparse_seconds();
  TRY(asparse_comm_agree(comm, asparse_plan_copy(plan, b, there_b)));
  record->seconds[PHASE_COPY] = asparse_seconds() - start;
  TRY(multiply(comm, plan, options, there_b, there_c, record));
  start = asparse_seconds();
  TRY(asparse_comm_agree(comm, asparse_plan_copy(plan, there_c, c)));
  record->seconds[PHASE_COPY] += asparse_seconds() - start;
cleanup:
  asparse_dense_destroy(&there_b);
  asparse_dense_destroy(&there_c);
  return status;
}

/* C to rank 0 and to its file, as asked. Collective. */
static asparse_status deliver(asparse_comm *comm, const asparse_plan *plan, const solve_options *options,
                              const asparse_dense *c, solve_record *record) {
  asparse_status status = ASPARSE_OK;
  asparse_dense *whole = NULL;
  double start = asparse_seconds();
  if (options->gather) {
    asparse_program_progress(comm, "gathering C");
    TRY(asparse_plan_gather_c(plan, c, &whole));
    record->seconds[PHASE_GATHER] = asparse_seconds() - start;
  }
  if (options->output) {
    start = asparse_seconds();
    asparse_program_progress(comm, "writing C");
    TRY(operand_write(comm, options, record->command, plan, c, whole));
    record->seconds[PHASE_WRITE] = asparse_seconds() - start;
  }
cleanup:
  asparse_dense_destroy(&whole);
  return status;
}

/* B, C = A·B, whether it is right, and C to where it was asked for. ERR_VERIFY in *verified alone. Collective. */
static asparse_status product(asparse_comm *comm, asparse_plan *plan, const solve_options *options,
                              const operand_source *source, solve_record *record, asparse_status *verified) {
  asparse_status status = ASPARSE_OK;
  asparse_dense *b = NULL, *c = NULL;
  double start = asparse_seconds();
  TRY(asparse_comm_agree(comm, asparse_plan_operands(plan, &b, &c)));
  TRY(operand_fill(comm, options, source, plan, b));
  record->seconds[PHASE_B] = asparse_seconds() - start;
  TRY(asparse_interrupt_agree(comm));
  if (record->stats.device && !plan->b_layout) TRY(multiply_on_engine(comm, plan, options, b, c, record));
  else TRY(multiply(comm, plan, options, b, c, record));
  if (options->verify) {
    asparse_program_progress(comm, "verifying");
    start = asparse_seconds();
    *verified = asparse_verify(plan, b, c, options->seed, &record->verification);
    if (*verified != ASPARSE_ERR_VERIFY) TRY(*verified);
    record->seconds[PHASE_VERIFY] = asparse_seconds() - start;
  }
  if (*verified == ASPARSE_OK) TRY(deliver(comm, plan, options, c, record));
cleanup:
  asparse_dense_destroy(&b);
  asparse_dense_destroy(&c);
  return status;
}

static asparse_status solve(asparse_comm *comm, const solve_options *options, solve_record *record) {
  asparse_status status = ASPARSE_OK, verified = ASPARSE_OK;
  asparse_matrix *a = NULL;
  asparse_plan *plan = NULL;
  operand_source source = {0};

  record->threads = asparse_program_threads(comm, options->threads);
  record->repeats = asparse_calloc(options->repeat, sizeof *record->repeats, "repeats");
  TRY(asparse_comm_agree(comm, record->repeats ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_program_output_check(comm, options->generate ? NULL : options->matrix, options->output));
  TRY(operand_find(comm, options, &source));
  TRY(load_matrix(comm, options, &source, record, &a));
  TRY(asparse_interrupt_agree(comm));
  TRY(operand_check(&source, a));
  describe_matrix(a, source.n, record);
  record->b_source = source.path ? source.path : "random";
  record->b_rounded = options->plan.own_precision && source.path && source.dtype < a->dtype;

  asparse_program_progress(comm, "building shards");
  TRY(asparse_plan_create(a, &options->plan, source.n, &plan));
  TRY(asparse_interrupt_agree(comm));
  asparse_plan_stats(plan, &record->stats);
  record->seconds[PHASE_BUILD] = record->stats.build_seconds;
  record->b_extent = asparse_plan_extent_of_b(plan, asparse_plan_placement(plan));
  record->c_extent = asparse_plan_extent_of_c(plan, asparse_plan_placement(plan));
  record->result = options->plan.bf16_result ? ASPARSE_BF16 : asparse_dtype_result(a->dtype);
  if (!options->dry_run) TRY(product(comm, plan, options, &source, record, &verified));
  asparse_program_progress(comm, NULL);
  TRY(solve_report(comm, record));
  TRY(verified);
  TRY_THAT(!record->interrupted, ASPARSE_INTERRUPTED, "ended early on SIGUSR1, after %d of %d timed multiplications",
           record->n_repeats, options->repeat);
cleanup:
  asparse_program_progress(comm, NULL);
  operand_source_free(&source);
  asparse_plan_destroy(&plan);
  asparse_matrix_destroy(&a);
  FREE(record->repeats);
  return status;
}

int main(int argc, char **argv) {
  solve_options options;
  asparse_comm *comm = NULL;
  asparse_interrupt_listen();
  if (solve_options_parse(argc, argv, &options) != ASPARSE_OK) return asparse_program_usage_error(program);
  if (options.help) return solve_options_help(), 0;
  if (options.version) return asparse_program_version(program), 0;

  solve_record record = {.options = &options, .command = asparse_program_command(argc, argv)};
  asparse_program_begin(&argc, &argv);
  asparse_status status = asparse_comm_create(&comm, MPI_COMM_WORLD);
  if (status == ASPARSE_OK) asparse_comm_timeout(comm, options.timeout);
  if (status == ASPARSE_OK) status = solve(comm, &options, &record);
  free((char *)record.command);
  return asparse_program_end(&comm, status, program);
}
