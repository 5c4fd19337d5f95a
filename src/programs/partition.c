/* asparse_partition: cuts a matrix into parts and saves them with their shards. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "asparse_config.h"
#include "plan/choice.h"
#include "plan/plan.h"
#include "programs/program.h"
#include "programs/solve_options.h"

static const char program[] = "asparse_partition";

typedef struct cutting {
  const partition_options *options;
  asparse_csr *slab;
  asparse_partition *partition;
  asparse_part_header header;
  asparse_kernel_config diag, offd; /* chosen on the first round of parts, used for all */
  asparse_part_writer *writer;
} cutting;

static asparse_status build_shard(asparse_local_csr *a, const asparse_kernel_config *config, asparse_shard **shard) {
  if (config->format == ASPARSE_FORMAT_CSR) return ASPARSE_OK;
  return asparse_shard_build(a, config->format, config->unit, shard);
}

/* This rank's part of one round, with its shards. The first round also makes the choices. Collective. */
static asparse_status cut_part(asparse_comm *comm, cutting *cut, int part, bool first, asparse_part *out) {
  asparse_status status = ASPARSE_OK;
  const partition_options *o = cut->options;
  TRY(asparse_matrix_part(comm, cut->slab, cut->partition, part, false, out));
  if (first) {
    const asparse_choice_problem diag = {.a = out->diag, .n = o->cols, .space = ASPARSE_SPACE_HOST};
    const asparse_choice_problem offd = {.a = out->offd, .n = o->cols, .accumulate = true, .space = ASPARSE_SPACE_HOST};
    TRY(asparse_choice_make(comm, &diag, &o->plan, NULL, &cut->diag));
    TRY(asparse_choice_make(comm, &offd, &o->plan, NULL, &cut->offd));
  }
  if (part >= 0) {
    status = build_shard(out->diag, &cut->diag, &out->diag_shard);
    if (status == ASPARSE_OK) status = build_shard(out->offd, &cut->offd, &out->offd_shard);
  }
  TRY(asparse_comm_agree(comm, status));
cleanup:
  if (status != ASPARSE_OK) asparse_part_free(out);
  return status;
}

/* What `asparse_solve` at parts ranks will not have to do: one partitioning, one round. */
static asparse_status fill_header(asparse_comm *comm, cutting *cut, double seconds) {
  asparse_status status = ASPARSE_OK;
  asparse_part_header *header = &cut->header;
  const asparse_partition *p = cut->partition;
  header->parts = p->parts;
  header->m = p->m;
  header->k = p->k;
  header->nnz = cut->slab->nnz;
  header->dtype = cut->slab->dtype;
  header->method = p->method;
  header->diag = (asparse_shard_kind){cut->diag.format, cut->diag.unit};
  header->offd = (asparse_shard_kind){cut->offd.format, cut->offd.unit};
  header->row_starts = p->row_starts;
  header->col_starts = p->col_starts;
  header->imbalance = p->total_cost > 0 ? (double)p->largest_cost * p->parts / (double)p->total_cost : 1.0;
  header->build_seconds = seconds;
  TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &header->build_seconds, 1, MPI_DOUBLE, MPI_MAX, comm->mpi));
cleanup:
  return status;
}

/* Parts in rounds of comm->size, so that no rank holds more than one. Collective. */
static asparse_status save_parts(asparse_comm *comm, cutting *cut, double started, const char *command) {
  asparse_status status = ASPARSE_OK;
  asparse_part part = {0};
  asparse_provenance provenance = {"asparse_partition " ASPARSE_VERSION, cut->options->matrix, command,
                                   cut->header.matrix_hash};
  for (int base = 0; base < cut->options->parts; base += comm->size) {
    int own = base + comm->rank < cut->options->parts ? base + comm->rank : -1;
    TRY(cut_part(comm, cut, own, base == 0, &part));
    if (base == 0) {
      TRY(fill_header(comm, cut, asparse_seconds() - started));
      TRY(asparse_part_writer_begin(comm, cut->options->output, &cut->header, &provenance, &cut->writer));
    }
    TRY(asparse_part_writer_add(cut->writer, own, &part));
    asparse_part_free(&part);
  }
cleanup:
  asparse_part_free(&part);
  if (cut->writer) {
    asparse_status ended = asparse_part_writer_end(&cut->writer, status);
    if (status == ASPARSE_OK) status = ended;
  }
  return status;
}

