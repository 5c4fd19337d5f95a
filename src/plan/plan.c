#include "plan/plan.h"

#include "base/clock.h"
#include "base/dense.h"
#include "plan/profile.h"

/* Pieces of the local part between which MPI is given a chance to advance. */
enum { PROGRESS_PIECES = 16 };

enum { MAX_CANDIDATES = 8 };
static const double FAR_AHEAD = 1.25;

typedef struct scores {
  asparse_kernel_config candidates[MAX_CANDIDATES]; /* with this rank's predictions */
  double total_seconds[MAX_CANDIDATES];             /* summed over ranks */
  int64_t nnz;                                      /* this rank's, that the predictions are for */
  int n, best;
} scores;

/* Rows are exchanged one by one unless nearly all of B is needed: then sending all of it saves the
 * packing and the lists. */
static const double REPLICATE_FROM = 0.8;

asparse_options asparse_options_default(void) { return (asparse_options){.own_precision = true, .keep_csr = true}; }

static asparse_status choose_exchange(asparse_plan *plan, asparse_exchange_mode wanted) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  int64_t rows[2] = {a->part.n_halo, a->k - a->part.k_local}; /* needed, all */
  TRY(asparse_comm_sum(a->comm, rows, 2));
  plan->exchange = wanted;
  if (wanted == ASPARSE_EXCHANGE_AUTO && a->ready.format != ASPARSE_FORMAT_AUTO)
    plan->exchange = ASPARSE_EXCHANGE_ROWS; /* what saved shards are numbered for */
  else if (wanted == ASPARSE_EXCHANGE_AUTO)
    plan->exchange = rows[0] > 0 && (double)rows[0] >= REPLICATE_FROM * (double)rows[1] ? ASPARSE_EXCHANGE_REPLICATE
                                                                                        : ASPARSE_EXCHANGE_ROWS;
cleanup:
  return status;
}

/* offd with the columns of the halo buffer. Rows of the buffer stand in ascending global order: with
 * replicate they are all rows but one's own, so a column's place follows from its number. Local. */
static asparse_status number_offd(asparse_plan *plan) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  const asparse_local_csr *offd = a->part.offd;
  int64_t begin = a->col_starts[a->comm->rank], nnz = offd->row_ptr[offd->m];
  ALLOC_ZERO(plan->offd, 1);
  *plan->offd = *offd;
  if (plan->exchange == ASPARSE_EXCHANGE_ROWS) return ASPARSE_OK;

  plan->offd->col_idx = NULL;
  plan->offd_owns_columns = true;
  TRY(asparse_int32_from(a->k - a->part.k_local, "the number of rows of B", &plan->offd->k));
  ALLOC(plan->offd->col_idx, nnz);
#pragma omp parallel for schedule(static)
  for (int64_t e = 0; e < nnz; e++) {
    int64_t col = a->part.col_map_offd[offd->col_idx[e]];
    plan->offd->col_idx[e] = (int32_t)(col < begin ? col : col - a->part.k_local);
  }
cleanup:
  return status;
}

