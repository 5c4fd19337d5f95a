#include "plan/plan.h"

#include "base/clock.h"
#include "base/dense.h"
#include "plan/choice.h"
#include "plan/engines.h"

/* Pieces of a multiplication between which MPI is given a chance to advance. */
enum { PROGRESS_PIECES = 16 };

/* Rows are exchanged one by one unless nearly all of B is needed: then sending all of it saves the
 * packing and the lists. */
static const double REPLICATE_FROM = 0.8;

asparse_options asparse_options_default(void) { return (asparse_options){.own_precision = true, .keep_csr = true}; }

static asparse_status choose_exchange(asparse_plan *plan, const asparse_options *options) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  asparse_exchange_mode wanted = asparse_planned_options(options, &a->planning).exchange;
  int64_t rows[2] = {a->part.n_halo, a->k - a->part.k_local}; /* needed, all */
  TRY(asparse_comm_sum(a->comm, rows, 2));
  if (wanted == ASPARSE_EXCHANGE_COLUMNS || wanted == ASPARSE_EXCHANGE_GRID) wanted = ASPARSE_EXCHANGE_ROWS;
  plan->exchange = wanted;
  if (wanted == ASPARSE_EXCHANGE_AUTO && a->ready.format != ASPARSE_FORMAT_AUTO)
    plan->exchange = ASPARSE_EXCHANGE_ROWS; /* what saved shards are numbered for */
  else if (wanted == ASPARSE_EXCHANGE_AUTO)
    plan->exchange = rows[0] > 0 && (double)rows[0] >= REPLICATE_FROM * (double)rows[1] ? ASPARSE_EXCHANGE_REPLICATE
                                                                                        : ASPARSE_EXCHANGE_ROWS;
cleanup:
  return status;
}

/* Chunks of the halo's columns, none of them narrow. Partial rows of C and whole rows of A take all columns at once. */
static void choose_chunks(asparse_plan *plan, const asparse_options *options) {
  const bool one = plan->cover || options->reproducible;
  plan->chunks =
      asparse_halo_chunks(plan->n, one ? 1 : asparse_planned_options(options, &plan->matrix->planning).chunks);
}

/* offd with the columns of the halo buffer. Rows of the buffer stand in ascending global order: with
 * replicate they are all rows but one's own, so a column's place follows from its number. Local. */
static asparse_status number_offd(asparse_plan *plan) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  const asparse_local_csr *offd = plan->cover ? plan->cover->parts.kept : a->part.offd;
  int64_t begin = a->col_starts[a->grid.column_comm->rank], nnz = offd->row_ptr[offd->m];
  ALLOC_ZERO(plan->offd, 1);
  *plan->offd = *offd;
  if (plan->exchange != ASPARSE_EXCHANGE_REPLICATE) return ASPARSE_OK;

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

/* Local. */
static asparse_status merge_halves(asparse_plan *plan) {
  const asparse_matrix *a = plan->matrix;
  int64_t begin = a->col_starts[a->grid.column_comm->rank], below = 0;
  if (plan->exchange == ASPARSE_EXCHANGE_REPLICATE) below = begin;
  else
    while (below < a->part.n_halo && a->part.col_map_offd[below] < begin) below++;
  return asparse_merged_create(a->part.diag, plan->offd, below, plan->n, &plan->merged);
}

