/* Writes the files that h5py_reads.py checks: test_h5py_files FOLDER. All values are exact in bf16. */
#include <stdio.h>
#include <string.h>

#include "base/dense.h"
#include "io/io.h"

enum { M = 37, K = 23, N = 5 };

static double value(int64_t i, int64_t j) { return (double)((i * 31 + j * 17) % 101) / 8 - 6; }
static bool has_entry(int64_t i, int64_t j) { return i % 5 != 2 && (i + 3 * j) % 4 == 0; }

static asparse_status write_sparse(asparse_comm *comm, const char *folder, const char *name, asparse_dtype dtype,
                                   const asparse_provenance *provenance) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *a = NULL;
  char path[512];
  int64_t begin = asparse_even_start(M, comm->size, comm->rank), e = 0;
  int64_t end = asparse_even_start(M, comm->size, comm->rank + 1);
  snprintf(path, sizeof path, "%s/%s.h5", folder, name);
  TRY(asparse_csr_create(&a, M, K, begin, end - begin, (end - begin) * K, dtype));
  for (int64_t i = begin; i < end; i++) {
    for (int64_t j = 0; j < K; j++) {
      if (!has_entry(i, j)) continue;
      a->col_idx[e] = j;
      asparse_store(dtype, a->values, e++, value(i, j));
    }
    a->row_ptr[i - begin + 1] = e;
  }
  TRY(asparse_csr_write(comm, path, a, name, provenance));
cleanup:
  asparse_csr_destroy(&a);
  return status;
}

static asparse_status write_dense(asparse_comm *comm, const char *folder, const char *name, asparse_dtype dtype,
                                  const asparse_provenance *provenance) {
  asparse_status status = ASPARSE_OK;
  asparse_dense *a = NULL;
  char path[512];
  int64_t begin = asparse_even_start(M, comm->size, comm->rank);
  int64_t end = asparse_even_start(M, comm->size, comm->rank + 1);
  snprintf(path, sizeof path, "%s/%s.h5", folder, name);
  TRY(asparse_dense_create(&a, end - begin, N, dtype));
  for (int64_t i = begin; i < end; i++)
    for (int64_t j = 0; j < N; j++) asparse_store(dtype, a->values, (i - begin) * N + j, value(i, j));
  TRY(asparse_dense_write(comm, path, M, begin, a, provenance));
cleanup:
  asparse_dense_destroy(&a);
  return status;
}

static asparse_status write_all(asparse_comm *comm, const char *folder) {
  const asparse_provenance provenance = {"test_h5py_files", "a formula", "none", 0x123};
  PASS(write_sparse(comm, folder, "fp64", ASPARSE_FP64, &provenance));
  PASS(write_sparse(comm, folder, "fp32", ASPARSE_FP32, &provenance));
  PASS(write_sparse(comm, folder, "bf16", ASPARSE_BF16, &provenance));
  PASS(write_sparse(comm, folder, "pattern", ASPARSE_FP64, &provenance));
  PASS(write_dense(comm, folder, "dense_fp64", ASPARSE_FP64, &provenance));
  return write_dense(comm, folder, "dense_bf16", ASPARSE_BF16, &provenance);
}

int main(int argc, char **argv) {
  asparse_comm *comm = NULL;
  MPI_Init(&argc, &argv);
  asparse_status status = argc == 2 ? asparse_comm_create(&comm, MPI_COMM_WORLD) : ASPARSE_ERR_USAGE;
  if (status == ASPARSE_OK) status = write_all(comm, argv[1]);
  if (status != ASPARSE_OK) fprintf(stderr, "%s\n", asparse_error_message());
  asparse_comm_destroy(&comm);
  MPI_Finalize();
  return asparse_exit_code(status);
}
