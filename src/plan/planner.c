#include "plan/planner.h"

#include <math.h>

#include "base/clock.h"
#include "base/csr.h"
#include "base/dtype.h"
#include "io/budget.h"
#include "plan/engines.h"
#include "plan/link_cache.h"
#include "plan/profile.h"

/* Bytes that an entry of A takes while it is distributed and in its shard, at most. */
enum { ENTRY_BYTES = 48 };
/* Bytes of A for a rank with a GPU, where its memory has not been asked for. */
static const double DEVICE_BYTES = 16e9;

typedef struct planner {
  asparse_comm *comm;
  const asparse_csr *slab;
  const asparse_options *options;
  asparse_engine *engine;
  asparse_volume_shape shape;
  asparse_profile whole;
  asparse_host_rates rates;
  double entries_that_fit; /* on a rank */
  int n_parts;             /* numbers of parts that are counted */
  asparse_volumes *volumes[ASPARSE_MOST_WAYS];
  int n_candidates;
  asparse_mode_candidate candidates[ASPARSE_MOST_WAYS];
} planner;

/* ---- what the cost model wants to know ------------------------------------------------------- */

/* Sums over ranks, of samples in proportion to all entries. Collective. */
static asparse_status sum_profiles(asparse_comm *comm, const asparse_csr *slab, asparse_profile *p) {
  asparse_status status = ASPARSE_OK;
  int64_t sums[13] = {p->nnz}, largest[5] = {p->longest_row};
  for (int h = 0; h < 4; h++) {
    sums[1 + h] = p->windows[h].columns;
    sums[5 + h] = p->windows[h].padded;
    largest[1 + h] = p->windows[h].widest;
  }
  for (int s = 0; s < 3; s++) sums[9 + s] = p->blocks[s];
  sums[12] = p->b_rereads;
  TRY(asparse_comm_sum(comm, sums, 13));
  TRY(asparse_comm_max(comm, largest, 5));
  const double scale = sums[0] > 0 ? (double)slab->nnz / (double)sums[0] : 0;
  for (int h = 0; h < 4; h++)
    p->windows[h] = (asparse_window_counts){.columns = (int64_t)(scale * (double)sums[1 + h]),
                                            .padded = (int64_t)(scale * (double)sums[5 + h]),
                                            .widest = largest[1 + h]};
  for (int s = 0; s < 3; s++) p->blocks[s] = (int64_t)(scale * (double)sums[9 + s]);
  p->b_rereads = sums[12];
  p->longest_row = largest[0];
  p->m = slab->m;
  p->k = slab->k;
  p->nnz = slab->nnz;
cleanup:
  return status;
}

/* Collective. */
static asparse_status profile_slab(planner *p) {
  asparse_status status = ASPARSE_OK;
  asparse_local_csr pattern = {0};
  status = asparse_profile_pattern(p->slab, &pattern);
  if (status == ASPARSE_OK) status = asparse_profile_create(&pattern, p->shape.n, true, &p->whole);
  if (status == ASPARSE_OK && p->engine->backend->space == ASPARSE_SPACE_DEVICE)
    status = asparse_profile_add_rereads(&pattern, &p->whole);
  TRY(asparse_comm_agree(p->comm, status));
  TRY(sum_profiles(p->comm, p->slab, &p->whole));
  if (p->options->bf16_result) p->whole.c_dtype = ASPARSE_BF16;
cleanup:
  asparse_free(pattern.col_idx);
  return status;
}

/* ---- candidates ------------------------------------------------------------------------------ */

static bool fits(const planner *p, int parts) { return (double)p->slab->nnz / parts <= p->entries_that_fit; }

static void add(planner *p, asparse_exchange_mode mode, const asparse_volumes *volumes) {
  if (p->n_candidates == ASPARSE_MOST_WAYS) return;
  p->candidates[p->n_candidates++] =
      (asparse_mode_candidate){.mode = mode,
                               .volumes = volumes,
                               .pn = p->comm->size / volumes->parts,
                               .wanted_chunks = p->options->reproducible ? 1 : p->options->chunks};
}

/* Collective. Volumes of one number of parts. */
static asparse_status count(planner *p, const int64_t *cost, int parts, const asparse_volumes **volumes) {
  asparse_status status = ASPARSE_OK;
  asparse_partition *partition = NULL;
  TRY(asparse_partition_contiguous(p->comm, p->slab, cost, parts, &partition));
  TRY(asparse_volumes_count(p->comm, p->slab, partition, p->shape.c_bytes / p->shape.b_bytes, &p->volumes[p->n_parts]));
  *volumes = p->volumes[p->n_parts++];
cleanup:
  asparse_partition_destroy(&partition);
  return status;
}