static bool shards_are_ready(const asparse_plan *plan, const asparse_options *options) {
  const asparse_matrix *a = plan->matrix;
  return a->ready.format != ASPARSE_FORMAT_AUTO && plan->engine->backend->space == ASPARSE_SPACE_HOST &&
         (options->format == ASPARSE_FORMAT_AUTO || options->format == a->ready.format) &&
         (options->unit == 0 || options->unit == a->ready.unit) && plan->exchange == ASPARSE_EXCHANGE_ROWS &&
         !plan->merged;
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

/* The shard of one half of A in its chosen form. Local. */
static asparse_status build_shard(asparse_local_csr *a, const asparse_clustered *clustered,
                                  const asparse_kernel_config *config, asparse_shard **out) {
  if (config->clustered) return asparse_shard_build_clustered(clustered, config->unit, out);
  return asparse_shard_build(a, config->format, config->unit, out);
}

static int64_t widest_block(const asparse_plan *plan) {
  return asparse_grid_column_start(plan->n_global, plan->matrix->grid.columns, 1);
}

static int64_t widest_chunk(const asparse_plan *plan, int64_t n) {
  const asparse_halo_shape shape = {n, plan->chunks, plan->matrix->dtype};
  int64_t widest = 0;
  for (int c = 0; c < plan->chunks; c++) {
    const int64_t columns = asparse_halo_chunk_columns(&shape, c);
    if (columns > widest) widest = columns;
  }
  return widest;
}

/* Chooses and builds the shards of both halves. Collective. */
static asparse_status choose_shards(asparse_plan *plan, const asparse_options *options, asparse_kernel_config *diag,
                                    asparse_kernel_config *offd) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  asparse_local_csr *own = plan->merged ? plan->merged->a : a->part.diag;
  asparse_local_csr *rest = plan->merged ? plan->merged->none : plan->offd;
  asparse_options wanted = *options;
  if (plan->merged) wanted.format = ASPARSE_FORMAT_CSR;
  const asparse_space space = plan->engine->backend->space;
  asparse_clustered diag_rows = {0}, offd_rows = {0};
  const bool on_device = space == ASPARSE_SPACE_DEVICE;
  const int64_t n = widest_block(plan);
  const asparse_choice_problem of_own = {.a = own, .n = n, .space = space};
  const asparse_choice_problem of_rest = {.a = rest, .n = widest_chunk(plan, n), .accumulate = true, .space = space};
  TRY(asparse_choice_make(a->comm, &of_own, &wanted, on_device ? &diag_rows : NULL, diag));
  TRY(asparse_choice_make(a->comm, &of_rest, &wanted, on_device ? &offd_rows : NULL, offd));
  status = build_shard(own, &diag_rows, diag, &plan->diag_shard);
  if (status == ASPARSE_OK) status = build_shard(rest, &offd_rows, offd, &plan->offd_shard);
  TRY(asparse_comm_agree(a->comm, status));
cleanup:
  asparse_clustered_free(&diag_rows);
  asparse_clustered_free(&offd_rows);
  return status;
}

static asparse_status prepare(asparse_plan *plan, const asparse_shard *shard, const char *kernel, int64_t n,
                              asparse_operator *out) {
  return plan->engine->backend->prepare(plan->engine, shard, kernel, n, plan->c_dtype, out);
}

static asparse_status build_shards(asparse_plan *plan, const asparse_options *options) {
  asparse_status status = ASPARSE_OK;
  asparse_kernel_config diag = {0}, offd = {0};
  asparse_comm *comm = plan->matrix->comm;
  if (shards_are_ready(plan, options)) {
    TRY(asparse_comm_agree(comm, adopt_shards(plan)));
    plan->stats.ready_shards = true;
  } else {
    TRY(choose_shards(plan, options, &diag, &offd));
  }
  status = prepare(plan, plan->diag_shard, diag.kernel, plan->n, &plan->diag_operator);
  if (status == ASPARSE_OK && asparse_shard_nnz(plan->offd_shard) > 0)
    status = prepare(plan, plan->offd_shard, offd.kernel, widest_chunk(plan, plan->n), &plan->offd_operator);
  TRY(asparse_comm_agree(comm, status));
  plan->stats.predicted_seconds = diag.predicted_seconds + plan->chunks * offd.predicted_seconds;
  plan->own_predicted_seconds =
      plan->merged ? 0 : diag.predicted_seconds; /* merged: nothing before rows of B are here */
  plan->stats.least_seconds = diag.least_seconds + (plan->offd_operator.shard ? plan->chunks * offd.least_seconds : 0);
  plan->stats.kernel = diag.kernel ? diag.kernel : asparse_format_name(plan->diag_shard->format);
  plan->stats.offd_kernel = offd.kernel ? offd.kernel : asparse_format_name(plan->offd_shard->format);
cleanup:
  return status;
}

