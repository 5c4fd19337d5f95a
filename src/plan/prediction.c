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
  *link = asparse_links_all(comm, plan->engine, &links);
  if (known) return ASPARSE_OK;
  *link = asparse_link_default(comm->node_size < comm->size      ? ASPARSE_LINK_INFINIBAND
                               : comm->kind == ASPARSE_COMM_NCCL ? ASPARSE_LINK_NVLINK
                                                                 : ASPARSE_LINK_SHARED_MEMORY);
  if (plan->engine->backend->space == ASPARSE_SPACE_DEVICE) link->by_cores = false;
  return ASPARSE_OK;
}

static int64_t larger(int64_t x, int64_t y) { return x > y ? x : y; }

asparse_status asparse_plan_predict(asparse_plan *plan) {
  asparse_stats *stats = &plan->stats;
  asparse_link link;
  PASS(find_link(plan, &link));
  const int64_t messages = plan->halo->n_sources + (plan->cover ? plan->cover->halo->n_sources : 0);
  const int64_t layout_messages = plan->b_layout ? 2 * (int64_t)(plan->matrix->grid.columns - 1) : 0;
  stats->predicted_exchange_seconds =
      asparse_link_seconds(&link, plan->chunks * messages, larger(stats->bytes_received, stats->bytes_sent));
  stats->predicted_layout_seconds =
      asparse_link_seconds(&link, layout_messages, larger(stats->layout_bytes_received, stats->layout_bytes_sent));
  /* With what this rank really sends and receives. */
  const double rest = stats->predicted_seconds - plan->own_predicted_seconds;
  stats->predicted_execute_seconds =
      asparse_mode_pipeline_seconds(plan->own_predicted_seconds, stats->predicted_exchange_seconds, rest, plan->chunks,
                                    link.by_cores) +
      stats->predicted_layout_seconds;
  return ASPARSE_OK;
}