/* Candidates with their predicted times summed over ranks, and the least of them. Collective. */
static asparse_status score(asparse_comm *comm, const asparse_local_csr *a, int64_t n, bool sample,
                            const asparse_options *options, scores *s) {
  asparse_status status = ASPARSE_OK;
  asparse_profile profile;
  asparse_host_rates rates = {0};
  double predicted[MAX_CANDIDATES];
  status = asparse_profile_create(a, n, sample, &profile);
  if (status == ASPARSE_OK) status = asparse_host_rates_get(&rates);
  TRY(asparse_comm_agree(comm, status));
  s->nnz = profile.nnz;
  asparse_choose(&profile, &rates, options->format, options->unit, s->candidates, &s->n);
  for (int i = 0; i < s->n; i++) predicted[i] = a ? s->candidates[i].predicted_seconds : 0;
  TRY_MPI(MPI_Allreduce(predicted, s->total_seconds, s->n, MPI_DOUBLE, MPI_SUM, comm->mpi));
  s->best = -1;
  for (int i = 0; i < s->n; i++) {
    const asparse_kernel_config *c = &s->candidates[i];
    bool wanted = (options->format == ASPARSE_FORMAT_AUTO || c->format == options->format) &&
                  (options->unit == 0 || c->unit == options->unit);
    if (wanted && (s->best < 0 || s->total_seconds[i] < s->total_seconds[s->best])) s->best = i;
  }
  TRY_THAT(s->best >= 0, ASPARSE_ERR_USAGE, "there is no format %s with unit %d", asparse_format_name(options->format),
           options->unit);
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

asparse_status asparse_plan_choose(asparse_comm *comm, const asparse_local_csr *a, int64_t n,
                                   const asparse_options *options, asparse_kernel_config *config) {
  asparse_status status = ASPARSE_OK;
  scores s = {0};
  bool may_be_csr = options->format == ASPARSE_FORMAT_AUTO || options->format == ASPARSE_FORMAT_CSR;
  if (may_be_csr) TRY(score(comm, a, n, true, options, &s));
  if (may_be_csr && csr_is_settled(&s, options)) {
    *config = s.candidates[s.best];
    if (s.nnz > 0) config->predicted_seconds *= (double)a->row_ptr[a->m] / (double)s.nnz;
  } else {
    TRY(score(comm, a, n, false, options, &s));
    *config = s.candidates[s.best];
  }
cleanup:
  return status;
}

static bool shards_are_ready(const asparse_plan *plan, const asparse_options *options) {
  const asparse_matrix *a = plan->matrix;
  return a->ready.format != ASPARSE_FORMAT_AUTO &&
         (options->format == ASPARSE_FORMAT_AUTO || options->format == a->ready.format) &&
         (options->unit == 0 || options->unit == a->ready.unit) && plan->exchange == ASPARSE_EXCHANGE_ROWS;
}

/* Takes the shards of a partition file as they are. CSR is its own shard. Local. */
static asparse_status adopt_shards(asparse_plan *plan) {
  asparse_status status = ASPARSE_OK;
  asparse_part *part = &plan->matrix->part;
  plan->diag_shard = part->diag_shard;
  plan->offd_shard = part->offd_shard;
  plan->borrows_diag_shard = part->diag_shard != NULL;
  plan->borrows_offd_shard = part->offd_shard != NULL;
  if (!plan->diag_shard) TRY(asparse_shard_build(part->diag, ASPARSE_FORMAT_CSR, 1, &plan->diag_shard));
  if (!plan->offd_shard) TRY(asparse_shard_build(plan->offd, ASPARSE_FORMAT_CSR, 1, &plan->offd_shard));
cleanup:
  return status;
}

static asparse_status build_shards(asparse_plan *plan, const asparse_options *options) {
  asparse_status status = ASPARSE_OK;
  asparse_kernel_config diag = {0}, offd = {0};
  asparse_matrix *a = plan->matrix;
  if (shards_are_ready(plan, options)) {
    TRY(asparse_comm_agree(a->comm, adopt_shards(plan)));
    plan->stats.ready_shards = true;
  } else {
    TRY(asparse_plan_choose(a->comm, a->part.diag, plan->n, options, &diag));
    TRY(asparse_plan_choose(a->comm, plan->offd, plan->n, options, &offd));
    status = asparse_shard_build(a->part.diag, diag.format, diag.unit, &plan->diag_shard);
    if (status == ASPARSE_OK) status = asparse_shard_build(plan->offd, offd.format, offd.unit, &plan->offd_shard);
    TRY(asparse_comm_agree(a->comm, status));
  }
  plan->stats.predicted_seconds = diag.predicted_seconds + offd.predicted_seconds;
cleanup:
  return status;
}

static asparse_status plan_start(asparse_matrix *a, const asparse_options *options, int64_t n, asparse_plan **out) {
  asparse_status status = ASPARSE_OK;
  asparse_plan *plan = NULL;
  TRY_THAT(n > 0, ASPARSE_ERR_USAGE, "B has %lld columns; at least 1 is needed", (long long)n);
  TRY_THAT(a->part.diag, ASPARSE_ERR_USAGE,
           "this matrix gave up its CSR to an earlier plan; create that with keep_csr");
  ALLOC_ZERO(plan, 1);
  *out = plan;
  plan->matrix = a;
  plan->n = n;
  TRY(asparse_backend_get(options->backend, &plan->backend));
cleanup:
  return status;
}

static void fill_stats(asparse_plan *plan) {
  const asparse_part *part = &plan->matrix->part;
  asparse_stats *stats = &plan->stats;
  stats->backend = plan->backend->name;
  stats->exchange = plan->exchange;
  stats->format = plan->diag_shard->format;
  stats->offd_format = plan->offd_shard->format;
  stats->unit = asparse_shard_row_unit(plan->diag_shard);
  stats->offd_unit = asparse_shard_row_unit(plan->offd_shard);
  stats->nnz = asparse_shard_nnz(plan->diag_shard) + asparse_shard_nnz(plan->offd_shard);
  stats->stored = asparse_shard_stored(plan->diag_shard) + asparse_shard_stored(plan->offd_shard);
  stats->shard_bytes = asparse_shard_bytes(plan->diag_shard) + asparse_shard_bytes(plan->offd_shard);
  stats->csr_bytes = asparse_local_csr_bytes(part->diag) + asparse_local_csr_bytes(part->offd);
  stats->halo_bytes = asparse_halo_bytes(plan->halo);
  stats->halo_rows = plan->halo->n_rows;
  stats->bytes_sent = plan->halo->bytes_sent;
  stats->bytes_received = plan->halo->bytes_received;
}

/* Frees the CSR that stands beside padded shards. */
static void drop_csr(asparse_plan *plan) {
  asparse_part *part = &plan->matrix->part;
  if (plan->diag_shard->csr || plan->offd_shard->csr) return;
  asparse_local_csr_destroy(&part->diag);
  asparse_local_csr_destroy(&part->offd);
  if (plan->offd_owns_columns) asparse_free(plan->offd->col_idx);
  FREE(plan->offd);
}

asparse_status asparse_plan_create(asparse_matrix *a, const asparse_options *options, int64_t n, asparse_plan **out) {
  asparse_status status = ASPARSE_OK;
  asparse_plan *plan = NULL;
  double start = asparse_seconds();
  TRY(asparse_comm_agree(a->comm, plan_start(a, options, n, &plan)));
  TRY(choose_exchange(plan, options->exchange));
  TRY(asparse_comm_agree(a->comm, number_offd(plan)));
  TRY(build_shards(plan, options));
  bool all = plan->exchange == ASPARSE_EXCHANGE_REPLICATE;
  TRY(asparse_halo_create(a->comm, plan->backend, a->col_starts, all ? NULL : a->part.col_map_offd, a->part.n_halo, n,
                          a->dtype, &plan->halo));
  int64_t units = asparse_shard_units(plan->diag_shard), pieces = a->comm->size > 1 ? PROGRESS_PIECES : 1;
  plan->chunk_units = units / pieces + 1;
  fill_stats(plan);
  if (!options->keep_csr) drop_csr(plan);
  plan->stats.build_seconds = asparse_seconds() - start;
  *out = plan;
  plan = NULL;
cleanup:
  asparse_plan_destroy(&plan);
  return status;
}

void asparse_plan_destroy(asparse_plan **plan) {
  if (!plan || !*plan) return;
  asparse_plan *p = *plan;
  if (!p->borrows_diag_shard) asparse_shard_destroy(&p->diag_shard);
  if (!p->borrows_offd_shard) asparse_shard_destroy(&p->offd_shard);
  if (p->offd && p->offd_owns_columns) asparse_free(p->offd->col_idx);
  asparse_free(p->offd);
  asparse_halo_destroy(&p->halo);
  FREE(*plan);
}

asparse_status asparse_plan_operands(const asparse_plan *plan, asparse_dense **b, asparse_dense **c) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  TRY(asparse_dense_create(b, a->part.k_local, plan->n, a->dtype));
  TRY(asparse_dense_create(c, a->part.m_local, plan->n, asparse_dtype_result(a->dtype)));
  return ASPARSE_OK;
cleanup:
  asparse_dense_destroy(b);
  return status;
}

