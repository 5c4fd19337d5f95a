/* One multiplication by a plan, and its times. */
#include "base/clock.h"
#include "base/dense.h"
#include "plan/plan.h"

static asparse_status check_shape(const char *name, const asparse_dense *x, asparse_extent e, asparse_dtype dtype) {
  if (x->m == e.m && x->n == e.n && x->ld >= x->n && x->dtype == dtype) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s is %lld × %lld (ld %lld, %s) on this rank; the plan needs %lld × %lld %s",
                      name, (long long)x->m, (long long)x->n, (long long)x->ld, asparse_dtype_name(x->dtype),
                      (long long)e.m, (long long)e.n, asparse_dtype_name(dtype));
}

static asparse_status check_operands(const asparse_plan *plan, const asparse_dense *b, const asparse_dense *c) {
  asparse_status status = ASPARSE_OK;
  const asparse_placement placement = asparse_plan_placement(plan);
  const bool on_device = b->space == ASPARSE_SPACE_DEVICE || c->space == ASPARSE_SPACE_DEVICE;
  TRY_THAT(!on_device || plan->engine->backend->space == ASPARSE_SPACE_DEVICE, ASPARSE_ERR_USAGE,
           "B or C is on a GPU, but the plan computes on the host");
  TRY_THAT(!on_device || !plan->b_layout, ASPARSE_ERR_USAGE,
           "B or C is on a GPU, but the plan was made for rows, which change their layout on the host");
  TRY(check_shape("B", b, asparse_plan_extent_of_b(plan, placement), plan->matrix->dtype));
  TRY(check_shape("C", c, asparse_plan_extent_of_c(plan, placement), plan->c_dtype));
cleanup:
  return status;
}

/* One half of A by n columns of b, to c or added to it. */
typedef struct half_product {
  const asparse_operator *a;
  int64_t n;
  const void *b;
  int64_t ldb;
  void *c;
  int64_t ldc;
  bool accumulate;
} half_product;

/* In pieces, with a look at the network after each. */
static asparse_status multiply(asparse_plan *plan, const half_product *p, int pieces) {
  const int64_t units = asparse_shard_units(p->a->shard), piece = units / pieces + 1;
  for (int64_t begin = 0; begin < units; begin += piece) {
    const int64_t end = begin + piece < units ? begin + piece : units;
    PASS(plan->engine->backend->multiply(plan->engine, p->a, begin, end, p->n, p->b, p->ldb, p->c, p->ldc,
                                         p->accumulate));
    PASS(asparse_halo_exchange_progress(plan->halo));
    if (plan->cover) PASS(asparse_halo_exchange_progress(plan->cover->halo));
  }
  return ASPARSE_OK;
}

/* C = A_diag·B_own. */
static asparse_status multiply_diag(asparse_plan *plan, const asparse_dense *b, asparse_dense *c) {
  const half_product product = {&plan->diag_operator, plan->n, b->values, b->ld, c->values, c->ld, false};
  return multiply(plan, &product, plan->pieces);
}

/* C += A_offd·B_halo for a chunk of columns. More of them may be under way. */
static asparse_status multiply_offd(asparse_plan *plan, int chunk, asparse_dense *c) {
  const asparse_halo_shape *shape = &plan->halo->shape;
  const int64_t n = asparse_halo_chunk_columns(shape, chunk);
  const size_t before = (size_t)asparse_halo_chunk_start(shape, chunk) * asparse_dtype_size(c->dtype);
  const bool last = chunk + 1 == plan->chunks;
  const half_product product = {
      &plan->offd_operator, n, asparse_halo_chunk(plan->halo, chunk), n, (char *)c->values + before, c->ld, true};
  if (asparse_shard_nnz(plan->offd_shard) == 0) return ASPARSE_OK;
  if (last) return multiply(plan, &product, 1);
  return asparse_halo_fail(plan->halo, multiply(plan, &product, plan->pieces));
}

/* ARRIVED + 2·chunk and ADDED + 2·chunk: that chunk of the halo is there, and multiplied (unless it is the last). */
enum {
  MARK_START = 0,
  MARK_PACKED,
  MARK_LOCAL,
  MARK_ARRIVED,
  MARK_ADDED,
  MARK_END = MARK_ARRIVED + 2 * ASPARSE_MOST_CHUNKS
};

/* C = A·B with whole rows of A. */
static asparse_status multiply_merged(asparse_plan *plan, const asparse_dense *b, asparse_dense *c) {
  asparse_dense all = *b;
  if (plan->halo->n_rows > 0) {
    PASS(asparse_merged_gather(plan->merged, plan->halo, b->values, b->ld));
    all.values = plan->merged->b;
    all.ld = plan->n;
  }
  PASS(multiply_diag(plan, &all, c));
  return plan->engine->backend->mark(plan->engine, MARK_END);
}

