/* PETSc's sparse × dense product (MatMatMult) on the matrix and the B that asparse_solve uses.
 *
 *   mpirun -np p petsc_compare matrix.h5 [--cols N] [--repeat R] [--seed S]
 *
 * Prints one JSON line. A is assembled AIJ with the slabs of asparse_csr_read (near-equal entries),
 * B dense. The product is made once (symbolic phase, allocation, scatter) and then repeated with
 * MAT_REUSE_MATRIX; the time of a repeat is the slowest rank's. On one rank both the sequential and
 * the MPI classes are timed and the faster one is reported. */
#include <getopt.h>
#include <math.h>
#include <petscmat.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/comm.h"
#include "base/csr.h"
#include "base/dense.h"
#include "io/io.h"

typedef struct options {
  const char *path;
  int64_t cols, repeat;
  uint64_t seed;
} options;

typedef struct timing {
  const char *type;
  double best, median;   /* seconds */
  int64_t words;         /* of B received by all ranks in a product */
  double relative_error; /* largest of the sampled rows, |c − ref| / Σ|a||b| */
} timing;

#define TRY_PETSC(call)                                                                                                \
  do {                                                                                                                 \
    PetscErrorCode code_ = (call);                                                                                     \
    if (code_) {                                                                                                       \
      status = ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "PETSc error %d in %s", (int)code_, #call);                           \
      goto cleanup;                                                                                                    \
    }                                                                                                                  \
  } while (0)

static asparse_status parse(int argc, char **argv, options *o) {
  static const struct option longs[] = {{"cols", required_argument, NULL, 'n'},
                                        {"repeat", required_argument, NULL, 'r'},
                                        {"seed", required_argument, NULL, 's'},
                                        {0}};
  *o = (options){.cols = 64, .repeat = 20, .seed = 1};
  for (int c; (c = getopt_long(argc, argv, "n:r:s:", longs, NULL)) != -1;) {
    if (c == '?') return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "unknown option");
    if (c == 'n') o->cols = strtoll(optarg, NULL, 10);
    if (c == 'r') o->repeat = strtoll(optarg, NULL, 10);
    if (c == 's') o->seed = strtoull(optarg, NULL, 10);
  }
  if (optind + 1 != argc || o->cols < 1 || o->repeat < 1)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "usage: petsc_compare matrix.h5 [--cols N] [--repeat R] [--seed S]");
  o->path = argv[optind];
  return ASPARSE_OK;
}

/* PETSc's own copy of the slab, in AIJ form; rows of B follow the rows of A where A is square. */
static asparse_status create_sparse(const asparse_csr *slab, const char *type, Mat *a) {
  asparse_status status = ASPARSE_OK;
  PetscInt *row_ptr = NULL, *col_idx = NULL;
  int64_t nnz = asparse_csr_nnz_local(slab);
  TRY_THAT(slab->k <= PETSC_MAX_INT && slab->m <= PETSC_MAX_INT && nnz <= PETSC_MAX_INT, ASPARSE_ERR_RUNTIME,
           "the matrix exceeds this PETSc's %zu-byte indices", sizeof(PetscInt));
  ALLOC(row_ptr, slab->n_rows + 1);
  ALLOC(col_idx, nnz);
  for (int64_t i = 0; i <= slab->n_rows; i++) row_ptr[i] = (PetscInt)slab->row_ptr[i];
  for (int64_t e = 0; e < nnz; e++) col_idx[e] = (PetscInt)slab->col_idx[e];
  TRY_PETSC(MatCreate(PETSC_COMM_WORLD, a));
  TRY_PETSC(MatSetSizes(*a, (PetscInt)slab->n_rows, slab->m == slab->k ? (PetscInt)slab->n_rows : PETSC_DECIDE,
                        (PetscInt)slab->m, (PetscInt)slab->k));
  TRY_PETSC(MatSetType(*a, type));
  TRY_PETSC(MatSeqAIJSetPreallocationCSR(*a, row_ptr, col_idx, slab->values));
  TRY_PETSC(MatMPIAIJSetPreallocationCSR(*a, row_ptr, col_idx, slab->values));
cleanup:
  asparse_free(row_ptr);
  asparse_free(col_idx);
  return status;
}

