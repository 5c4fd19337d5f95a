/* asparse_info: what a sparse matrix is like, which format suits it, what ranks would exchange. */
#include <stdio.h>
#include <string.h>

#include "plan/profile.h"
#include "programs/generated.h"
#include "programs/info_options.h"
#include "programs/info_report.h"
#include "programs/program.h"
#include "programs/spy.h"

static const char program[] = "asparse_info";

static asparse_profile whole_profile(const info_record *r) {
  asparse_profile profile = {.m = r->s.m, .k = r->s.k, .n = r->options->cols, .nnz = r->s.nnz, .dtype = r->dtype};
  profile.c_dtype = asparse_dtype_result(r->dtype);
  profile.longest_row = r->s.rows.largest;
  profile.b_rereads = r->b_rereads;
  memcpy(profile.windows, r->s.windows, sizeof profile.windows);
  memcpy(profile.blocks, r->s.blocks, sizeof profile.blocks);
  return profile;
}

/* Rank 0 measures its host's rates and lets the cost model choose: the kernel for the whole matrix on one rank, and the
 * exchange for each number of ranks. */
static asparse_status advise(info_record *r) {
  const asparse_profile profile = whole_profile(r);
  const bool device = r->options->device;
  PASS(asparse_host_rates_get(&r->rates));
  r->chosen = device ? asparse_choose_device(&profile, ASPARSE_FORMAT_AUTO, 0, NULL, r->candidates, &r->n_candidates)
                     : asparse_choose(&profile, &r->rates, ASPARSE_FORMAT_AUTO, 0, r->candidates, &r->n_candidates);
  const asparse_mode_compute compute = {&profile, device ? NULL : &r->rates};
  return info_exchange_predict(r->options, &compute, &r->exchange);
}

/* Collective. */
static asparse_status check_outputs(asparse_comm *comm, const info_options *o) {
  const char *input = o->generate ? NULL : o->matrix;
  if (o->json && strcmp(o->json, "-") != 0) PASS(asparse_program_output_check(comm, input, o->json));
  return asparse_program_output_check(comm, input, o->spy);
}

/* Collective. This rank's rows, from the file or made here. */
static asparse_status read_slab(asparse_comm *comm, const info_options *o, asparse_csr **slab, asparse_source *source) {
  asparse_program_progress(comm, o->generate ? "generating the matrix" : "reading the matrix");
  if (o->generate) return generated_read(comm, &o->generator, slab, source);
  return asparse_csr_read_with(comm, o->matrix, &o->read, slab, source);
}

/* Collective. What a GPU's cost model needs besides; 0 for more columns than a GPU's matrix can have. */
static asparse_status count_rereads(asparse_comm *comm, const asparse_csr *slab, info_record *r) {
  asparse_profile profile = {.n = r->options->cols, .dtype = r->dtype};
  asparse_local_csr pattern = {0};
  asparse_status status = ASPARSE_OK;
  if (r->options->device && slab->k <= INT32_MAX && slab->m <= INT32_MAX) {
    status = asparse_profile_pattern(slab, &pattern);
    if (status == ASPARSE_OK) status = asparse_profile_add_rereads(&pattern, &profile);
    asparse_free(pattern.col_idx);
  }
  PASS(asparse_comm_agree(comm, status));
  r->b_rereads = profile.b_rereads;
  return asparse_comm_sum(comm, &r->b_rereads, 1);
}

/* Collective. Everything that can be said of the matrix. */
static asparse_status inspect(asparse_comm *comm, info_record *r, asparse_csr **slab) {
  PASS(read_slab(comm, r->options, slab, &r->source));
  r->dtype = r->options->own_precision ? (*slab)->dtype : r->options->precision;
  int64_t counts[] = {(*slab)->n_duplicates, (*slab)->n_inexact};
  PASS(asparse_comm_sum(comm, counts, 2));
  r->n_duplicates = counts[0];
  r->n_inexact = counts[1];
  asparse_program_progress(comm, "measuring the structure");
  PASS(structure_align(comm, slab));
  PASS(structure_measure(comm, *slab, &r->s));
  PASS(count_rereads(comm, *slab, r));
  asparse_program_progress(comm, "partitioning");
  PASS(info_exchange_count(comm, *slab, r->options, r->dtype, &r->exchange));
  PASS(asparse_comm_agree(comm, comm->rank == 0 ? advise(r) : ASPARSE_OK));
  if (r->options->spy) PASS(spy_write(comm, *slab, r->options->spy));
  return ASPARSE_OK;
}

static asparse_status run(asparse_comm *comm, const info_options *options) {
  asparse_status status = ASPARSE_OK;
  static info_record r;
  asparse_csr *slab = NULL;
  r.options = options;
  asparse_program_threads(comm, options->threads);
  TRY(check_outputs(comm, options));
  TRY(inspect(comm, &r, &slab));
  asparse_program_progress(comm, NULL);
  if (comm->rank == 0 && (!options->json || strcmp(options->json, "-") != 0)) info_report_print(&r);
  if (options->json) TRY(info_report_json(comm, &r));
cleanup:
  asparse_program_progress(comm, NULL);
  asparse_csr_destroy(&slab);
  info_exchange_free(&r.exchange);
  return status;
}

int main(int argc, char **argv) {
  info_options options;
  asparse_comm *comm = NULL;
  if (info_options_parse(argc, argv, &options) != ASPARSE_OK) return asparse_program_usage_error(program);
  if (options.help) return info_options_help(), 0;
  if (options.version) return asparse_program_version(program), 0;

  asparse_program_begin(&argc, &argv);
  asparse_status status = asparse_comm_create(&comm, MPI_COMM_WORLD);
  if (status == ASPARSE_OK) status = run(comm, &options);
  return asparse_program_end(&comm, status, program);
}
