/* A product on all ranks, from the whole matrix to C, and its check against the oracle. */
#ifndef PROBLEM_H
#define PROBLEM_H

#include <math.h>
#include <string.h>

#include "plan/plan.h"
#include "slabs.h"

typedef struct problem {
  asparse_csr *whole;
  asparse_matrix *a;
  asparse_plan *plan;
  asparse_dense *b, *c;
} problem;

static inline void problem_free(problem *p) {
  asparse_dense_destroy(&p->b);
  asparse_dense_destroy(&p->c);
  asparse_plan_destroy(&p->plan);
  asparse_matrix_destroy(&p->a);
  asparse_csr_destroy(&p->whole);
}

static inline asparse_status problem_solve(problem *p, asparse_csr *slab, const asparse_options *options, int64_t n) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_matrix_create(test_comm, &slab, options, n, &p->a));
  TRY(asparse_plan_create(p->a, options, n, &p->plan));
  TRY(asparse_comm_agree(test_comm, asparse_plan_operands(p->plan, &p->b, &p->c)));
  asparse_plan_fill_random(p->plan, p->b, 7);
  memset(p->c->values, 0xff, (size_t)(p->c->m * p->c->ld) * asparse_dtype_size(p->c->dtype)); /* NaN */
  TRY(asparse_plan_execute(p->plan, p->b, p->c));
cleanup:
  return status;
}

/* |C − AB| ≤ γ·|A||B| for this rank's share, from the whole matrix and B made anew. */
static inline void assert_right(const problem *p, asparse_dtype dtype) {
  const asparse_csr *a = p->whole;
  double u = dtype == ASPARSE_FP64 ? 0x1p-52 : 0x1p-23;
  double element[2];
  for (int64_t i = 0; i < p->c->m; i++) {
    int64_t row = asparse_plan_c_row(p->plan, i);
    for (int64_t j = 0; j < p->c->n; j++) {
      double sum = 0, size = 0, q = (double)(a->row_ptr[row + 1] - a->row_ptr[row]) + 1;
      for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++) {
        asparse_store(dtype, element, 0, asparse_random_element(7, a->col_idx[e], asparse_plan_column(p->plan, j)));
        asparse_store(dtype, element + 1, 0, ((const double *)a->values)[e]);
        double x = asparse_load(dtype, element, 0) * asparse_load(dtype, element + 1, 0);
        sum += x;
        size += fabs(x);
      }
      double found = asparse_load(p->c->dtype, p->c->values, i * p->c->ld + j);
      assert_true(fabs(found - sum) <= q * u * size);
    }
  }
}

static inline void check(uint64_t *state, asparse_csr *whole, const asparse_options *options, int64_t n) {
  problem p = {.whole = whole};
  asparse_verification verification;
  assert_int_equal(problem_solve(&p, test_slab(whole, test_comm, state), options, n), ASPARSE_OK);
  assert_right(&p, p.a->dtype);
  assert_int_equal(asparse_verify(p.plan, p.b, p.c, 3, &verification), ASPARSE_OK);
  assert_true(verification.passed);
  assert_int_equal(verification.rows_checked, whole->m);
  p.whole = NULL;
  problem_free(&p);
}

/* More ranks than a machine has cores take long: fewer combinations of what is covered on fewer ranks. */
static inline bool many_ranks(void) { return test_comm->size > 4; }

#endif
