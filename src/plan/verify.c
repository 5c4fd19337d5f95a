#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/dense.h"
#include "plan/plan.h"

/* Rows looked at element by element on each rank: a sample, and suspects. */
enum { SAMPLE_ROWS = 32, SUSPECT_ROWS = 256 };
static const double SAMPLE_WORK = 2e7; /* multiply-adds spent on the sample of one rank */

typedef struct verifier {
  const asparse_plan *plan;
  const asparse_dense *b, *c;
  double u;          /* unit roundoff of the accumulation */
  double rounding;   /* of C relative to its elements, beyond the accumulation's; 0 where they are stored as summed */
  double smallest;   /* spacing of subnormal numbers of C */
  double largest;    /* overflow threshold of C */
  long double *sum;  /* [n] Σ a·b of one row */
  long double *size; /* [n] Σ |a|·|b| of one row */
  double *plain;     /* [n] the same sum in the working precision by a plain loop */
  double *half;      /* [n] its share of own or of halo columns */
  double *xb;        /* [k_local × 2] own rows of Bx and |B|·1 */
  asparse_engine *engine; /* the host, which checks whatever multiplied */
  asparse_halo *halo;     /* the same for halo rows */
  const void *halo_rows;  /* [n_rows × n] rows of B of other ranks */
  asparse_verification result;
  char failure[256];
} verifier;

/* γ_q = q·u / (1 − q·u): Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., ch. 3. One
 * more rounding than entries: the halo part of a row is added to its own part. */
static double gamma_bound(double q, double u) { return q * u < 1 ? q * u / (1 - q * u) : INFINITY; }

/* 6·√q·u: what random roundings do not exceed in practice (Higham & Mary, SIAM J. Sci. Comput. 41(5),
 * 2019), used to detect faults that hide below the worst case. */
static double detection_bound(double q, double u) { return 6 * sqrt(q) * u; }

static int64_t row_length(const verifier *v, int64_t i) {
  const asparse_local_csr *diag = v->plan->matrix->part.diag, *offd = v->plan->offd;
  return diag->row_ptr[i + 1] - diag->row_ptr[i] + offd->row_ptr[i + 1] - offd->row_ptr[i];
}

/* ---- one row, element by element --------------------------------------------------------------- */

/* Adds row i of one half of A to sum, size and plain. */
static void add_row(verifier *v, const asparse_local_csr *a, int64_t i, const void *b, int64_t ldb) {
  int64_t n = v->plan->n;
  bool fp64 = a->dtype == ASPARSE_FP64;
  for (int64_t j = 0; j < n; j++) v->half[j] = 0;
  for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
    double x = asparse_load(a->dtype, a->values, e);
    for (int64_t j = 0; j < n; j++) {
      double y = asparse_load(a->dtype, b, a->col_idx[e] * ldb + j);
      v->sum[j] += (long double)x * y;
      v->size[j] += fabsl((long double)x * y);
      v->half[j] = fp64 ? fma(x, y, v->half[j]) : fmaf((float)x, (float)y, (float)v->half[j]);
    }
  }
  for (int64_t j = 0; j < n; j++) {
    double whole = v->plain[j] + v->half[j];
    v->plain[j] = fp64 ? whole : (float)whole;
  }
}

static void row_fails(verifier *v, int64_t i, int64_t j, double found, double expected) {
  int64_t row = asparse_matrix_row(v->plan->matrix, i);
  if (v->result.failed_row >= 0) return;
  v->result.failed_row = row;
  snprintf(v->failure, sizeof v->failure, "C(%lld, %lld) is %.17g where A·B gives %.17g", (long long)row, (long long)j,
           found, expected);
}

/* Inf and NaN must stand where CSR arithmetic puts them; sums beyond the largest number cannot be checked. */
static bool special_agrees(const verifier *v, double found, double expected, double size) {
  if (isnan(expected)) return isnan(found);
  if (isinf(expected)) return found == expected;
  return size >= v->largest;
}

static void check_element(verifier *v, int64_t i, int64_t j, double q) {
  const asparse_dense *c = v->c;
  double found = asparse_load(c->dtype, c->values, i * c->ld + j);
  double expected = (double)v->sum[j], size = (double)v->size[j];
  v->result.elements_checked++;
  if (!isfinite(found) || !isfinite(size) || size >= v->largest) {
    if (!special_agrees(v, found, expected, size)) row_fails(v, i, j, found, expected);
    return;
  }
  double tiny = (q + 1) * v->smallest + v->rounding * fabs(found);
  double error = (double)fabsl((long double)found - v->sum[j]);
  double bound = gamma_bound(q + 1, v->u) * size + tiny, detect = detection_bound(q + 1, v->u) * size + tiny;
  /* Long sums of like terms round with a bias: what a plain loop does as well is no fault. */
  double excuse = 4 * (double)fabsl((long double)v->plain[j] - v->sum[j]);
  if (size > 0 && error / size > v->result.max_relative_error) v->result.max_relative_error = error / size;
  if (error > 0 && error / bound > v->result.worst_bound_ratio) v->result.worst_bound_ratio = error / bound;
  if (error > 0 && error / detect > v->result.worst_detect_ratio) v->result.worst_detect_ratio = error / detect;
  if (error > bound || (error > detect && error > excuse)) row_fails(v, i, j, found, expected);
}

