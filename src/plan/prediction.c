#include <math.h>

#include "plan/link_cache.h"
#include "plan/mode_choice.h"
#include "plan/plan.h"

/* The link that the planner measured, that an earlier run did, or what links of this kind usually give. Collective. */
static asparse_status find_link(asparse_plan *plan, asparse_link *link) {
  asparse_comm *comm = plan->matrix->comm;
  asparse_links links;
  bool known = false;
  *link = plan->matrix->planning.link;
  if (plan->matrix->planning.n_ways > 0) return ASPARSE_OK;
  PASS(asparse_link_cache_find(comm, plan->engine, &links, &known));
  *link = (asparse_link){links.latency_seconds, links.all_bytes_per_second};
  if (!known)
    *link = asparse_link_default(comm->node_size < comm->size      ? ASPARSE_LINK_INFINIBAND
                                 : comm->kind == ASPARSE_COMM_NCCL ? ASPARSE_LINK_NVLINK
                                                                   : ASPARSE_LINK_SHARED_MEMORY);
  return ASPARSE_OK;
}

static int64_t larger(int64_t x, int64_t y) { return x > y ? x : y; }

asparse_status asparse_plan_predict(asparse_plan *plan) {
  asparse_stats *stats = &plan->stats;
  asparse_link link;
  PASS(find_link(plan, &link));
  const int64_t bytes = larger(stats->bytes_received, stats->bytes_sent);
  const int64_t layout_bytes = larger(stats->layout_bytes_received, stats->layout_bytes_sent);
  stats->predicted_exchange_seconds =
      plan->halo->n_sources * link.latency_seconds + (double)bytes / link.bytes_per_second;
  /* layout + max(own columns, exchange) + halo columns; see asparse_mode_choose */
  stats->predicted_seconds = (double)layout_bytes / link.bytes_per_second +
                             fmax(plan->own_seconds, stats->predicted_exchange_seconds) + plan->rest_seconds;
  return ASPARSE_OK;
}
