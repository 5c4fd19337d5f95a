#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/dense.h"
#include "plan/columns.h"
#include "plan/plan.h"

/* Rows looked at element by element on each rank: suspects, and a sample. */
enum { SUSPECT_ROWS = 256, SAMPLE_ROWS = 32 };
static const double SAMPLE_WORK = 2e7; /* multiply-adds spent on the sample of one rank */

typedef struct verifier {
  const asparse_plan *plan;
  const asparse_local_csr *diag, *offd; /* of the matrix */
  const asparse_dense *b, *c;           /* in blocks of columns */
  double u;                             /* unit roundoff of the accumulation */
  double rounding;   /* of C relative to its elements, beyond the accumulation's; 0 where they are stored as summed */
  double smallest;   /* spacing of subnormal numbers of C */
  double largest;    /* overflow threshold of C */
  long double *sum;  /* [n] Σ a·b of one row */
  long double *size; /* [n] Σ |a|·|b| of one row */
  double *plain;     /* [n] the same sum in the working precision by a plain loop */
  double *half;      /* [n] its share of own or of halo columns */
  double *own;       /* [n] the share of own columns, if the halo's is added to it as it is stored; else 0 */
  double *xb;        /* [k_local × 2] own rows of Bx and |B|·1 */
  asparse_engine *engine;                           /* the host, which checks whatever multiplied */
  asparse_halo *halo;                               /* xb of halo rows */
  int64_t rows[SUSPECT_ROWS + SAMPLE_ROWS], n_rows; /* to be looked at element by element */
  asparse_columns row_columns;                      /* their halo columns, as global columns */
  asparse_halo *row_halo;                           /* those rows of B */
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
  return v->diag->row_ptr[i + 1] - v->diag->row_ptr[i] + v->offd->row_ptr[i + 1] - v->offd->row_ptr[i];
}

/* ---- one row, element by element --------------------------------------------------------------- */

static int64_t halo_row(const verifier *v, int32_t halo_col) {
  return asparse_columns_position(&v->row_columns, v->plan->matrix->part.col_map_offd[halo_col]);
}

/* Adds row i of diag (b: own rows of B) or offd (b: row_halo's) to sum, size and plain. */
static void add_row(verifier *v, const asparse_local_csr *a, int64_t i, const void *b, int64_t ldb) {
  int64_t n = v->plan->n;
  bool fp64 = a->dtype == ASPARSE_FP64;
  for (int64_t j = 0; j < n; j++) v->half[j] = 0;
  for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
    double x = asparse_load(a->dtype, a->values, e);
    int64_t row = a == v->diag ? a->col_idx[e] : halo_row(v, a->col_idx[e]);
    for (int64_t j = 0; j < n; j++) {
      double y = asparse_load(a->dtype, b, row * ldb + j);
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
  const asparse_matrix *a = v->plan->matrix;
  int64_t first = a->row_starts[a->grid.column_comm->rank];
  int64_t row = asparse_matrix_original_row(a, a->row_starts, first + i);
  if (v->result.failed_row >= 0) return;
  v->result.failed_row = row;
  snprintf(v->failure, sizeof v->failure, "C(%lld, %lld) is %.17g where A·B gives %.17g", (long long)row,
           (long long)(v->plan->column_begin + j), found, expected);
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
  double tiny = (q + 1) * v->smallest + v->rounding * (fabs(found) + fabs(v->own[j]));
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
  add_row(v, v->diag, i, v->b->values, v->b->ld);
  const bool is_added_to = v->offd->row_ptr[i] < v->offd->row_ptr[i + 1];
  for (int64_t j = 0; j < n; j++) v->own[j] = is_added_to ? v->half[j] : 0;
  add_row(v, v->offd, i, v->row_halo->buffer, n);
  for (int64_t j = 0; j < n; j++) check_element(v, i, j, (double)row_length(v, i));
}

static void add_sample(verifier *v, uint64_t seed) {
  int64_t m = v->plan->matrix->part.m_local;
  double work = 0;
  for (int s = 0; s < SAMPLE_ROWS && s < m && work < SAMPLE_WORK; s++) {
    int64_t i = m <= SAMPLE_ROWS ? s : (int64_t)(asparse_mix64(seed ^ (uint64_t)s) % (uint64_t)m);
    v->rows[v->n_rows++] = i;
    work += (double)row_length(v, i) * (double)v->plan->n;
  }
}

/* The global columns of the rows' halo entries, each once. Local. */
static asparse_status collect_columns(verifier *v) {
  asparse_status status = ASPARSE_OK;
  int64_t count = 0, *columns = NULL;
  for (int64_t r = 0; r < v->n_rows; r++) count += v->offd->row_ptr[v->rows[r] + 1] - v->offd->row_ptr[v->rows[r]];
  ALLOC(columns, count);
  count = 0;
  for (int64_t r = 0; r < v->n_rows; r++) {
    for (int64_t e = v->offd->row_ptr[v->rows[r]]; e < v->offd->row_ptr[v->rows[r] + 1]; e++)
      columns[count++] = v->plan->matrix->part.col_map_offd[v->offd->col_idx[e]];
  }
  TRY(asparse_columns_create(&v->row_columns, v->plan->matrix->k, columns, count, 0, 0));
cleanup:
  asparse_free(columns);
  return status;
}

/* Collective. Fetches the rows of B that the chosen rows of C need, and looks at every element of them. */
static asparse_status check_rows(verifier *v) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = v->plan->matrix;
  TRY(asparse_comm_agree(a->comm, collect_columns(v)));
  status = asparse_halo_create(a->grid.column_comm, v->engine, a->col_starts, v->row_columns.sorted, v->row_columns.n,
                               (asparse_halo_shape){v->plan->n, 1, a->dtype}, &v->row_halo);
  TRY(asparse_comm_agree(a->comm, status));
  TRY(asparse_halo_exchange_begin(v->row_halo, v->b->values, v->b->ld));
  TRY(asparse_halo_exchange_end(v->row_halo));
  for (int64_t r = 0; r < v->n_rows; r++) check_row(v, v->rows[r]);
cleanup:
  return status;
}

