#include "plan/engines.h"

#include "plan/transport.h"

asparse_status asparse_engines_open(asparse_comm *comm, const asparse_options *options, asparse_engine **engine) {
  asparse_status status = ASPARSE_OK;
  const asparse_backend_kind wanted = options->reproducible ? ASPARSE_BACKEND_HOST : options->backend;
  TRY(asparse_comm_agree(comm, asparse_engine_open(wanted, comm->node_rank, engine)));
  int64_t on_device = (*engine)->backend->space == ASPARSE_SPACE_DEVICE, everywhere = on_device;
  TRY(asparse_comm_min(comm, &everywhere, 1));
  if (everywhere != on_device) {
    asparse_engine_close(engine);
    status = asparse_engine_open(ASPARSE_BACKEND_HOST, 0, engine);
  }
  TRY(asparse_comm_agree(comm, status));
  TRY(asparse_transport_open(comm, *engine, options->comm));
cleanup:
  return status;
}

asparse_status asparse_engines_host_rates(const asparse_comm *comm, asparse_host_rates *rates) {
  PASS(asparse_host_rates_get(rates));
  const double share = asparse_comm_core_share(comm, rates->threads);
  rates->bytes_per_second *= share;
  for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) rates->flops_per_second[dtype] *= share;
  return ASPARSE_OK;
}