static asparse_status print_report(asparse_comm *comm, const cutting *cut, double read_seconds, double all_seconds) {
  asparse_status status = ASPARSE_OK;
  asparse_partition_quality quality;
  TRY(asparse_partition_evaluate(comm, cut->slab, cut->partition, &quality));
  if (comm->rank == 0 && !cut->options->quiet) {
    const asparse_part_header *h = &cut->header;
    printf("asparse_partition %s: %s into %d parts\n", ASPARSE_VERSION, cut->options->matrix, h->parts);
    printf("  A          %" PRId64 " × %" PRId64 ", %" PRId64 " entries, %s\n", h->m, h->k, h->nnz,
           asparse_dtype_name(h->dtype));
    printf("  partition  %s; largest / mean: cost %.2f, entries %.2f\n",
           h->method == ASPARSE_PARTITION_METIS ? "metis" : "contiguous", h->imbalance, quality.nnz_imbalance);
    printf("  exchange   %" PRId64 " halo rows of B over all parts, at most %" PRId64 " for one\n", quality.halo_total,
           quality.halo_max);
    printf("  shards     %s", asparse_format_name(cut->diag.format));
    if (cut->diag.unit > 1) printf(" %d", cut->diag.unit);
    printf(" (halo columns: %s)\n", asparse_format_name(cut->offd.format));
    printf("  time       read %.3g s, all %.3g s; a run with these parts saves %.3g s\n", read_seconds, all_seconds,
           h->build_seconds);
    printf("  saved      %s: mpirun -np %d asparse_solve %s\n", cut->options->output, h->parts, cut->options->output);
  }
cleanup:
  return status;
}

static asparse_status run(asparse_comm *comm, const partition_options *options, const char *command) {
  asparse_status status = ASPARSE_OK;
  cutting cut = {.options = options};
  double start = asparse_seconds();
  asparse_program_threads(comm, options->threads);
  TRY(asparse_program_output_check(comm, options->matrix, options->output));
  asparse_program_progress(comm, "reading the matrix");
  TRY(asparse_csr_read_with(comm, options->matrix, &options->read, &cut.slab, NULL));
  double read = asparse_seconds();
  TRY(asparse_matrix_hash(comm, cut.slab, &cut.header.matrix_hash));
  if (!options->plan.own_precision)
    TRY(asparse_comm_agree(comm, asparse_csr_convert(cut.slab, options->plan.precision)));
  asparse_program_progress(comm, "partitioning");
  double partition_start = asparse_seconds();
  TRY(asparse_matrix_partition(comm, cut.slab, options->plan.partition, options->cols, options->parts, &cut.partition));
  asparse_program_progress(comm, "building and saving parts");
  TRY(save_parts(comm, &cut, partition_start, command));
  asparse_program_progress(comm, NULL);
  TRY(print_report(comm, &cut, read - start, asparse_seconds() - start));
cleanup:
  asparse_program_progress(comm, NULL);
  asparse_csr_destroy(&cut.slab);
  asparse_partition_destroy(&cut.partition);
  return status;
}

int main(int argc, char **argv) {
  partition_options options;
  asparse_comm *comm = NULL;
  if (partition_options_parse(argc, argv, &options) != ASPARSE_OK) return asparse_program_usage_error(program);
  if (options.help) return partition_options_help(), 0;
  if (options.version) return asparse_program_version(program), 0;

  char *command = asparse_program_command(argc, argv);
  asparse_program_begin(&argc, &argv);
  asparse_status status = asparse_comm_create(&comm, MPI_COMM_WORLD);
  if (status == ASPARSE_OK) status = run(comm, &options, command);
  free(command);
  return asparse_program_end(&comm, status, program);
}
