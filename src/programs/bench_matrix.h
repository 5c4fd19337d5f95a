/* One matrix of a benchmark: read, prepared for every kernel, timed for every number of columns. */
#ifndef ASPARSE_BENCH_MATRIX_H
#define ASPARSE_BENCH_MATRIX_H

#include "base/comm.h"
#include "programs/bench_engine.h"

/* A rank-local matrix and what it is called. */
typedef struct bench_matrix {
  const char *name;
  asparse_local_csr *a;
} bench_matrix;

/* Reads the HDF5 matrix at path, its values in the engine's or the asked precision. The caller destroys a->a. comm has
 * one rank. */
asparse_status bench_matrix_read(asparse_comm *comm, const bench_options *options, const bench_engine *engine,
                                 const char *path, asparse_local_csr **a);

/* Appends a case for each number of columns to record (room for them is there). kernels [n_kernels]: those to time. A
 * failure leaves out the cases it concerns; ERR_DEVICE: the engine is of no more use. */
asparse_status bench_matrix_time(bench_engine *engine, const bench_options *options, const bench_matrix *matrix,
                                 const bench_kernel *const *kernels, int n_kernels, bench_record *record);

#endif
