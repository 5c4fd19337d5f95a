#include "programs/info_exchange.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dtype.h"

enum { GPUS_OF_A_NODE = 8 };

/* Can `ranks` ranks stand in a grid of `parts` rows, with a column of B for each of its columns? parts × 1 always. */
static bool is_grid(const info_options *o, int ranks, int parts) {
  return ranks % parts == 0 && (parts == ranks || ranks / parts <= o->cols);
}

static bool is_needed(const info_options *o, int parts) {
  for (int i = 0; i < o->n_ranks; i++) {
    if (is_grid(o, o->ranks[i], parts)) return true;
  }
  return false;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Collective. */
static asparse_status count_parts(asparse_comm *comm, const asparse_csr *slab, const int64_t *cost, int c_weight,
                                  int parts, exchange_counts *counts) {
  asparse_status status = ASPARSE_OK;
  asparse_partition *partition = NULL;
  const double start = asparse_seconds();
  TRY(counts->method == ASPARSE_PARTITION_METIS ? asparse_partition_metis(comm, slab, cost, parts, &partition)
                                                : asparse_partition_contiguous(comm, slab, cost, parts, &partition));
  TRY(asparse_volumes_count(comm, slab, partition, c_weight, &counts->volumes));
  counts->seconds = asparse_seconds() - start;
cleanup:
  asparse_partition_destroy(&partition);
  return status;
}

/* Collective. METIS is left out, with its reason, where it cannot take the matrix. */
static asparse_status count_method(asparse_comm *comm, const asparse_csr *slab, const int64_t *cost,
                                   const info_options *o, asparse_partition_method method, info_exchange *x) {
  const int first = x->n_counts;
  for (int parts = 1; parts <= INFO_MOST_PARTS; parts++) {
    if (!is_needed(o, parts)) continue;
    x->counts[x->n_counts] = (exchange_counts){.method = method};
    const asparse_status status =
        count_parts(comm, slab, cost, x->shape.c_bytes / x->shape.b_bytes, parts, &x->counts[x->n_counts]);
    if (status == ASPARSE_ERR_USAGE && method == ASPARSE_PARTITION_METIS) {
      snprintf(x->metis_skipped, sizeof x->metis_skipped, "%s", asparse_error_message());
      asparse_error_clear();
      while (x->n_counts > first) asparse_volumes_destroy(&x->counts[--x->n_counts].volumes);
      return ASPARSE_OK;
    }
    PASS(status);
    x->n_counts++;
  }
  return ASPARSE_OK;
}

asparse_status info_exchange_count(asparse_comm *comm, const asparse_csr *slab, const info_options *o,
                                   asparse_dtype dtype, info_exchange *x) {
  asparse_status status = ASPARSE_OK;
  int64_t *cost = asparse_malloc(slab->n_rows, sizeof *cost, "row costs");
  int most = 0;
  for (int parts = 1; parts <= INFO_MOST_PARTS; parts++) most += is_needed(o, parts);
  *x = (info_exchange){
      .shape = {o->cols, (int)asparse_dtype_size(dtype), (int)asparse_dtype_size(asparse_dtype_result(dtype))}};
  x->counts = asparse_calloc(2 * (int64_t)most, sizeof *x->counts, "counts of exchanges");
  TRY(asparse_comm_agree(comm, cost && x->counts ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_partition_row_cost(comm, slab, o->cols, cost));
  TRY(count_method(comm, slab, cost, o, ASPARSE_PARTITION_CONTIGUOUS, x));
  if (o->metis) TRY(count_method(comm, slab, cost, o, ASPARSE_PARTITION_METIS, x));
cleanup:
  asparse_free(cost);
  return status;
}

/* ---- predicting ------------------------------------------------------------------------------ */

static const exchange_counts *find_counts(const info_exchange *x, asparse_partition_method method, int parts) {
  for (int i = 0; i < x->n_counts; i++) {
    if (x->counts[i].method == method && x->counts[i].volumes->parts == parts) return &x->counts[i];
  }
  return NULL;
}

/* One link for all of a rank's traffic: the node's where one node holds all ranks, else the network's. */
static asparse_link link_of(const info_options *o, const asparse_mode_compute *compute, int ranks) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const long fitting = o->device ? GPUS_OF_A_NODE : cores / compute->rates->threads;
  const bool one_node = ranks <= (o->node_ranks > 0 ? o->node_ranks : fitting > 1 ? fitting : 1);
  if (!one_node && o->network.bytes_per_second > 0) return o->network;
  if (o->link.bytes_per_second > 0) return o->link;
  if (!one_node) return asparse_link_default(ASPARSE_LINK_INFINIBAND);
  return asparse_link_default(o->device ? ASPARSE_LINK_NVLINK : ASPARSE_LINK_SHARED_MEMORY);
}

static void add_way(const info_exchange *x, exchange_table *t, asparse_exchange_mode mode, int parts) {
  const asparse_volumes *volumes = find_counts(x, t->counts->method, parts)->volumes;
  exchange_way *way = &t->ways[t->n_ways];
  t->candidates[t->n_ways] = (asparse_mode_candidate){.mode = mode, .volumes = volumes, .pn = t->ranks / parts};
  asparse_volumes_summarise(volumes, mode, t->ranks / parts, &x->shape, &way->largest, &way->total);
  way->exact = mode != ASPARSE_EXCHANGE_COVER || volumes->cover_is_exact;
  t->n_ways++;
}

/* All ways of one number of ranks, in the order of preference where times are equal: rows never moves more than
 * replicate, and is simpler than the others. */
static asparse_status fill_table(const info_options *o, const asparse_mode_compute *compute, const info_exchange *x,
                                 exchange_table *t) {
  asparse_status status = ASPARSE_OK;
  const int p = t->ranks;
  int grids = 0;
  for (int parts = 2; parts < p; parts++) grids += is_grid(o, p, parts);
  ALLOC(t->candidates, 4 + grids);
  ALLOC(t->ways, 4 + grids);
  add_way(x, t, ASPARSE_EXCHANGE_ROWS, p);
  if (p > 1) add_way(x, t, ASPARSE_EXCHANGE_REPLICATE, p);
  if (p > 1) add_way(x, t, ASPARSE_EXCHANGE_COVER, p);
  if (p > 1 && is_grid(o, p, 1)) add_way(x, t, ASPARSE_EXCHANGE_COLUMNS, 1);
  for (int parts = 2; parts < p; parts++) {
    if (is_grid(o, p, parts)) add_way(x, t, ASPARSE_EXCHANGE_GRID, parts);
  }
  t->link = link_of(o, compute, p);
  t->best = asparse_mode_choose(t->candidates, t->n_ways, compute, &t->link, &x->shape, o->row_operands);
cleanup:
  return status;
}

asparse_status info_exchange_predict(const info_options *o, const asparse_mode_compute *compute, info_exchange *x) {
  asparse_status status = ASPARSE_OK;
  ALLOC_ZERO(x->tables, 2 * (int64_t)o->n_ranks);
  for (int i = 0; i < o->n_ranks; i++) {
    for (int method = ASPARSE_PARTITION_CONTIGUOUS; method <= ASPARSE_PARTITION_METIS; method++) {
      const exchange_counts *counts = find_counts(x, (asparse_partition_method)method, o->ranks[i]);
      if (!counts) continue;
      exchange_table *t = &x->tables[x->n_tables++];
      *t = (exchange_table){.ranks = o->ranks[i], .counts = counts};
      TRY(fill_table(o, compute, x, t));
    }
  }
cleanup:
  return status;
}

void info_exchange_free(info_exchange *x) {
  for (int i = 0; i < x->n_counts; i++) asparse_volumes_destroy(&x->counts[i].volumes);
  for (int i = 0; i < x->n_tables; i++) {
    asparse_free(x->tables[i].candidates);
    asparse_free(x->tables[i].ways);
  }
  FREE(x->counts);
  FREE(x->tables);
  x->n_counts = x->n_tables = 0;
}