/* What --reproducible cannot be had with. */
static asparse_status check_reproducible(const asparse_matrix *a, const asparse_options *options) {
  asparse_status status = ASPARSE_OK;
  if (!options->reproducible) return ASPARSE_OK;
  TRY_THAT(options->format == ASPARSE_FORMAT_AUTO || options->format == ASPARSE_FORMAT_CSR, ASPARSE_ERR_USAGE,
           "a reproducible C is summed in CSR; leave out the format %s", asparse_format_name(options->format));
  TRY_THAT(options->exchange != ASPARSE_EXCHANGE_COVER, ASPARSE_ERR_USAGE,
           "exchange cover adds partial rows by ranks; a reproducible C needs another exchange");
  TRY_THAT(a->method == ASPARSE_PARTITION_CONTIGUOUS, ASPARSE_ERR_USAGE,
           "METIS changes the order of columns with the number of ranks; a reproducible C needs contiguous parts");
  TRY_THAT(options->backend != ASPARSE_BACKEND_CUDA, ASPARSE_ERR_USAGE,
           "GPU kernels sum long rows in pieces; a reproducible C is computed on the host");
cleanup:
  return status;
}

static asparse_status plan_start(asparse_matrix *a, const asparse_options *options, int64_t n, asparse_plan **out) {
  asparse_status status = ASPARSE_OK;
  asparse_plan *plan = NULL;
  TRY_THAT(n > 0, ASPARSE_ERR_USAGE, "B has %lld columns; at least 1 is needed", (long long)n);
  TRY_THAT(a->part.diag, ASPARSE_ERR_USAGE,
           "this matrix gave up its CSR to an earlier plan; create that with keep_csr");
  TRY(asparse_grid_check(&a->grid, options));
  TRY(check_reproducible(a, options));
  TRY_THAT(n >= a->grid.columns, ASPARSE_ERR_USAGE,
           "B has %lld columns; blocks of them for %d ranks would be empty, so use fewer ranks or another exchange",
           (long long)n, a->grid.columns);
  ALLOC_ZERO(plan, 1);
  *out = plan;
  plan->matrix = a;
  const int block = a->grid.row_comm ? a->grid.row_comm->rank : 0;
  plan->n_global = n;
  plan->column_begin = asparse_grid_column_start(n, a->grid.columns, block);
  plan->n = asparse_grid_column_start(n, a->grid.columns, block + 1) - plan->column_begin;
  plan->c_dtype = options->bf16_result ? ASPARSE_BF16 : asparse_dtype_result(a->dtype);
  TRY_THAT(!options->bf16_result || a->dtype == ASPARSE_BF16, ASPARSE_ERR_USAGE,
           "C in bf16 goes with A and B in bf16; these are %s", asparse_dtype_name(a->dtype));
cleanup:
  return status;
}

