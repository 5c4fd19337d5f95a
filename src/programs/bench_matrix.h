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

/* Reads the HDF5 matrix at path, or makes the one it describes; the slab holds all rows. comm has one rank. */
asparse_status bench_matrix_read(asparse_comm *comm, const char *path, asparse_csr **slab);
asparse_status bench_matrix_generate(const bench_options *options, const char *description, asparse_csr **slab);

/* The slab as the kernels take it, its values in the asked precision or the engine's. The caller destroys *a. */
asparse_status bench_matrix_convert(const bench_options *options, const bench_engine *engine, const asparse_csr *slab,
                                    asparse_local_csr **a);

/* Appends a case for each number of columns to record (room for them is there). kernels [n_kernels]: those to time. A
 * failure leaves out the cases it concerns; ERR_DEVICE: the engine is of no more use. */
asparse_status bench_matrix_time(bench_engine *engine, const bench_options *options, const bench_matrix *matrix,
                                 const bench_kernel *const *kernels, int n_kernels, bench_record *record);

#endif
