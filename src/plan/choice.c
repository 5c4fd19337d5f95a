#include "plan/choice.h"

#include <string.h>

#include "plan/engines.h"
#include "plan/profile.h"

/* A candidate's lead on a sample beyond which counting the whole matrix would not change the choice. */
static const double FAR_AHEAD = 1.25;

typedef struct scores {
  asparse_kernel_config candidates[ASPARSE_DEVICE_CANDIDATES]; /* with this rank's predictions */
  double total_seconds[ASPARSE_DEVICE_CANDIDATES];             /* summed over ranks */
  int64_t nnz;                                                 /* this rank's, that the predictions are for */
  int n, best;
} scores;

static bool is_wanted(const asparse_kernel_config *c, const asparse_options *options) {
  return (options->format == ASPARSE_FORMAT_AUTO || c->format == options->format) &&
         (options->unit == 0 || c->unit == options->unit) &&
         (!options->kernel || (c->kernel && strcmp(c->kernel, options->kernel) == 0));
}

/* Share of non-zeros beyond which windows see most columns in any order. */
static const double DENSE = 0.1;

/* Bringing rows together pays for the tensor cores' windows only. Who names such a kernel gets it, dense or empty. */
static bool may_cluster(const asparse_local_csr *a, const asparse_clustered *clustered,
                        const asparse_options *options) {
  if (!a || !clustered || options->keep_order || a->dtype != ASPARSE_BF16) return false;
  if (options->format != ASPARSE_FORMAT_AUTO && options->format != ASPARSE_FORMAT_WCSR) return false;
  if (options->kernel) return asparse_device_kernel_clusters(options->kernel);
  return (double)a->row_ptr[a->m] < DENSE * (double)a->m * (double)a->k;
}

/* Candidates with their predicted times summed over ranks, and the least of them. Collective. */
static asparse_status score(asparse_comm *comm, const asparse_choice_problem *problem, bool sample,
                            const asparse_options *options, asparse_clustered *clustered, scores *s) {
  asparse_status status = ASPARSE_OK;
  const asparse_local_csr *a = problem->a;
  const asparse_space space = problem->space;
  asparse_profile profile;
  asparse_host_rates rates = {0};
  double predicted[ASPARSE_DEVICE_CANDIDATES];
  status = asparse_profile_create(a, problem->n, sample, &profile);
  profile.accumulate = problem->accumulate;
  if (status == ASPARSE_OK && space == ASPARSE_SPACE_DEVICE) status = asparse_profile_add_rereads(a, &profile);
  if (status == ASPARSE_OK && space == ASPARSE_SPACE_HOST) status = asparse_engines_host_rates(comm, &rates);
  if (status == ASPARSE_OK && may_cluster(a, clustered, options)) {
    status = asparse_rows_cluster(a, clustered);
    if (status == ASPARSE_OK) status = asparse_profile_add_clustered(clustered->rows, &profile);
  }
  TRY(asparse_comm_agree(comm, status));
  s->nnz = profile.nnz;
  if (options->bf16_result) profile.c_dtype = ASPARSE_BF16;
  if (space == ASPARSE_SPACE_HOST)
    asparse_choose(&profile, &rates, options->format, options->unit, s->candidates, &s->n);
  else asparse_choose_device(&profile, options->format, options->unit, options->kernel, s->candidates, &s->n);
  for (int i = 0; i < s->n; i++) predicted[i] = a ? s->candidates[i].predicted_seconds : 0;
  TRY_MPI(MPI_Allreduce(predicted, s->total_seconds, s->n, MPI_DOUBLE, MPI_SUM, comm->mpi));
  s->best = -1;
  for (int i = 0; i < s->n; i++) {
    if (is_wanted(&s->candidates[i], options) && (s->best < 0 || s->total_seconds[i] < s->total_seconds[s->best]))
      s->best = i;
  }
  TRY_THAT(s->best >= 0, ASPARSE_ERR_USAGE, "there is no %skernel %s for format %s with unit %d in %s",
           space == ASPARSE_SPACE_HOST ? "host " : "GPU ", options->kernel ? options->kernel : "at all",
           asparse_format_name(options->format), options->unit, asparse_dtype_name(profile.dtype));
cleanup:
  return status;
}

/* Is CSR asked for, or so far ahead that counting the whole matrix would not change the choice? */
static bool csr_is_settled(const scores *s, const asparse_options *options) {
  if (options->format == ASPARSE_FORMAT_CSR) return true;
  for (int i = 0; i < s->n; i++) {
    if (s->candidates[i].format != ASPARSE_FORMAT_CSR && s->total_seconds[i] < FAR_AHEAD * s->total_seconds[s->best])
      return false;
  }
  return s->candidates[s->best].format == ASPARSE_FORMAT_CSR;
}

asparse_status asparse_choice_make(asparse_comm *comm, const asparse_choice_problem *problem,
                                   const asparse_options *options, asparse_clustered *clustered,
                                   asparse_kernel_config *config) {
  asparse_status status = ASPARSE_OK;
  scores s = {0};
  /* A GPU's formats are close to each other and its ranks have threads to spare: it counts everything. */
  bool may_sample = problem->space == ASPARSE_SPACE_HOST &&
                    (options->format == ASPARSE_FORMAT_AUTO || options->format == ASPARSE_FORMAT_CSR);
  if (may_sample) TRY(score(comm, problem, true, options, NULL, &s));
  if (may_sample && csr_is_settled(&s, options)) {
    *config = s.candidates[s.best];
    if (s.nnz > 0) config->predicted_seconds *= (double)problem->a->row_ptr[problem->a->m] / (double)s.nnz;
  } else {
    TRY(score(comm, problem, false, options, clustered, &s));
    *config = s.candidates[s.best];
  }
  if (clustered && !config->clustered) asparse_clustered_free(clustered);
cleanup:
  return status;
}
