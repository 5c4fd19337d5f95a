/* For tests on several ranks: the same random matrix on every rank, cut into slabs; and the cmocka runner. */
#ifndef ASPARSE_TEST_SLABS_H
#define ASPARSE_TEST_SLABS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/comm.h"
#include "base/csr.h"
#include "base/dense.h"

/* Deterministic numbers 0 … bound-1. */
static inline int64_t test_random(uint64_t *state, int64_t bound) {
  *state = asparse_mix64(*state);
  return (int64_t)(*state % (uint64_t)bound);
}

/* The whole matrix, fp64; each entry present with probability 1/sparsity, row `dense_row` full (-1: none). */
static inline asparse_csr *test_whole(uint64_t *state, int64_t m, int64_t k, int64_t sparsity, int64_t dense_row) {
  asparse_csr *a = NULL;
  assert_int_equal(asparse_csr_create(&a, m, k, 0, m, m * k, ASPARSE_FP64), ASPARSE_OK);
  int64_t n = 0;
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < k; j++) {
      if (test_random(state, sparsity) != 0 && i != dense_row) continue;
      a->col_idx[n] = j;
      ((double *)a->values)[n++] = (double)(test_random(state, 200) - 100) / 8;
    }
    a->row_ptr[i + 1] = n;
  }
  a->nnz = n;
  return a;
}

/* A copy of rows [begin, end). */
static inline asparse_csr *test_rows(const asparse_csr *whole, int64_t begin, int64_t end) {
  asparse_csr *a = NULL;
  int64_t first = whole->row_ptr[begin], n = whole->row_ptr[end] - first;
  assert_int_equal(asparse_csr_create(&a, whole->m, whole->k, begin, end - begin, n, ASPARSE_FP64), ASPARSE_OK);
  a->nnz = whole->nnz;
  for (int64_t i = 0; i < end - begin; i++) a->row_ptr[i + 1] = whole->row_ptr[begin + i + 1] - first;
  memcpy(a->col_idx, whole->col_idx + first, (size_t)n * sizeof *a->col_idx);
  memcpy(a->values, (const double *)whole->values + first, (size_t)n * sizeof(double));
  return a;
}

/* This rank's slab: cuts at random rows, the same on every rank; some slabs are empty. */
static inline asparse_csr *test_slab(const asparse_csr *whole, const asparse_comm *comm, uint64_t *state) {
  int64_t begin = 0, end = 0;
  for (int r = 0; r <= comm->rank; r++) {
    begin = end;
    end = begin + test_random(state, whole->m - begin + 1);
    if (r == comm->size - 1) end = whole->m;
  }
  for (int r = comm->rank + 1; r < comm->size; r++) test_random(state, 1);
  return test_rows(whole, begin, end);
}

static asparse_comm *test_comm; /* all ranks */
static asparse_comm *test_self; /* this rank alone */

/* Runs the tests on all ranks; the exit code is not 0 when any fails. */
static inline int test_run(int *argc, char ***argv, int (*group)(void)) {
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  MPI_Init(argc, argv);
  int failed = 1;
  if (!asparse_comm_create(&test_comm, MPI_COMM_WORLD) && !asparse_comm_create(&test_self, MPI_COMM_SELF))
    failed = group();
  /* A failed assertion may have left peers waiting in a collective call. */
  if (failed) MPI_Abort(MPI_COMM_WORLD, 1);
  asparse_comm_destroy(&test_comm);
  asparse_comm_destroy(&test_self);
  MPI_Finalize();
  return 0;
}

#endif