/* Collective. Simple ways first: a later one has to be faster. */
static asparse_status count_all(planner *p) {
  asparse_status status = ASPARSE_OK;
  const int size = p->comm->size;
  const bool rows_stay =
      p->options->operands == ASPARSE_PLACEMENT_ROWS && p->engine->backend->space == ASPARSE_SPACE_DEVICE;
  const asparse_volumes *volumes = NULL;
  int64_t *cost = asparse_malloc(p->slab->n_rows, sizeof *cost, "row costs");
  TRY(asparse_comm_agree(p->comm, cost ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_partition_row_cost(p->comm, p->slab, p->shape.n, cost));
  TRY(count(p, cost, size, &volumes));
  add(p, ASPARSE_EXCHANGE_ROWS, volumes);
  add(p, ASPARSE_EXCHANGE_REPLICATE, volumes);
  const bool sums_partial_rows = !p->options->reproducible && !p->options->bf16_result;
  if (sums_partial_rows && volumes->cover_is_exact) add(p, ASPARSE_EXCHANGE_COVER, volumes);
  for (int parts = 1; parts < size && !rows_stay; parts++) {
    if (size % parts != 0 || size / parts > p->shape.n || !fits(p, parts) || p->n_parts == ASPARSE_MOST_WAYS) continue;
    TRY(count(p, cost, parts, &volumes));
    add(p, parts == 1 ? ASPARSE_EXCHANGE_COLUMNS : ASPARSE_EXCHANGE_GRID, volumes);
  }
cleanup:
  asparse_free(cost);
  return status;
}

/* ---- choice ---------------------------------------------------------------------------------- */

static asparse_planned_way describe(const asparse_mode_candidate *c, const asparse_volume_shape *shape,
                                    bool row_operands) {
  asparse_volume largest, total;
  asparse_volumes_summarise(c->volumes, c->mode, c->pn, shape, &largest, &total);
  return (asparse_planned_way){c->mode,
                               c->volumes->parts,
                               c->pn,
                               c->chunks,
                               largest.bytes_received + (row_operands ? largest.layout_bytes : 0),
                               c->predicted_seconds};
}

/* Rank 0's rates decide for all. Collective. */
static asparse_status choose(planner *p, asparse_planning *planning) {
  asparse_status status = ASPARSE_OK;
  const bool on_device = p->engine->backend->space == ASPARSE_SPACE_DEVICE;
  const bool row_operands = p->options->operands == ASPARSE_PLACEMENT_ROWS;
  const asparse_mode_compute compute = {&p->whole, on_device ? NULL : &p->rates};
  TRY_MPI(MPI_Bcast(&p->rates.threads, 1, MPI_INT, 0, p->comm->mpi));
  planning->best =
      asparse_mode_choose(p->candidates, p->n_candidates, &compute, &planning->link, &p->shape, row_operands);
  planning->n_ways = p->n_candidates;
  for (int i = 0; i < p->n_candidates; i++) planning->ways[i] = describe(&p->candidates[i], &p->shape, row_operands);
cleanup:
  return status;
}

/* Entries of A that a rank has room for: half of this host's memory, by its ranks. Collective. */
static asparse_status measure_room(planner *p) {
  asparse_status status = ASPARSE_OK;
  int64_t bytes = asparse_budget_available() / 2 / p->comm->node_size;
  TRY(asparse_comm_min(p->comm, &bytes, 1));
  p->entries_that_fit = (double)bytes / ENTRY_BYTES;
  if (p->engine->backend->space == ASPARSE_SPACE_DEVICE)
    p->entries_that_fit = fmin(p->entries_that_fit, DEVICE_BYTES / ENTRY_BYTES);
cleanup:
  return status;
}

static bool is_left_open(const asparse_comm *comm, const asparse_csr *slab, const asparse_options *options) {
  return comm->size > 1 && options->exchange == ASPARSE_EXCHANGE_AUTO && options->grid_rows == 0 &&
         options->grid_columns == 0 && options->partition == ASPARSE_PARTITION_CONTIGUOUS && slab->nnz > 0 &&
         slab->k <= INT32_MAX && slab->m <= INT32_MAX &&
         (!options->bf16_result || slab->dtype == ASPARSE_BF16); /* else the plan refuses */
}

asparse_status asparse_planner_plan(asparse_comm *comm, const asparse_csr *slab, const asparse_options *options,
                                    int64_t n, asparse_planning *planning) {
  asparse_status status = ASPARSE_OK;
  planner *p = NULL;
  asparse_links links;
  const double start = asparse_seconds();
  const asparse_dtype c_dtype = options->bf16_result ? ASPARSE_BF16 : asparse_dtype_result(slab->dtype);
  *planning = (asparse_planning){0};
  if (!is_left_open(comm, slab, options) || n < 1) return ASPARSE_OK;
  p = asparse_calloc(1, sizeof *p, "the planner");
  TRY(asparse_comm_agree(comm, p ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  *p = (planner){.comm = comm, .slab = slab, .options = options};
  p->shape = (asparse_volume_shape){n, (int)asparse_dtype_size(slab->dtype), (int)asparse_dtype_size(c_dtype)};
  TRY(asparse_engines_open(comm, options, &p->engine));
  if (p->engine->backend->space == ASPARSE_SPACE_HOST) status = asparse_engines_host_rates(comm, &p->rates);
  TRY(asparse_comm_agree(comm, status));
  TRY(asparse_link_cache_get(comm, p->engine, &links, &p->rates, &planning->link_remembered));
  planning->link = asparse_links_all(comm, p->engine, &links);
  TRY(measure_room(p));
  TRY(profile_slab(p));
  TRY(count_all(p));
  TRY(choose(p, planning));
  planning->seconds = asparse_seconds() - start;
cleanup:
  for (int i = 0; p && i < p->n_parts; i++) asparse_volumes_destroy(&p->volumes[i]);
  if (p) asparse_engine_close(&p->engine);
  asparse_free(p);
  return status;
}

asparse_options asparse_planned_options(const asparse_options *options, const asparse_planning *planning) {
  asparse_options placed = *options;
  if (planning->n_ways == 0 || options->exchange != ASPARSE_EXCHANGE_AUTO || options->grid_rows > 0) return placed;
  const asparse_planned_way *way = &planning->ways[planning->best];
  placed.exchange = way->exchange;
  placed.grid_rows = way->grid_rows;
  placed.grid_columns = way->grid_columns;
  if (placed.chunks == 0) placed.chunks = way->chunks;
  if (options->reproducible && placed.exchange == ASPARSE_EXCHANGE_COVER) placed.exchange = ASPARSE_EXCHANGE_ROWS;
  return placed;
}
