#include <string.h>

#include "partition/partition.h"

asparse_status asparse_shard_build(asparse_local_csr *a, asparse_format format, int32_t unit, asparse_shard **out) {
  asparse_status status = ASPARSE_OK;
  asparse_shard *shard = NULL;
  ALLOC_ZERO(shard, 1);
  shard->format = format;
  switch (format) {
  case ASPARSE_FORMAT_CSR:
    shard->csr = a;
    shard->borrows_csr = true;
    break;
  case ASPARSE_FORMAT_WCSR: TRY(asparse_wcsr_build(a, unit, &shard->wcsr)); break;
  case ASPARSE_FORMAT_BCSR: TRY(asparse_bcsr_build(a, unit, &shard->bcsr)); break;
  default: TRY_THAT(false, ASPARSE_ERR_USAGE, "a shard is csr, wcsr or bcsr; choose the format before building");
  }
  *out = shard;
  return ASPARSE_OK;
cleanup:
  asparse_shard_destroy(&shard);
  return status;
}

asparse_status asparse_shard_build_clustered(const asparse_clustered *a, int32_t window_height, asparse_shard **out) {
  asparse_status status = ASPARSE_OK;
  asparse_shard *shard = NULL;
  TRY(asparse_shard_build(a->rows, ASPARSE_FORMAT_WCSR, window_height, &shard));
  ALLOC(shard->wcsr->row_map, a->rows->m);
  memcpy(shard->wcsr->row_map, a->order, (size_t)a->rows->m * sizeof *a->order);
  *out = shard;
  shard = NULL;
cleanup:
  asparse_shard_destroy(&shard);
  return status;
}
