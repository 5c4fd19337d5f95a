/* B and C of a plan: on the host, or in the memory its engine computes in. */
#include "base/dense.h"
#include "plan/plan.h"

/* starts: of parts. Rows are even slices of a part. */
static asparse_extent extent(const asparse_plan *plan, const int64_t *starts, asparse_placement placement) {
  const asparse_grid *grid = &plan->matrix->grid;
  const int64_t *part = starts + grid->column_comm->rank;
  asparse_extent e = {.row_begin = part[0], .m = part[1] - part[0], .col_begin = plan->column_begin, .n = plan->n};
  if (placement == ASPARSE_PLACEMENT_ROWS && grid->columns > 1) {
    const int64_t begin = asparse_even_start(e.m, grid->columns, grid->row_comm->rank);
    const int64_t end = asparse_even_start(e.m, grid->columns, grid->row_comm->rank + 1);
    e = (asparse_extent){.row_begin = part[0] + begin, .m = end - begin, .n = plan->n_global};
  }
  return e;
}

asparse_extent asparse_plan_extent_of_b(const asparse_plan *plan, asparse_placement placement) {
  return extent(plan, plan->matrix->col_starts, placement);
}

asparse_extent asparse_plan_extent_of_c(const asparse_plan *plan, asparse_placement placement) {
  return extent(plan, plan->matrix->row_starts, placement);
}

static asparse_extent extent_of_b(const asparse_plan *plan) {
  return asparse_plan_extent_of_b(plan, asparse_plan_placement(plan));
}

static asparse_extent extent_of_c(const asparse_plan *plan) {
  return asparse_plan_extent_of_c(plan, asparse_plan_placement(plan));
}

int64_t asparse_plan_b_row(const asparse_plan *plan, int64_t i) {
  return asparse_matrix_original_row(plan->matrix, plan->matrix->col_starts, extent_of_b(plan).row_begin + i);
}

int64_t asparse_plan_c_row(const asparse_plan *plan, int64_t i) {
  return asparse_matrix_original_row(plan->matrix, plan->matrix->row_starts, extent_of_c(plan).row_begin + i);
}

int64_t asparse_plan_column(const asparse_plan *plan, int64_t j) { return extent_of_b(plan).col_begin + j; }

void asparse_plan_fill_random(const asparse_plan *plan, asparse_dense *b, uint64_t seed) {
  const int64_t col_begin = asparse_plan_column(plan, 0);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < b->m; i++) {
    const int64_t row = asparse_plan_b_row(plan, i);
    for (int64_t j = 0; j < b->n; j++)
      asparse_store(b->dtype, b->values, i * b->ld + j, asparse_random_element(seed, row, col_begin + j));
  }
}

asparse_status asparse_plan_operands(const asparse_plan *plan, asparse_dense **b, asparse_dense **c) {
  asparse_status status = ASPARSE_OK;
  const asparse_extent of_b = extent_of_b(plan), of_c = extent_of_c(plan);
  TRY(asparse_dense_create(b, of_b.m, of_b.n, plan->matrix->dtype));
  TRY(asparse_dense_create(c, of_c.m, of_c.n, plan->c_dtype));
  return ASPARSE_OK;
cleanup:
  asparse_dense_destroy(b);
  return status;
}

static asparse_status layout_of(const asparse_plan *plan, const int64_t *starts, asparse_dtype dtype,
                                asparse_layout **layout) {
  const asparse_matrix *a = plan->matrix;
  const int64_t *part = starts + a->grid.column_comm->rank;
  return asparse_comm_agree(a->comm,
                            asparse_layout_create(a->grid.row_comm, part[1] - part[0], plan->n_global, dtype, layout));
}

asparse_status asparse_plan_layout_of_b(const asparse_plan *plan, asparse_layout **layout) {
  return layout_of(plan, plan->matrix->col_starts, plan->matrix->dtype, layout);
}

asparse_status asparse_plan_layout_of_c(const asparse_plan *plan, asparse_layout **layout) {
  return layout_of(plan, plan->matrix->row_starts, plan->c_dtype, layout);
}

/* Rows of whole 16-byte pieces, which is what the fast paths of the GPU kernels read and write. */
static int64_t engine_ld(int64_t n, asparse_dtype dtype) {
  const int64_t piece = 16 / (int64_t)asparse_dtype_size(dtype);
  return (n + piece - 1) / piece * piece;
}

static asparse_status create_on_engine(const asparse_plan *plan, int64_t m, asparse_dtype dtype, const char *what,
                                       asparse_dense **out) {
  asparse_status status = ASPARSE_OK;
  const asparse_backend *backend = plan->engine->backend;
  asparse_dense *a = NULL;
  const int64_t ld = engine_ld(plan->n, dtype);
  int64_t count = 0;
  TRY_THAT(!__builtin_mul_overflow(m, ld, &count), ASPARSE_ERR_MEMORY, "%s of %lld × %lld exceeds 64-bit sizes", what,
           (long long)m, (long long)ld);
  ALLOC_ZERO(a, 1);
  *a = (asparse_dense){
      .m = m, .n = plan->n, .ld = ld, .dtype = dtype, .space = backend->space, .release = backend->release};
  TRY(backend->allocate(plan->engine, count, asparse_dtype_size(dtype), what, &a->values));
  *out = a;
  a = NULL;
cleanup:
  asparse_free(a);
  return status;
}

asparse_status asparse_plan_engine_operands(const asparse_plan *plan, asparse_dense **b, asparse_dense **c) {
  if (!plan->b_layout) return asparse_plan_engine_blocks(plan, b, c);
  if (plan->engine->backend->space == ASPARSE_SPACE_HOST) return asparse_plan_operands(plan, b, c);
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "rows of B and C change their layout on the host; operands on a GPU go with "
                                         "asparse_options.operands = ASPARSE_PLACEMENT_PLANNER");
}

asparse_status asparse_plan_engine_blocks(const asparse_plan *plan, asparse_dense **b, asparse_dense **c) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  TRY(create_on_engine(plan, a->part.k_local, a->dtype, "B", b));
  TRY(create_on_engine(plan, a->part.m_local, plan->c_dtype, "C", c));
  return ASPARSE_OK;
cleanup:
  asparse_dense_destroy(b);
  return status;
}

asparse_status asparse_plan_copy(const asparse_plan *plan, const asparse_dense *from, asparse_dense *to) {
  const asparse_backend *backend = plan->engine->backend;
  const size_t size = asparse_dtype_size(from->dtype);
  const size_t from_pitch = (size_t)from->ld * size, to_pitch = (size_t)to->ld * size, width = (size_t)from->n * size;
  if (from->m != to->m || from->n != to->n || from->dtype != to->dtype ||
      (from->space == ASPARSE_SPACE_DEVICE && to->space == ASPARSE_SPACE_DEVICE))
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%lld × %lld %s cannot be copied to %lld × %lld %s", (long long)from->m,
                        (long long)from->n, asparse_dtype_name(from->dtype), (long long)to->m, (long long)to->n,
                        asparse_dtype_name(to->dtype));
  if (from->space == ASPARSE_SPACE_HOST)
    return backend->copy_in(plan->engine, to->values, to_pitch, from->values, from_pitch, width, (size_t)from->m);
  return backend->copy_out(plan->engine, to->values, to_pitch, from->values, from_pitch, width, (size_t)from->m);
}