static asparse_status create_dense(Mat a, int64_t n, uint64_t seed, const char *type, Mat *b) {
  asparse_status status = ASPARSE_OK;
  PetscInt begin, end, k, ld;
  PetscScalar *values;
  TRY_PETSC(MatGetSize(a, NULL, &k));
  TRY_PETSC(MatGetOwnershipRangeColumn(a, &begin, &end));
  TRY_PETSC(MatCreate(PETSC_COMM_WORLD, b));
  TRY_PETSC(MatSetSizes(*b, end - begin, PETSC_DECIDE, k, (PetscInt)n));
  TRY_PETSC(MatSetType(*b, type));
  TRY_PETSC(MatSetUp(*b));
  TRY_PETSC(MatDenseGetLDA(*b, &ld));
  TRY_PETSC(MatDenseGetArrayWrite(*b, &values));
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = begin; i < end; i++) values[j * ld + i - begin] = asparse_random_element(seed, i, j);
  }
  TRY_PETSC(MatDenseRestoreArrayWrite(*b, &values));
  TRY_PETSC(MatAssemblyBegin(*b, MAT_FINAL_ASSEMBLY));
  TRY_PETSC(MatAssemblyEnd(*b, MAT_FINAL_ASSEMBLY));
cleanup:
  return status;
}

/* Recomputes up to 64 rows of this rank's C from the slab: the same product was timed. */
static asparse_status sampled_error(const asparse_csr *slab, Mat c, int64_t n, uint64_t seed, double *error) {
  asparse_status status = ASPARSE_OK;
  const PetscScalar *values;
  PetscInt ld;
  double worst = 0;
  TRY_PETSC(MatDenseGetLDA(c, &ld));
  TRY_PETSC(MatDenseGetArrayRead(c, &values));
  for (int64_t i = 0; i < slab->n_rows; i += slab->n_rows / 64 + 1) {
    int64_t j = i % n;
    double sum = 0, magnitude = 0;
    for (int64_t e = slab->row_ptr[i]; e < slab->row_ptr[i + 1]; e++) {
      double product = ((const double *)slab->values)[e] * asparse_random_element(seed, slab->col_idx[e], j);
      sum += product;
      magnitude += fabs(product);
    }
    double difference = fabs(values[j * ld + i] - sum);
    if (difference > worst * magnitude) worst = difference / magnitude;
  }
  TRY_PETSC(MatDenseRestoreArrayRead(c, &values));
  TRY_MPI(MPI_Allreduce(&worst, error, 1, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD));
cleanup:
  return status;
}

/* Elements of B that a product brings to all ranks: a row for each column that a rank has beside its own. */
static asparse_status count_words(Mat a, int64_t n, int64_t *words) {
  asparse_status status = ASPARSE_OK;
  PetscInt ghosts = 0;
  TRY_PETSC(MatGetGhosts(a, &ghosts, NULL));
  int64_t own = (int64_t)ghosts * n;
  TRY_MPI(MPI_Allreduce(&own, words, 1, MPI_INT64_T, MPI_SUM, PETSC_COMM_WORLD));
cleanup:
  return status;
}

