/* B and C of a plan: on the host, or in the memory its engine computes in. */
#include "base/dense.h"
#include "plan/plan.h"

asparse_status asparse_plan_operands(const asparse_plan *plan, asparse_dense **b, asparse_dense **c) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  TRY(asparse_dense_create(b, a->part.k_local, plan->n, a->dtype));
  TRY(asparse_dense_create(c, a->part.m_local, plan->n, plan->c_dtype));
  return ASPARSE_OK;
cleanup:
  asparse_dense_destroy(b);
  return status;
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