/* b and c in the engine's space. */
static asparse_status execute(asparse_plan *plan, const asparse_dense *b, asparse_dense *c) {
  asparse_engine *engine = plan->engine;
  const asparse_backend *backend = engine->backend;
  PASS(backend->mark(engine, MARK_START));
  if (plan->matrix->comm->size == 1) { /* nothing to exchange, and no marks that a short multiplication would feel */
    PASS(multiply_diag(plan, b, c));
    return backend->mark(engine, MARK_END);
  }
  PASS(asparse_halo_exchange_begin(plan->halo, b->values, b->ld));
  if (plan->cover) PASS(asparse_halo_fail(plan->halo, asparse_cover_begin(plan->cover, b->values, b->ld)));
  PASS(backend->mark(engine, MARK_PACKED));
  if (!plan->merged) PASS(asparse_halo_fail(plan->halo, multiply_diag(plan, b, c)));
  PASS(backend->mark(engine, MARK_LOCAL));
  for (int chunk = 0; chunk < plan->chunks; chunk++) {
    PASS(asparse_halo_exchange_end_chunk(plan->halo, chunk));
    PASS(backend->mark(engine, MARK_ARRIVED + 2 * chunk));
    if (plan->merged) return multiply_merged(plan, b, c);
    PASS(multiply_offd(plan, chunk, c));
    if (chunk + 1 < plan->chunks) PASS(backend->mark(engine, MARK_ADDED + 2 * chunk));
  }
  if (plan->cover) PASS(asparse_cover_end(plan->cover, c->values, c->ld));
  return backend->mark(engine, MARK_END);
}

/* The first time; all ranks or none. Collective. */
static asparse_status create_engine_blocks(asparse_plan *plan) {
  if (plan->engine_b) return ASPARSE_OK;
  asparse_status status = asparse_plan_engine_blocks(plan, &plan->engine_b, &plan->engine_c);
  status = asparse_comm_agree(plan->matrix->comm, status);
  if (status != ASPARSE_OK) asparse_dense_destroy(&plan->engine_b), asparse_dense_destroy(&plan->engine_c);
  return status;
}

/* b and c in the layout of the multiplication, anywhere. */
static asparse_status execute_blocks(asparse_plan *plan, const asparse_dense *b, asparse_dense *c) {
  const asparse_space space = plan->engine->backend->space;
  if (b->space == space && c->space == space) {
    PASS(execute(plan, b, c));
    return space == ASPARSE_SPACE_HOST ? asparse_plan_wait(plan) : ASPARSE_OK;
  }
  PASS(create_engine_blocks(plan));
  asparse_dense *c_there = c->space == space ? c : plan->engine_c;
  if (b->space != space) PASS(asparse_plan_copy(plan, b, plan->engine_b));
  PASS(execute(plan, b->space == space ? b : plan->engine_b, c_there));
  if (c->space != space) PASS(asparse_plan_copy(plan, c_there, c));
  return asparse_plan_wait(plan);
}

/* B to blocks of columns, the multiplication, C back to rows. */
static asparse_status execute_rows(asparse_plan *plan, const asparse_dense *b, asparse_dense *c) {
  asparse_stats *stats = &plan->stats;
  double start = asparse_seconds();
  PASS(asparse_layout_to_block(plan->b_layout, b, plan->b_block));
  stats->layout_seconds = asparse_seconds() - start;
  PASS(execute_blocks(plan, plan->b_block, plan->c_block));
  start = asparse_seconds();
  PASS(asparse_layout_to_slice(plan->c_layout, plan->c_block, c));
  const double seconds = asparse_seconds() - start;
  stats->layout_seconds += seconds;
  stats->total_seconds += seconds;
  return ASPARSE_OK;
}

asparse_status asparse_plan_execute(asparse_plan *plan, const asparse_dense *b, asparse_dense *c) {
  PASS(check_operands(plan, b, c));
  return plan->b_layout ? execute_rows(plan, b, c) : execute_blocks(plan, b, c);
}

/* Waiting for chunks of the halo, and multiplying them. */
static asparse_status take_halo_times(asparse_plan *plan) {
  const asparse_backend *backend = plan->engine->backend;
  asparse_stats *stats = &plan->stats;
  stats->exposed_seconds = stats->offd_seconds = 0;
  for (int chunk = 0; chunk < plan->chunks; chunk++) {
    const int before = chunk == 0 ? MARK_LOCAL : MARK_ADDED + 2 * (chunk - 1), arrived = MARK_ARRIVED + 2 * chunk;
    const int after = chunk + 1 < plan->chunks ? MARK_ADDED + 2 * chunk : MARK_END;
    double waiting = 0, multiplying = 0;
    PASS(backend->between(plan->engine, before, arrived, &waiting));
    PASS(backend->between(plan->engine, arrived, after, &multiplying));
    stats->exposed_seconds += waiting;
    stats->offd_seconds += multiplying;
  }
  return ASPARSE_OK;
}

asparse_status asparse_plan_wait(asparse_plan *plan) {
  asparse_engine *engine = plan->engine;
  asparse_stats *stats = &plan->stats;
  PASS(asparse_halo_wait(plan->halo));
  if (plan->cover) PASS(asparse_halo_wait(plan->cover->halo));
  PASS(engine->backend->wait(engine));
  PASS(engine->backend->between(engine, MARK_START, MARK_END, &stats->total_seconds));
  if (plan->matrix->comm->size == 1) {
    stats->diag_seconds = stats->total_seconds;
    return ASPARSE_OK;
  }
  PASS(asparse_halo_times(plan->halo, &stats->pack_seconds, &stats->communication_seconds));
  if (plan->cover) {
    double pack = 0, communication = 0;
    PASS(asparse_halo_times(plan->cover->halo, &pack, &communication));
    stats->pack_seconds += pack;
    if (communication > stats->communication_seconds) stats->communication_seconds = communication;
  }
  PASS(engine->backend->between(engine, MARK_PACKED, MARK_LOCAL, &stats->diag_seconds));
  PASS(take_halo_times(plan));
  stats->total_seconds += stats->layout_seconds;
  return ASPARSE_OK;
}

void *asparse_plan_stream(const asparse_plan *plan) {
  return plan->engine->backend->stream(plan->engine, ASPARSE_QUEUE_COMPUTE);
}