static int compare_doubles(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static asparse_status time_products(Mat a, Mat b, Mat *c, int64_t repeat, timing *t) {
  asparse_status status = ASPARSE_OK;
  double *seconds = NULL;
  ALLOC(seconds, repeat);
  TRY_PETSC(MatMatMult(a, b, MAT_INITIAL_MATRIX, PETSC_DEFAULT, c));
  TRY_PETSC(MatMatMult(a, b, MAT_REUSE_MATRIX, PETSC_DEFAULT, c));
  for (int64_t r = 0; r < repeat; r++) {
    TRY_MPI(MPI_Barrier(PETSC_COMM_WORLD));
    double start = MPI_Wtime();
    TRY_PETSC(MatMatMult(a, b, MAT_REUSE_MATRIX, PETSC_DEFAULT, c));
    double own = MPI_Wtime() - start;
    TRY_MPI(MPI_Allreduce(&own, &seconds[r], 1, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD));
  }
  qsort(seconds, (size_t)repeat, sizeof *seconds, compare_doubles);
  t->best = seconds[0];
  t->median = seconds[repeat / 2];
cleanup:
  asparse_free(seconds);
  return status;
}

static asparse_status measure(const asparse_csr *slab, const options *o, bool sequential, timing *t) {
  asparse_status status = ASPARSE_OK;
  Mat a = NULL, b = NULL, c = NULL;
  t->type = sequential ? "seqaij" : "mpiaij";
  TRY(create_sparse(slab, sequential ? MATSEQAIJ : MATMPIAIJ, &a));
  TRY(create_dense(a, o->cols, o->seed, sequential ? MATSEQDENSE : MATMPIDENSE, &b));
  TRY(time_products(a, b, &c, o->repeat, t));
  if (!sequential) TRY(count_words(a, o->cols, &t->words));
  TRY(sampled_error(slab, c, o->cols, o->seed, &t->relative_error));
cleanup:
  MatDestroy(&a);
  MatDestroy(&b);
  MatDestroy(&c);
  return status;
}

static void print_result(const options *o, const asparse_csr *slab, int64_t nnz, int ranks, const timing *t) {
  printf(
      "{\"program\": \"PETSc %d.%d.%d\", \"type\": \"%s\", \"matrix\": \"%s\", \"m\": %lld, \"k\": %lld, \"nnz\": %lld, "
      "\"n\": %lld, \"ranks\": %d, \"precision\": \"fp64\", \"repeats\": %lld, \"best_seconds\": %.9g, "
      "\"median_seconds\": %.9g, \"words\": %lld, \"gflops\": %.6g, \"relative_error\": %.3g}\n",
      PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR, t->type, o->path, (long long)slab->m,
      (long long)slab->k, (long long)nnz, (long long)o->cols, ranks, (long long)o->repeat, t->best, t->median,
      (long long)t->words, 2.0 * (double)nnz * (double)o->cols / t->best * 1e-9, t->relative_error);
}

int main(int argc, char **argv) {
  asparse_status status = ASPARSE_OK;
  asparse_comm *comm = NULL;
  asparse_csr *slab = NULL;
  options o;
  timing best = {0}, sequential = {0};
  if (PetscInitializeNoArguments() != 0) return 1;
  TRY(parse(argc, argv, &o));
  TRY(asparse_comm_create(&comm, PETSC_COMM_WORLD));
  TRY(asparse_csr_read(comm, o.path, &slab, NULL));
  TRY(asparse_comm_agree(comm, asparse_csr_convert(slab, ASPARSE_FP64)));
  int64_t nnz = asparse_csr_nnz_local(slab);
  TRY(asparse_comm_sum(comm, &nnz, 1));
  TRY(asparse_comm_agree(comm, measure(slab, &o, false, &best)));
  if (comm->size == 1) {
    TRY(measure(slab, &o, true, &sequential));
    if (sequential.best < best.best) best = sequential;
  }
  if (comm->rank == 0) print_result(&o, slab, nnz, comm->size, &best);
cleanup:
  if (status != ASPARSE_OK && (!comm || comm->rank == 0))
    fprintf(stderr, "petsc_compare: %s\n", asparse_error_message());
  asparse_csr_destroy(&slab);
  asparse_comm_destroy(&comm);
  PetscFinalize();
  return asparse_exit_code(status);
}
