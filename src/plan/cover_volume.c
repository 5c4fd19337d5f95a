/* The foreign entries of each part are brought to one rank, in batches of parts; there the pairs of parts are taken one
 * after the other. An entry travels as a key that sorts by column, then row: col · rows of the part + row in the part.
 */
#include "plan/cover_volume.h"

#include <omp.h>
#include <string.h>

#include "partition/sort_keys.h"
#include "plan/matching.h"

/* Foreign entries of one batch for each rank, unless one part alone has more. */
enum { BATCH_ENTRIES = 1 << 22 };

/* Parts [first, end) of which this rank counts [own_first, own_end). */
typedef struct batch {
  int first, end, own_first, own_end;
  int64_t *counts;   /* [end - first] keys of this slab by part */
  int64_t *arrivals; /* [ranks · own parts] keys from each rank by part; then where they start in received */
  uint64_t *keys, *received;
  int64_t n_keys, n_received;
} batch;

/* What a thread needs for the largest part. */
typedef struct workspace {
  uint64_t *keys, *scratch;
  int32_t *col_ptr, *rows;
  asparse_matching matching;
} workspace;

static int64_t part_rows(const asparse_partition *p, int q) { return p->row_starts[q + 1] - p->row_starts[q]; }

/* ---- keys to the ranks that count them ------------------------------------------------------- */

/* Foreign entries of the slab in parts of the batch: counted by part, or, with next, written as keys. Local. */
static void visit_entries(const asparse_numbered_slab *a, batch *b, int64_t *next) {
  const asparse_partition *p = a->partition;
  for (int64_t i = 0; i < a->slab->n_rows; i++) {
    const int q = a->part_of_row[i];
    if (q < b->first || q >= b->end) continue;
    const uint64_t rows = (uint64_t)part_rows(p, q);
    const int64_t number = p->new_row ? p->new_row[i] : a->slab->row_begin + i;
    const uint64_t row = (uint64_t)(number - p->row_starts[q]);
    for (int64_t e = a->slab->row_ptr[i]; e < a->slab->row_ptr[i + 1]; e++) {
      const int64_t col = a->col_idx[e];
      if (col >= p->col_starts[q] && col < p->col_starts[q + 1]) continue;
      if (next) b->keys[next[q - b->first]++] = (uint64_t)col * rows + row;
      else b->counts[q - b->first]++;
    }
  }
}

/* Part from which rank r counts. */
static int counted_from(const batch *b, int size, int r) {
  return b->first + (int)asparse_even_start(b->end - b->first, size, r);
}

static asparse_status collect_keys(const asparse_numbered_slab *a, batch *b) {
  asparse_status status = ASPARSE_OK;
  int64_t *next = NULL;
  ALLOC_ZERO(b->counts, b->end - b->first);
  ALLOC(next, b->end - b->first);
  visit_entries(a, b, NULL);
  for (int t = 0; t < b->end - b->first; t++) {
    next[t] = b->n_keys;
    b->n_keys += b->counts[t];
  }
  ALLOC(b->keys, b->n_keys);
  visit_entries(a, b, next);
cleanup:
  asparse_free(next);
  return status;
}