/* ---- all rows, Freivalds ------------------------------------------------------------------------ */

/* x of column j of this rank's block. */
static double sign_of(const verifier *v, uint64_t seed, int64_t j) {
  return asparse_mix64(seed ^ (uint64_t)(v->plan->column_begin + j)) >> 63 ? -1.0 : 1.0;
}

/* Bx and |B|·1 for own rows. */
static void project_b(verifier *v, uint64_t seed) {
  const asparse_dense *b = v->b;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < b->m; i++) {
    double sum = 0, size = 0;
    for (int64_t j = 0; j < b->n; j++) {
      double x = asparse_load(b->dtype, b->values, i * b->ld + j);
      sum += x * sign_of(v, seed, j);
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
  multiply_projected(v->diag, i, v->xb, &sum, &size);
  const double own_size = v->offd->row_ptr[i] < v->offd->row_ptr[i + 1] ? size : 0;
  multiply_projected(v->offd, i, v->halo->buffer, &sum, &size);
  for (int64_t j = 0; j < c->n; j++) {
    double x = asparse_load(c->dtype, c->values, i * c->ld + j);
    cx += x * sign_of(v, seed, j);
    c_size += fabs(x);
  }
  double q = (double)row_length(v, i), n = (double)c->n, error = fabs(sum - cx);
  if (!isfinite(size) || !isfinite(c_size) || size >= v->largest) return true;
  /* The check itself rounds in fp64, over q + n terms on either side. */
  double slack = gamma_bound(2 * (q + n), DBL_EPSILON / 2) * (size + c_size) + n * (q + 1) * v->smallest;
  slack += v->rounding * (c_size + own_size);
  double bound = gamma_bound(q + 1, v->u) * size + slack;
  *bound_ratio = error > 0 ? error / bound : 0;
  return error > detection_bound(q + 1, v->u) * size + slack;
}

static void check_all_rows(verifier *v, uint64_t seed) {
  int64_t m = v->plan->matrix->part.m_local, n_suspects = 0;
  double worst = 0;
#pragma omp parallel for schedule(dynamic, 256) reduction(max : worst)
  for (int64_t i = 0; i < m; i++) {
    double ratio = 0;
    bool suspect = row_is_suspect(v, i, seed, &ratio);
    if (ratio > worst) worst = ratio;
    if (!suspect) continue;
#pragma omp critical(asparse_suspects)
    {
      if (n_suspects < SUSPECT_ROWS) v->rows[v->n_rows++] = i;
      n_suspects++;
    }
  }
  if (worst > v->result.worst_bound_ratio) v->result.worst_bound_ratio = worst;
  v->result.rows_checked = m;
  if (n_suspects > SUSPECT_ROWS) v->result.rows_unchecked = n_suspects - SUSPECT_ROWS;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static asparse_status verifier_allocate(verifier *v) {
  asparse_status status = ASPARSE_OK;
  TRY_THAT(v->diag && v->offd, ASPARSE_ERR_USAGE, "verification needs A in CSR: create the plan with keep_csr");
  ALLOC(v->sum, v->plan->n);
  ALLOC(v->size, v->plan->n);
  ALLOC(v->plain, v->plan->n);
  ALLOC(v->half, v->plan->n);
  ALLOC(v->own, v->plan->n);
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
  asparse_free(v->own);
  asparse_free(v->xb);
  asparse_halo_destroy(&v->halo);
  asparse_halo_destroy(&v->row_halo);
  asparse_columns_destroy(&v->row_columns);
  asparse_engine_close(&v->engine);
}

/* Every part of the rows is there once for each block of columns. */
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
                              .rows_checked = sums[0] / v->plan->matrix->grid.columns,
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

/* What the arithmetic of the plan may do to C. */
static void set_bounds(verifier *v) {
  const asparse_plan *plan = v->plan;
  const asparse_dtype dtype = plan->matrix->dtype;
  const bool fp64 = dtype == ASPARSE_FP64;
  /* Tensor cores truncate. Blanchard, Higham, Lopez, Mary, Pranesh, SIAM J. Sci. Comput. 42(3), 2020. */
  const bool truncates = dtype == ASPARSE_BF16 && plan->engine->backend->space == ASPARSE_SPACE_DEVICE;
  v->u = fp64 ? 0x1p-53 : truncates ? 0x1p-23 : 0x1p-24;
  v->rounding = plan->c_dtype == ASPARSE_BF16 ? 0x1p-8 : 0;
  v->smallest = fp64 ? 0x1p-1074 : 0x1p-149;
  v->largest = fp64 ? DBL_MAX / 4 : FLT_MAX / 4;
}

asparse_status asparse_verify(asparse_plan *plan, const asparse_dense *b, const asparse_dense *c, uint64_t seed,
                              asparse_verification *verification) {
  asparse_status status = ASPARSE_OK;
  asparse_matrix *a = plan->matrix;
  verifier v = {.plan = plan, .diag = a->part.diag, .offd = a->part.offd, .b = b, .c = c, .result = {.failed_row = -1}};
  set_bounds(&v);
  TRY_THAT(b->space == ASPARSE_SPACE_HOST && c->space == ASPARSE_SPACE_HOST, ASPARSE_ERR_USAGE,
           "B and C are verified on the host; copy them there first");
  if (plan->b_layout) {
    TRY(asparse_layout_to_block(plan->b_layout, b, plan->b_block));
    TRY(asparse_layout_to_block(plan->c_layout, c, plan->c_block));
    v.b = plan->b_block;
    v.c = plan->c_block;
  }
  TRY(asparse_comm_agree(a->comm, verifier_allocate(&v)));
  status = asparse_halo_create(a->grid.column_comm, v.engine, a->col_starts, a->part.col_map_offd, a->part.n_halo,
                               (asparse_halo_shape){2, 1, ASPARSE_FP64}, &v.halo);
  TRY(asparse_comm_agree(a->comm, status));
  project_b(&v, seed);
  TRY(asparse_halo_exchange_begin(v.halo, v.xb, 2));
  TRY(asparse_halo_exchange_end(v.halo));
  check_all_rows(&v, seed);
  add_sample(&v, seed);
  TRY(check_rows(&v));
  TRY(combine(a->comm, &v));
cleanup:
  *verification = v.result;
  verifier_free(&v);
  return status;
}
