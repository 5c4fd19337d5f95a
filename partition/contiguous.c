/* Exact contiguous partition of distributed rows.
 *
 * S(i) is the cost of rows 0 … i-1. A bottleneck B is feasible when cutting greedily, each part as
 * long as its cost stays within B, needs no more than `parts` parts (probing; Pinar & Aykanat,
 * J. Parallel Distrib. Comput. 64, 2004). A greedy walk passes from rank to rank as a chain of small
 * messages; a probe walks with many bottlenecks at once, so that few rounds are needed. All
 * decisions depend on S alone, so the result does not depend on the number of ranks. */
#include "partition/partition_new.h"

enum { CANDIDATES = 64, CHAIN_TAG = 21 };

static const int64_t COST_LIMIT = (int64_t)1 << 62;

typedef struct costs {
  asparse_comm *comm;
  int parts;
  int64_t row_begin, n_rows, m;
  int64_t *prefix; /* [n_rows + 1] S(row_begin + i) */
  int64_t total, largest;
} costs;

/* Cut q stands before row row[q]; sum[q] = S(row[q]); both [parts + 1]. */
typedef struct cuts {
  int64_t *row, *sum;
} cuts;

/* ⌊whole · q / parts⌋ without overflow. */
static int64_t fraction(int64_t whole, int64_t q, int64_t parts) {
  return whole / parts * q + whole % parts * q / parts;
}

/* ---- search in this rank's prefix sums ---------------------------------------------------- */

/* Largest i in [from, n_rows] with prefix[i] ≤ limit, given prefix[from] ≤ limit. */
static int64_t last_at_most(const costs *c, int64_t from, int64_t limit) {
  int64_t low = from, high = c->n_rows + 1;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (c->prefix[middle] <= limit) low = middle;
    else high = middle;
  }
  return low;
}

/* Smallest i in [0, n_rows] with prefix[i] ≥ limit; n_rows + 1 when there is none. */
static int64_t first_at_least(const costs *c, int64_t limit) {
  int64_t low = -1, high = c->n_rows + 1;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (c->prefix[middle] >= limit) high = middle;
    else low = middle;
  }
  return high;
}

/* ---- chain -------------------------------------------------------------------------------- */

/* Receives from rank `from` or sends to rank `to`; ranks outside the communicator are the ends. */
static asparse_status chain_receive(asparse_comm *comm, int from, int64_t *state, int count) {
  asparse_status status = ASPARSE_OK;
  if (from >= 0 && from < comm->size)
    TRY_MPI(MPI_Recv(state, count, MPI_INT64_T, from, CHAIN_TAG, comm->mpi, MPI_STATUS_IGNORE));
cleanup:
  return status;
}

static asparse_status chain_send(asparse_comm *comm, int to, const int64_t *state, int count) {
  asparse_status status = ASPARSE_OK;
  if (to >= 0 && to < comm->size) TRY_MPI(MPI_Send(state, count, MPI_INT64_T, to, CHAIN_TAG, comm->mpi));
cleanup:
  return status;
}

/* ---- bottleneck --------------------------------------------------------------------------- */

/* Walks one bottleneck through this slab: closed parts so far, and S where the open part began. */
static void probe_slab(const costs *c, int64_t bottleneck, int64_t *closed, int64_t *start) {
  int64_t i = 0;
  while (*closed < c->parts) {
    i = last_at_most(c, i, *start + bottleneck);
    if (i == c->n_rows) break;
    ++*closed;
    *start = c->prefix[i];
  }
}

/* Collective. The first of the ascending candidates that is feasible; CANDIDATES when none is. */
static asparse_status probe(const costs *c, const int64_t *candidates, int64_t *first_feasible) {
  asparse_status status = ASPARSE_OK;
  asparse_comm *comm = c->comm;
  int64_t state[2 * CANDIDATES] = {0};
  TRY(chain_receive(comm, comm->rank - 1, state, 2 * CANDIDATES));
  for (int i = 0; i < CANDIDATES; i++) probe_slab(c, candidates[i], &state[2 * i], &state[2 * i + 1]);
  TRY(chain_send(comm, comm->rank + 1, state, 2 * CANDIDATES));
  *first_feasible = 0;
  while (*first_feasible < CANDIDATES && state[2 * *first_feasible] >= c->parts) ++*first_feasible;
  TRY_MPI(MPI_Bcast(first_feasible, 1, MPI_INT64_T, comm->size - 1, comm->mpi));
cleanup:
  return status;
}