/* Collective. counts to arrivals, keys to received. */
static asparse_status send_keys(asparse_comm *comm, batch *b) {
  asparse_status status = ASPARSE_OK;
  const int size = comm->size;
  const int64_t own = b->own_end - b->own_first;
  int64_t *lists = asparse_calloc(4 * (int64_t)size, sizeof *lists, "lists of keys");
  b->arrivals = asparse_malloc(size * own, sizeof *b->arrivals, "counts of keys");
  TRY(asparse_comm_agree(comm, lists && b->arrivals ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  int64_t *send = lists, *send_displs = lists + size, *receive = lists + 2 * size, *receive_displs = lists + 3 * size;
  for (int r = 0; r < size; r++) {
    const int begin = counted_from(b, size, r);
    send[r] = 8 * (counted_from(b, size, r + 1) - begin);
    send_displs[r] = 8 * (begin - b->first);
    receive[r] = 8 * own;
    receive_displs[r] = 8 * own * r;
  }
  TRY(asparse_comm_alltoallv(comm, b->counts, send, send_displs, b->arrivals, receive, receive_displs));
  int64_t sent = 0;
  for (int r = 0; r < size; r++) {
    send_displs[r] = 8 * sent;
    for (int q = counted_from(b, size, r); q < counted_from(b, size, r + 1); q++) sent += b->counts[q - b->first];
    send[r] = 8 * sent - send_displs[r];
    receive_displs[r] = 8 * b->n_received;
    for (int64_t t = r * own; t < (r + 1) * own; t++) b->n_received += b->arrivals[t];
    receive[r] = 8 * b->n_received - receive_displs[r];
  }
  b->received = asparse_malloc(b->n_received, sizeof *b->received, "keys of parts");
  TRY(asparse_comm_agree(comm, b->received ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_comm_alltoallv(comm, b->keys, send, send_displs, b->received, receive, receive_displs));
cleanup:
  asparse_free(lists);
  return status;
}

/* ---- covers ---------------------------------------------------------------------------------- */

/* Keys of own part t from all ranks, sorted. arrivals hold starts. Returns how many. */
static int64_t gather_part(const asparse_comm *comm, const asparse_partition *p, const batch *b, int64_t t,
                           workspace *w) {
  const int64_t own = b->own_end - b->own_first;
  int64_t n = 0;
  for (int r = 0; r < comm->size; r++) {
    const int64_t at = r * own + t, begin = b->arrivals[at];
    const int64_t end = at + 1 < own * comm->size ? b->arrivals[at + 1] : b->n_received;
    memcpy(w->keys + n, b->received + begin, (size_t)(end - begin) * sizeof *w->keys);
    n += end - begin;
  }
  const uint64_t largest = (uint64_t)p->k * (uint64_t)part_rows(p, b->own_first + (int)t);
  return asparse_sort_unique(w->keys, w->scratch, n, largest);
}

/* The graph of keys from `begin` on whose columns are before col_end; returns where it ends. */
static int64_t make_graph(const workspace *w, int64_t begin, int64_t end, uint64_t rows, uint64_t col_end,
                          asparse_bipartite *graph) {
  uint64_t last = UINT64_MAX;
  int64_t e = begin;
  graph->n_cols = 0;
  for (; e < end && w->keys[e] < col_end * rows; e++) {
    const uint64_t col = w->keys[e] / rows;
    if (col != last) w->col_ptr[graph->n_cols++] = (int32_t)(e - begin);
    last = col;
    w->rows[e - begin] = (int32_t)(w->keys[e] % rows);
  }
  w->col_ptr[graph->n_cols] = (int32_t)(e - begin);
  return e;
}

/* Adds the covers of part q with all others. */
static void cover_part(const asparse_partition *p, int q, int64_t n, int c_weight, workspace *w, int64_t *received,
                       int64_t *sent) {
  const uint64_t rows = (uint64_t)part_rows(p, q);
  asparse_bipartite graph = {0, w->col_ptr, w->rows, c_weight};
  int source = 0;
  for (int64_t e = 0; e < n;) {
    const int64_t col = (int64_t)(w->keys[e] / rows);
    while (p->col_starts[source + 1] <= col) source++;
    e = make_graph(w, e, n, rows, (uint64_t)p->col_starts[source + 1], &graph);
    const int64_t weight = asparse_matching_size(&graph, &w->matching);
    received[q] += weight;
#pragma omp atomic
    sent[source] += weight;
  }
}

static void workspaces_destroy(workspace **spaces, int count) {
  for (int i = 0; *spaces && i < count; i++) {
    workspace *w = *spaces + i;
    asparse_free(w->keys);
    asparse_free(w->scratch);
    asparse_free(w->col_ptr);
    asparse_free(w->rows);
    asparse_matching_free(&w->matching);
  }
  FREE(*spaces);
}

/* For parts of so many keys, in so many rows. */
static asparse_status workspaces_create(workspace **out, int count, int64_t n_keys, int64_t n_rows, int64_t k,
                                        int c_weight) {
  asparse_status status = ASPARSE_OK;
  workspace *spaces = NULL;
  ALLOC_ZERO(spaces, count);
  for (int i = 0; i < count; i++) {
    ALLOC(spaces[i].keys, n_keys);
    ALLOC(spaces[i].scratch, n_keys);
    ALLOC(spaces[i].col_ptr, n_keys + 1);
    ALLOC(spaces[i].rows, n_keys);
    TRY(asparse_matching_create(&spaces[i].matching, n_rows, n_keys < k ? n_keys : k, c_weight));
  }
  *out = spaces;
  spaces = NULL;
cleanup:
  workspaces_destroy(&spaces, count);
  return status;
}

/* Local, threaded. Adds the covers of this rank's parts. */
static asparse_status cover_parts(const asparse_comm *comm, const asparse_numbered_slab *a, batch *b, int c_weight,
                                  int64_t *received, int64_t *sent) {
  asparse_status status = ASPARSE_OK;
  const asparse_partition *p = a->partition;
  const int64_t own = b->own_end - b->own_first;
  workspace *spaces = NULL;
  int64_t most_keys = 0, most_rows = 0, start = 0;
  for (int q = b->own_first; q < b->own_end; q++) {
    if (a->foreign[q] > most_keys) most_keys = a->foreign[q];
    if (part_rows(p, q) > most_rows) most_rows = part_rows(p, q);
  }
  for (int64_t i = 0; i < own * comm->size; i++) {
    const int64_t count = b->arrivals[i];
    b->arrivals[i] = start;
    start += count;
  }
  const int threads = own < omp_get_max_threads() ? (int)own : omp_get_max_threads();
  if (own == 0) return ASPARSE_OK;
  TRY(workspaces_create(&spaces, threads, most_keys, most_rows, p->k, c_weight));
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int64_t t = 0; t < own; t++) {
    workspace *w = spaces + omp_get_thread_num();
    const int64_t n = gather_part(comm, p, b, t, w);
    cover_part(p, b->own_first + (int)t, n, c_weight, w, received, sent);
  }
cleanup:
  workspaces_destroy(&spaces, threads);
  return status;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Collective. */
static asparse_status cover_batch(asparse_comm *comm, const asparse_numbered_slab *a, int first, int end, int c_weight,
                                  int64_t *received, int64_t *sent) {
  asparse_status status = ASPARSE_OK;
  batch b = {.first = first, .end = end};
  b.own_first = counted_from(&b, comm->size, comm->rank);
  b.own_end = counted_from(&b, comm->size, comm->rank + 1);
  TRY(asparse_comm_agree(comm, collect_keys(a, &b)));
  TRY(send_keys(comm, &b));
  FREE(b.keys);
  TRY(asparse_comm_agree(comm, cover_parts(comm, a, &b, c_weight, received, sent)));
cleanup:
  asparse_free(b.counts);
  asparse_free(b.arrivals);
  asparse_free(b.keys);
  asparse_free(b.received);
  return status;
}

/* Are there few enough entries, and do keys and matchings stay within their integers? */
static bool is_affordable(const asparse_numbered_slab *a, int c_weight) {
  const asparse_partition *p = a->partition;
  int64_t entries = 0;
  for (int q = 0; q < p->parts; q++) {
    int64_t key = 0;
    entries += a->foreign[q];
    if (entries > ASPARSE_COVER_ENTRIES || part_rows(p, q) > INT32_MAX / c_weight) return false;
    if (__builtin_mul_overflow(p->k, part_rows(p, q), &key)) return false;
  }
  return entries <= INT32_MAX / c_weight;
}

asparse_status asparse_cover_volume(asparse_comm *comm, const asparse_numbered_slab *a, int c_weight, int64_t *received,
                                    int64_t *sent, bool *exact) {
  asparse_status status = ASPARSE_OK;
  const int parts = a->partition->parts;
  *exact = is_affordable(a, c_weight);
  if (!*exact) return ASPARSE_OK;
  memset(received, 0, (size_t)parts * sizeof *received);
  memset(sent, 0, (size_t)parts * sizeof *sent);
  for (int first = 0, end; first < parts; first = end) {
    int64_t entries = a->foreign[first];
    for (end = first + 1; end < parts && entries + a->foreign[end] <= (int64_t)BATCH_ENTRIES * comm->size; end++)
      entries += a->foreign[end];
    TRY(cover_batch(comm, a, first, end, c_weight, received, sent));
  }
  TRY(asparse_comm_sum(comm, received, parts));
  TRY(asparse_comm_sum(comm, sent, parts));
cleanup:
  return status;
}
