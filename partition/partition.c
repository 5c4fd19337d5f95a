#include "partition/partition_new.h"

asparse_status asparse_partition_new(asparse_partition **out, asparse_partition_method method, int64_t m, int64_t k,
                                     int parts) {
  asparse_status status = ASPARSE_OK;
  asparse_partition *partition = NULL;
  if (parts < 1) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "a partition into %d parts: at least 1 is needed", parts);
  ALLOC_ZERO(partition, 1);
  partition->method = method;
  partition->parts = parts;
  partition->m = m;
  partition->k = k;
  ALLOC_ZERO(partition->row_starts, (int64_t)parts + 1);
  ALLOC_ZERO(partition->col_starts, (int64_t)parts + 1);
  *out = partition;
  return ASPARSE_OK;
cleanup:
  asparse_partition_destroy(&partition);
  return status;
}

void asparse_partition_col_starts(asparse_partition *partition) {
  for (int q = 0; q <= partition->parts; q++)
    partition->col_starts[q] =
        partition->m == partition->k ? partition->row_starts[q] : asparse_even_start(partition->k, partition->parts, q);
}

void asparse_partition_destroy(asparse_partition **partition) {
  if (!partition || !*partition) return;
  asparse_free((*partition)->row_starts);
  asparse_free((*partition)->col_starts);
  asparse_free((*partition)->new_row);
  FREE(*partition);
}