static void check_row(verifier *v, int64_t i) {
  const asparse_plan *plan = v->plan;
  int64_t n = plan->n;
  for (int64_t j = 0; j < n; j++) v->sum[j] = v->size[j] = v->plain[j] = 0;
  add_row(v, plan->matrix->part.diag, i, v->b->values, v->b->ld);
  add_row(v, plan->offd, i, v->halo_rows, n);
  for (int64_t j = 0; j < n; j++) check_element(v, i, j, (double)row_length(v, i));
}

static void check_sample(verifier *v, uint64_t seed) {
  int64_t m = v->plan->matrix->part.m_local;
  double work = 0;
  for (int s = 0; s < SAMPLE_ROWS && s < m && work < SAMPLE_WORK; s++) {
    int64_t i = m <= SAMPLE_ROWS ? s : (int64_t)(asparse_mix64(seed ^ (uint64_t)s) % (uint64_t)m);
    check_row(v, i);
    work += (double)row_length(v, i) * (double)v->plan->n;
  }
}

/* ---- all rows, Freivalds ------------------------------------------------------------------------ */

static double sign_of(uint64_t seed, int64_t j) { return asparse_mix64(seed ^ (uint64_t)j) >> 63 ? -1.0 : 1.0; }

/* Bx and |B|·1 for own rows. */
static void project_b(verifier *v, uint64_t seed) {
  const asparse_dense *b = v->b;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < b->m; i++) {
    double sum = 0, size = 0;
    for (int64_t j = 0; j < b->n; j++) {
      double x = asparse_load(b->dtype, b->values, i * b->ld + j);
      sum += x * sign_of(seed, j);
      size += fabs(x);
    }
    v->xb[2 * i] = sum;
    v->xb[2 * i + 1] = size;
  }
}

/* Row i of A·[Bx, |B|·1], with |A| for the second. */
static void multiply_projected(const asparse_local_csr *a, int64_t i, const double *xb, double *sum, double *size) {
  for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
    double x = asparse_load(a->dtype, a->values, e);
    *sum += x * xb[2 * a->col_idx[e]];
    *size += fabs(x) * xb[2 * a->col_idx[e] + 1];
  }
}

/* |A(Bx) − Cx| of row i beside its bounds. Rows with Inf or NaN are suspects. */
static bool row_is_suspect(const verifier *v, int64_t i, uint64_t seed, double *bound_ratio) {
  const asparse_dense *c = v->c;
  double sum = 0, size = 0, cx = 0, c_size = 0;
  multiply_projected(v->plan->matrix->part.diag, i, v->xb, &sum, &size);
  multiply_projected(v->plan->offd, i, v->halo->buffer, &sum, &size);
  for (int64_t j = 0; j < c->n; j++) {
    double x = asparse_load(c->dtype, c->values, i * c->ld + j);
    cx += x * sign_of(seed, j);
    c_size += fabs(x);
  }
  double q = (double)row_length(v, i), n = (double)c->n, error = fabs(sum - cx);
  if (!isfinite(size) || !isfinite(c_size) || size >= v->largest) return true;
  /* The check itself rounds in fp64, over q + n terms on either side. */
  double slack = gamma_bound(2 * (q + n), DBL_EPSILON / 2) * (size + c_size) + n * (q + 1) * v->smallest;
  slack += v->rounding * c_size;
  double bound = gamma_bound(q + 1, v->u) * size + slack;
  *bound_ratio = error > 0 ? error / bound : 0;
  return error > detection_bound(q + 1, v->u) * size + slack;
}

