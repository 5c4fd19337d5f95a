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
