#include <string.h>

#include "io/io.h"

asparse_status asparse_matrix_hash(asparse_comm *comm, const asparse_csr *slab, uint64_t *hash) {
  asparse_status status = ASPARSE_OK;
  uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (int64_t i = 0; i < slab->n_rows; i++) {
    uint64_t row = asparse_mix64((uint64_t)(slab->row_begin + i));
    for (int64_t e = slab->row_ptr[i]; e < slab->row_ptr[i + 1]; e++) {
      double value = asparse_load(slab->dtype, slab->values, e);
      uint64_t bits;
      memcpy(&bits, &value, sizeof bits);
      sum += asparse_mix64(asparse_mix64(row ^ (uint64_t)slab->col_idx[e]) ^ bits);
    }
  }
  TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, comm->mpi));
  *hash = asparse_mix64(sum ^ asparse_mix64((uint64_t)slab->m) ^ (uint64_t)slab->k);
cleanup:
  return status;
}