static void check_all_rows(verifier *v, uint64_t seed) {
  int64_t m = v->plan->matrix->part.m_local, n_suspects = 0, suspects[SUSPECT_ROWS];
  double worst = 0;
#pragma omp parallel for schedule(dynamic, 256) reduction(max : worst)
  for (int64_t i = 0; i < m; i++) {
    double ratio = 0;
    bool suspect = row_is_suspect(v, i, seed, &ratio);
    if (ratio > worst) worst = ratio;
    if (!suspect) continue;
#pragma omp critical(asparse_suspects)
    {
      if (n_suspects < SUSPECT_ROWS) suspects[n_suspects] = i;
      n_suspects++;
    }
  }
  if (worst > v->result.worst_bound_ratio) v->result.worst_bound_ratio = worst;
  v->result.rows_checked = m;
  for (int64_t s = 0; s < n_suspects && s < SUSPECT_ROWS; s++) check_row(v, suspects[s]);
  if (n_suspects > SUSPECT_ROWS) v->result.rows_unchecked = n_suspects - SUSPECT_ROWS;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static asparse_status verifier_allocate(verifier *v) {
  asparse_status status = ASPARSE_OK;
  TRY_THAT(v->plan->offd, ASPARSE_ERR_USAGE, "verification needs A in CSR: create the plan with keep_csr");
  ALLOC(v->sum, v->plan->n);
  ALLOC(v->size, v->plan->n);
  ALLOC(v->plain, v->plan->n);
  ALLOC(v->half, v->plan->n);
  ALLOC(v->xb, 2 * v->b->m);
  TRY(asparse_engine_open(ASPARSE_BACKEND_HOST, 0, &v->engine));
cleanup:
  return status;
}

static void verifier_free(verifier *v) {
  asparse_free(v->sum);
  asparse_free(v->size);
  asparse_free(v->plain);
  asparse_free(v->half);
  asparse_free(v->xb);
  asparse_halo_destroy(&v->halo);
  asparse_engine_close(&v->engine);
}

static asparse_status combine(asparse_comm *comm, verifier *v) {
  asparse_status status = ASPARSE_OK;
  asparse_verification *r = &v->result;
  int64_t sums[3] = {r->rows_checked, r->elements_checked, r->rows_unchecked};
  double worst[3] = {r->worst_bound_ratio, r->worst_detect_ratio, r->max_relative_error};
  int64_t first = r->failed_row < 0 ? INT64_MAX : r->failed_row;
  if (r->failed_row >= 0)
    status =
        ASPARSE_FAIL(ASPARSE_ERR_VERIFY, "verification failed: %s; the result is wrong, do not use it", v->failure);
  asparse_status agreed = asparse_comm_agree(comm, status);
  TRY(asparse_comm_sum(comm, sums, 3));
  TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, worst, 3, MPI_DOUBLE, MPI_MAX, comm->mpi));
  TRY(asparse_comm_min(comm, &first, 1));
  *r = (asparse_verification){.passed = agreed == ASPARSE_OK,
                              .rows_checked = sums[0],
                              .elements_checked = sums[1],
                              .rows_unchecked = sums[2],
                              .worst_bound_ratio = worst[0],
                              .worst_detect_ratio = worst[1],
                              .max_relative_error = worst[2],
                              .failed_row = first == INT64_MAX ? -1 : first};
  status = agreed;
cleanup:
  return status;
}

asparse_status asparse_verify(asparse_plan *plan, const asparse_dense *b, const asparse_dense *c, uint64_t seed,
                              asparse_verification *verification) {
  asparse_status status = ASPARSE_OK;
  asparse_matrix *a = plan->matrix;
  bool fp64 = a->dtype == ASPARSE_FP64, all = plan->exchange == ASPARSE_EXCHANGE_REPLICATE;
  verifier v = {.plan = plan, .b = b, .c = c, .result = {.failed_row = -1}};
  /* Tensor cores truncate. Blanchard, Higham, Lopez, Mary, Pranesh, SIAM J. Sci. Comput. 42(3), 2020. */
  const bool truncates = a->dtype == ASPARSE_BF16 && plan->engine->backend->space == ASPARSE_SPACE_DEVICE;
  v.u = fp64 ? 0x1p-53 : truncates ? 0x1p-23 : 0x1p-24;
  v.rounding = plan->c_dtype == ASPARSE_BF16 ? 0x1p-8 : 0;
  v.smallest = fp64 ? 0x1p-1074 : 0x1p-149;
  v.largest = fp64 ? DBL_MAX / 4 : FLT_MAX / 4;
  TRY_THAT(b->space == ASPARSE_SPACE_HOST && c->space == ASPARSE_SPACE_HOST, ASPARSE_ERR_USAGE,
           "B and C are verified on the host; copy them there first");
  TRY(asparse_comm_agree(a->comm, verifier_allocate(&v)));
  TRY(asparse_halo_create(a->comm, v.engine, a->col_starts, all ? NULL : a->part.col_map_offd, a->part.n_halo, 2,
                          ASPARSE_FP64, &v.halo));
  TRY(asparse_comm_agree(a->comm, asparse_halo_host_rows(plan->halo, &v.halo_rows)));
  project_b(&v, seed);
  TRY(asparse_halo_exchange_begin(v.halo, v.xb, 2));
  TRY(asparse_halo_exchange_end(v.halo));
  check_sample(&v, seed);
  check_all_rows(&v, seed);
  TRY(combine(a->comm, &v));
cleanup:
  *verification = v.result;
  verifier_free(&v);
  return status;
}