/* Collective. The least feasible bottleneck. Between max(largest cost, mean), below which none is, and
 * mean + largest cost, with which greedy always succeeds. */
static asparse_status least_bottleneck(const costs *c, int64_t *bottleneck) {
  int64_t mean = c->total / c->parts + (c->total % c->parts != 0);
  int64_t low = mean > c->largest ? mean : c->largest, high = mean + c->largest;
  while (low < high) {
    int64_t candidates[CANDIDATES], first;
    for (int i = 0; i < CANDIDATES; i++) candidates[i] = low + fraction(high - low, i, CANDIDATES);
    PASS(probe(c, candidates, &first));
    if (first < CANDIDATES) high = candidates[first];
    if (first > 0) low = candidates[first - 1] + 1;
  }
  *bottleneck = low;
  return ASPARSE_OK;
}

/* ---- cuts --------------------------------------------------------------------------------- */

/* Collective. The last place of each cut that leaves a row to every part after it; no bound when there are fewer
 * rows than parts. */
static asparse_status last_cuts(const costs *c, cuts *last) {
  for (int q = 0; q <= c->parts; q++) {
    last->row[q] = c->m < c->parts ? c->m : c->m - (c->parts - q);
    int64_t i = last->row[q] - c->row_begin;
    last->sum[q] = i >= 0 && i <= c->n_rows ? c->prefix[i] : -1;
  }
  return asparse_comm_max(c->comm, last->sum, c->parts + 1);
}

/* Collective. The least place of each cut: greedy from the right, each part as long as B allows. */
static asparse_status least_cuts(const costs *c, int64_t bottleneck, cuts *least) {
  asparse_comm *comm = c->comm;
  int64_t state[2] = {c->parts - 1, c->total}; /* cut to place, S of the cut after it */
  for (int q = 0; q <= c->parts; q++) least->row[q] = least->sum[q] = -1;
  PASS(chain_receive(comm, comm->rank + 1, state, 2));
  for (; state[0] > 0; state[0]--) {
    int64_t i = first_at_least(c, state[1] - bottleneck);
    if (i == 0 && comm->rank > 0) break; /* an earlier rank may reach further */
    least->row[state[0]] = c->row_begin + i;
    least->sum[state[0]] = state[1] = c->prefix[i];
  }
  PASS(chain_send(comm, comm->rank - 1, state, 2));
  PASS(asparse_comm_max(comm, least->row, c->parts + 1));
  return asparse_comm_max(comm, least->sum, c->parts + 1);
}

/* Where the part from cut `before` ends when the rest is shared evenly by `parts` parts, as an index of this slab's
 * prefix sums; -1 when that is beyond the slab. What is shared is W(i) = S(i) + i, so that rows of no cost are
 * shared too; the part must not exceed the bottleneck. */
static int64_t even_end(const costs *c, int64_t before_row, int64_t before_sum, int64_t parts, int64_t bottleneck) {
  int64_t before = before_sum + before_row, rest = c->total + c->m - before, full = before_sum + bottleneck;
  int64_t wanted = before + rest / parts + (rest % parts != 0);
  bool last_rank = c->comm->rank == c->comm->size - 1;
  int64_t slab_end = c->prefix[c->n_rows] + c->row_begin + c->n_rows;
  if (!last_rank && slab_end <= wanted && c->prefix[c->n_rows] <= full) return -1;

  int64_t low = 0, high = c->n_rows + 1; /* W(low) ≤ wanted < W(high) */
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (c->prefix[middle] + c->row_begin + middle <= wanted) low = middle;
    else high = middle;
  }
  if (high <= c->n_rows) {
    int64_t below = wanted - (c->prefix[low] + c->row_begin + low);
    if (c->prefix[high] + c->row_begin + high - wanted < below) low = high;
  }
  int64_t fullest = last_at_most(c, 0, full);
  return low < fullest ? low : fullest;
}

/* Collective. Cuts from left to right, each where the rest would be shared evenly, within what the bottleneck
 * allows: not before its least place, and with a row for every part where there are enough. */