static void fill_stats(asparse_plan *plan) {
  const asparse_part *part = &plan->matrix->part;
  asparse_stats *stats = &plan->stats;
  stats->backend = plan->engine->backend->name;
  stats->device = plan->engine->backend->device_name(plan->engine);
  stats->exchange = plan->exchange;
  stats->chunks = plan->chunks;
  stats->transport = asparse_halo_transport(plan->halo);
  stats->grid_rows = plan->matrix->grid.rows;
  stats->grid_columns = plan->matrix->grid.columns;
  stats->format = plan->diag_shard->format;
  stats->offd_format = plan->offd_shard->format;
  stats->unit = asparse_shard_row_unit(plan->diag_shard);
  stats->offd_unit = asparse_shard_row_unit(plan->offd_shard);
  stats->nnz = asparse_shard_nnz(plan->diag_shard) + asparse_shard_nnz(plan->offd_shard);
  stats->stored = asparse_shard_stored(plan->diag_shard) + asparse_shard_stored(plan->offd_shard);
  stats->shard_bytes = asparse_shard_bytes(plan->diag_shard) + asparse_shard_bytes(plan->offd_shard);
  stats->device_bytes = plan->engine->backend->operator_bytes(&plan->diag_operator) +
                        plan->engine->backend->operator_bytes(&plan->offd_operator);
  stats->csr_bytes = asparse_local_csr_bytes(part->diag) + asparse_local_csr_bytes(part->offd);
  stats->halo_bytes = asparse_halo_bytes(plan->halo);
  stats->halo_rows = plan->halo->n_rows;
  stats->bytes_sent = plan->halo->bytes_sent;
  stats->bytes_received = plan->halo->bytes_received;
  if (plan->cover) asparse_cover_add_stats(plan->cover, stats);
  if (plan->merged) stats->csr_bytes += asparse_merged_csr_bytes(plan->merged);
  if (plan->merged) stats->halo_bytes += asparse_merged_b_bytes(plan->merged);
  if (plan->b_layout) {
    stats->layout_bytes_sent = plan->b_layout->slice_bytes + plan->c_layout->block_bytes;
    stats->layout_bytes_received = plan->b_layout->block_bytes + plan->c_layout->slice_bytes;
  }
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

/* Rows of B wanted from the ranks with the same block of columns. Collective. */
static asparse_status create_halo(asparse_plan *plan) {
  const asparse_matrix *a = plan->matrix;
  const bool all = plan->exchange == ASPARSE_EXCHANGE_REPLICATE;
  const int64_t *wanted = all ? NULL : plan->cover ? plan->cover->parts.wanted : a->part.col_map_offd;
  const asparse_halo_shape shape = {plan->n, plan->chunks, a->dtype};
  return asparse_comm_agree(a->comm, asparse_halo_create(a->grid.column_comm, plan->engine, a->col_starts, wanted,
                                                         plan->offd->k, shape, &plan->halo));
}

/* What operands that are rows need to become blocks of columns. Collective. */
static asparse_status create_layouts(asparse_plan *plan) {
  asparse_status status = ASPARSE_OK;
  const asparse_part *part = &plan->matrix->part;
  TRY(asparse_plan_layout_of_b(plan, &plan->b_layout));
  TRY(asparse_plan_layout_of_c(plan, &plan->c_layout));
  status = asparse_dense_create(&plan->b_block, part->k_local, plan->n, plan->matrix->dtype);
  if (status == ASPARSE_OK) status = asparse_dense_create(&plan->c_block, part->m_local, plan->n, plan->c_dtype);
  TRY(asparse_comm_agree(plan->matrix->comm, status));
cleanup:
  return status;
}

asparse_status asparse_plan_create(asparse_matrix *a, const asparse_options *options, int64_t n, asparse_plan **out) {
  asparse_status status = ASPARSE_OK;
  asparse_plan *plan = NULL;
  double start = asparse_seconds();
  TRY(asparse_comm_agree(a->comm, plan_start(a, options, n, &plan)));
  TRY(asparse_engines_open(a->comm, options, &plan->engine));
  a->grid.column_comm->kind = a->comm->kind;
  TRY(choose_exchange(plan, options));
  if (plan->exchange == ASPARSE_EXCHANGE_COVER)
    TRY(asparse_cover_create(a, plan->engine, options, plan->n, widest_block(plan), &plan->cover));
  choose_chunks(plan, options);
  status = number_offd(plan);
  if (status == ASPARSE_OK && options->reproducible) status = merge_halves(plan);
  TRY(asparse_comm_agree(a->comm, status));
  TRY(build_shards(plan, options));
  TRY(create_halo(plan));
  if (a->grid.columns > 1 && options->operands == ASPARSE_PLACEMENT_ROWS) TRY(create_layouts(plan));
  const bool in_pieces = a->comm->size > 1 && plan->engine->backend->space == ASPARSE_SPACE_HOST;
  plan->pieces = in_pieces ? PROGRESS_PIECES : 1;
  TRY(asparse_comm_agree(a->comm, plan->engine->backend->wait(plan->engine)));
  fill_stats(plan);
  TRY(asparse_plan_predict(plan));
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
  if (p->engine) {
    p->engine->backend->discard(&p->diag_operator);
    p->engine->backend->discard(&p->offd_operator);
  }
  asparse_dense_destroy(&p->engine_b);
  asparse_dense_destroy(&p->engine_c);
  if (!p->borrows_diag_shard) asparse_shard_destroy(&p->diag_shard);
  if (!p->borrows_offd_shard) asparse_shard_destroy(&p->offd_shard);
  if (p->offd && p->offd_owns_columns) asparse_free(p->offd->col_idx);
  asparse_free(p->offd);
  asparse_halo_destroy(&p->halo);
  asparse_cover_destroy(&p->cover);
  asparse_merged_destroy(&p->merged);
  asparse_layout_destroy(&p->b_layout);
  asparse_layout_destroy(&p->c_layout);
  asparse_dense_destroy(&p->b_block);
  asparse_dense_destroy(&p->c_block);
  asparse_engine_close(&p->engine);
  FREE(*plan);
}

void asparse_plan_stats(const asparse_plan *plan, asparse_stats *stats) { *stats = plan->stats; }
