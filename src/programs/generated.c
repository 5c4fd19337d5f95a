#include "programs/generated.h"

#include <inttypes.h>

#include "io/budget.h"

/* Asked before any array is allocated, since an overcommitting system would kill the job instead. Collective. */
static asparse_status check_memory(asparse_comm *comm, const asparse_generator *g) {
  asparse_status status = ASPARSE_OK;
  double entry = sizeof(int64_t) + (double)asparse_dtype_size(g->dtype), row = 2 * sizeof(int64_t);
  double needed = ((double)g->expected_entries * entry + (double)g->m * row) / comm->size;
  double available = (double)asparse_budget_available() / comm->node_size;
  if (needed > available)
    status = ASPARSE_FAIL(ASPARSE_ERR_MEMORY,
                          "%" PRId64 " entries need %.4g GiB on each rank, but %.4g GiB are available (%d ranks share "
                          "this host); use more hosts, or a smaller matrix",
                          g->expected_entries, needed / 0x1p30, available / 0x1p30, comm->node_size);
  return asparse_comm_agree(comm, status);
}

asparse_status generated_slab(asparse_comm *comm, const asparse_generator *g, asparse_csr **slab) {
  PASS(check_memory(comm, g));
  const int64_t begin = asparse_generator_cut(g, comm->size, comm->rank);
  const int64_t end = asparse_generator_cut(g, comm->size, comm->rank + 1);
  PASS(asparse_comm_agree(comm, asparse_generate_slab(g, begin, end - begin, slab)));
  return asparse_comm_sum(comm, &(*slab)->nnz, 1);
}

asparse_status generated_read(asparse_comm *comm, const asparse_generator *g, asparse_csr **slab,
                              asparse_source *source) {
  PASS(generated_slab(comm, g, slab));
  *source = (asparse_source){
      .format = "generated", .value_type = "float64", .structure = "general", .stored_entries = (*slab)->nnz};
  return ASPARSE_OK;
}