static asparse_status place_cuts(const costs *c, int64_t bottleneck, const cuts *least, const cuts *last, cuts *cut) {
  asparse_comm *comm = c->comm;
  int64_t state[3] = {1, 0, 0}; /* cut to place; row and S of the cut before it */
  for (int q = 0; q <= c->parts; q++) cut->row[q] = cut->sum[q] = -1;
  PASS(chain_receive(comm, comm->rank - 1, state, 3));
  for (; state[0] < c->parts; state[0]++) {
    int64_t q = state[0], i = even_end(c, state[1], state[2], c->parts - q + 1, bottleneck);
    if (i < 0) break;
    if (c->row_begin + i == state[1] && c->m >= c->parts) i++;
    state[1] = c->row_begin + i;
    state[2] = c->prefix[i];
    if (least->row[q] > state[1]) state[1] = least->row[q], state[2] = least->sum[q];
    if (last->row[q] < state[1]) state[1] = last->row[q], state[2] = last->sum[q];
    cut->row[q] = state[1];
    cut->sum[q] = state[2];
  }
  PASS(chain_send(comm, comm->rank + 1, state, 3));
  cut->row[0] = cut->sum[0] = 0;
  cut->row[c->parts] = c->m;
  cut->sum[c->parts] = c->total;
  return asparse_comm_max(comm, cut->row, c->parts + 1);
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* Local. prefix[i] = cost of the slab's rows before i. */
static asparse_status sum_costs(costs *c, const int64_t *cost) {
  c->prefix[0] = 0;
  for (int64_t i = 0; i < c->n_rows; i++) {
    if (cost[i] < 0 || cost[i] >= COST_LIMIT - c->prefix[i])
      return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "cost %lld of row %lld: costs are at least 0 and sum below 2^62",
                          (long long)cost[i], (long long)(c->row_begin + i));
    if (cost[i] > c->largest) c->largest = cost[i];
    c->prefix[i + 1] = c->prefix[i] + cost[i];
  }
  return ASPARSE_OK;
}

/* Collective. Turns the slab's prefix sums into global ones; learns total and largest. */
static asparse_status globalise_costs(costs *c) {
  asparse_status status = ASPARSE_OK;
  int64_t own = c->prefix[c->n_rows], before = 0, in_mebis = own >> 20;
  TRY(asparse_comm_sum(c->comm, &in_mebis, 1));
  TRY_THAT(in_mebis < (COST_LIMIT >> 20) - c->comm->size, ASPARSE_ERR_USAGE, "the costs of all rows reach 2^62");
  TRY_MPI(MPI_Exscan(&own, &before, 1, MPI_INT64_T, MPI_SUM, c->comm->mpi));
  if (c->comm->rank == 0) before = 0;
  for (int64_t i = 0; i <= c->n_rows; i++) c->prefix[i] += before;
  c->total = own;
  TRY(asparse_comm_sum(c->comm, &c->total, 1));
  TRY(asparse_comm_max(c->comm, &c->largest, 1));
cleanup:
  return status;
}

asparse_status asparse_partition_contiguous(asparse_comm *comm, const asparse_csr *a, const int64_t *cost, int parts,
                                            asparse_partition **out) {
  asparse_status status = ASPARSE_OK;
  asparse_partition *partition = NULL;
  costs c = {comm, parts, a->row_begin, a->n_rows, a->m, NULL, 0, 0};
  cuts least = {NULL, NULL}, last = {NULL, NULL}, cut = {NULL, NULL};
  int64_t bottleneck = 0, *scratch = NULL;
  status = asparse_partition_new(&partition, ASPARSE_PARTITION_CONTIGUOUS, a->m, a->k, parts);
  if (!status && !(c.prefix = asparse_malloc(a->n_rows + 1, sizeof *c.prefix, "prefix sums of costs")))
    status = ASPARSE_ERR_MEMORY;
  if (!status && !(scratch = asparse_malloc(5 * ((int64_t)parts + 1), sizeof *scratch, "cuts")))
    status = ASPARSE_ERR_MEMORY;
  if (!status) status = sum_costs(&c, cost);
  TRY(asparse_comm_agree(comm, status));

  int64_t stride = (int64_t)parts + 1;
  least = (cuts){scratch, scratch + stride};
  last = (cuts){scratch + 2 * stride, scratch + 3 * stride};
  cut = (cuts){partition->row_starts, scratch + 4 * stride};
  TRY(globalise_costs(&c));
  TRY(least_bottleneck(&c, &bottleneck));
  TRY(least_cuts(&c, bottleneck, &least));
  TRY(last_cuts(&c, &last));
  TRY(place_cuts(&c, bottleneck, &least, &last, &cut));
  asparse_partition_col_starts(partition);
  partition->n_slab_rows = a->n_rows;
  partition->largest_cost = bottleneck;
  partition->total_cost = c.total;
  *out = partition;
  partition = NULL;
cleanup:
  asparse_free(c.prefix);
  asparse_free(scratch);
  asparse_partition_destroy(&partition);
  return status;
}