static asparse_status check_operands(const asparse_plan *plan, const asparse_dense *b, const asparse_dense *c) {
  asparse_status status = ASPARSE_OK;
  const asparse_part *part = &plan->matrix->part;
  TRY_THAT(b->m == part->k_local && b->n == plan->n && b->ld >= b->n && b->dtype == plan->matrix->dtype,
           ASPARSE_ERR_USAGE, "B is %lld × %lld (ld %lld, %s) on this rank; the plan needs %lld × %lld %s",
           (long long)b->m, (long long)b->n, (long long)b->ld, asparse_dtype_name(b->dtype), (long long)part->k_local,
           (long long)plan->n, asparse_dtype_name(plan->matrix->dtype));
  TRY_THAT(c->m == part->m_local && c->n == plan->n && c->ld >= c->n &&
               c->dtype == asparse_dtype_result(plan->matrix->dtype),
           ASPARSE_ERR_USAGE, "C is %lld × %lld (ld %lld, %s) on this rank; the plan needs %lld × %lld %s",
           (long long)c->m, (long long)c->n, (long long)c->ld, asparse_dtype_name(c->dtype), (long long)part->m_local,
           (long long)plan->n, asparse_dtype_name(asparse_dtype_result(plan->matrix->dtype)));
cleanup:
  return status;
}

/* C = A_diag·B_own in pieces, with a look at the network after each. */
static asparse_status multiply_diag(asparse_plan *plan, const asparse_dense *b, asparse_dense *c) {
  int64_t units = asparse_shard_units(plan->diag_shard);
  for (int64_t begin = 0; begin < units; begin += plan->chunk_units) {
    int64_t end = begin + plan->chunk_units < units ? begin + plan->chunk_units : units;
    PASS(plan->backend->multiply(plan->diag_shard, begin, end, plan->n, b->values, b->ld, c->values, c->ld, false));
    PASS(asparse_halo_exchange_progress(plan->halo));
  }
  return ASPARSE_OK;
}

/* C += A_offd·B_halo. */
static asparse_status multiply_offd(asparse_plan *plan, asparse_dense *c) {
  if (asparse_shard_nnz(plan->offd_shard) == 0) return ASPARSE_OK;
  return plan->backend->multiply(plan->offd_shard, 0, asparse_shard_units(plan->offd_shard), plan->n,
                                 plan->halo->buffer, plan->n, c->values, c->ld, true);
}

asparse_status asparse_plan_execute(asparse_plan *plan, const asparse_dense *b, asparse_dense *c) {
  asparse_stats *stats = &plan->stats;
  PASS(check_operands(plan, b, c));
  double start = asparse_seconds();
  PASS(asparse_halo_exchange_begin(plan->halo, b->values, b->ld));
  double packed = asparse_seconds();
  PASS(multiply_diag(plan, b, c));
  double local = asparse_seconds();
  PASS(asparse_halo_exchange_end(plan->halo));
  double arrived = asparse_seconds();
  PASS(multiply_offd(plan, c));
  double end = asparse_seconds();

  stats->pack_seconds = packed - start;
  stats->diag_seconds = local - packed;
  stats->exposed_seconds = arrived - local;
  stats->offd_seconds = end - arrived;
  stats->total_seconds = end - start;
  return ASPARSE_OK;
}

void asparse_plan_stats(const asparse_plan *plan, asparse_stats *stats) { *stats = plan->stats; }
