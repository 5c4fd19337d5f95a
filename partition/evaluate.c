/* Rows of B that the parts of a partition send each other, for any number of parts, counted on any number of ranks.
 *
 * Each column has a judge among the ranks. Ranks send each judge the distinct (part, column) pairs of their
 * rows, and the judge counts the distinct pairs whose column belongs to another part, and marks the pairs of
 * parts. Parts are taken in batches whose entries and marks fit a fixed budget. */
#include "partition/partition.h"
#include "partition/sort_keys.h"

/* Entries of one batch on one rank (two arrays of 8 bytes each), unless one part alone exceeds it. */
enum { BATCH_ENTRIES = 1 << 22 };
/* Words of marks of one batch (8 bytes each), unless those of one part alone exceed it. */
enum { BATCH_WORDS = 1 << 20 };

typedef struct evaluation {
  asparse_comm *comm;
  const asparse_csr *a;
  const asparse_partition *partition;
  int *part_of_row;         /* [a->n_rows] */
  int64_t *order;           /* [a->n_rows] the slab's rows by part */
  int64_t *order_starts;    /* [parts + 1] */
  int64_t *slab_starts;     /* [comm->size + 1] */
  int64_t *received, *sent; /* [parts] each, one block: foreign columns counted by this rank, then by all */
  int64_t *nnz, *busiest;   /* [parts] entries of all ranks, of the rank with most */
  int64_t mark_words;       /* ⌈parts / 64⌉ */
  uint64_t *marks;          /* [parts of the largest batch · mark_words] bit s of row q: q receives from s */
} evaluation;

static bool permuted(const evaluation *v) { return v->partition->method == ASPARSE_PARTITION_METIS; }

static int64_t new_row(const evaluation *v, int64_t i) {
  return v->partition->new_row ? v->partition->new_row[i] : v->a->row_begin + i;
}

/* A permuted column's part is known to the rank whose slab holds the row of that number; otherwise to all,
 * and columns are dealt out so that heavy neighbours have different judges. */
static int judge_of(const evaluation *v, int64_t col) {
  return permuted(v) ? asparse_owner(v->slab_starts, v->comm->size, col) : (int)(col % v->comm->size);
}

/* Only for columns this rank judges. */
static int part_of_column(const evaluation *v, int64_t col) {
  if (permuted(v)) return v->part_of_row[col - v->a->row_begin];
  return asparse_owner(v->partition->col_starts, v->partition->parts, col);
}

static asparse_status allocate(evaluation *v) {
  asparse_status status = ASPARSE_OK;
  int64_t parts = v->partition->parts;
  ALLOC(v->part_of_row, v->a->n_rows);
  ALLOC(v->order, v->a->n_rows);
  ALLOC_ZERO(v->order_starts, parts + 1);
  ALLOC_ZERO(v->slab_starts, (int64_t)v->comm->size + 1);
  ALLOC_ZERO(v->received, 2 * parts);
  v->sent = v->received + parts;
  ALLOC_ZERO(v->nnz, parts);
  ALLOC_ZERO(v->busiest, parts);
cleanup:
  return status;
}

static void release(evaluation *v) {
  asparse_free(v->part_of_row);
  asparse_free(v->order);
  asparse_free(v->order_starts);
  asparse_free(v->slab_starts);
  asparse_free(v->received);
  asparse_free(v->nnz);
  asparse_free(v->busiest);
  asparse_free(v->marks);
}

/* Collective. The slab's rows by part, and entries of each part. */
static asparse_status sort_rows_by_part(evaluation *v) {
  asparse_status status = ASPARSE_OK;
  int parts = v->partition->parts;
  for (int64_t i = 0; i < v->a->n_rows; i++) {
    int q = v->part_of_row[i] = asparse_owner(v->partition->row_starts, parts, new_row(v, i));
    v->order_starts[q + 1]++;
    v->nnz[q] += v->a->row_ptr[i + 1] - v->a->row_ptr[i];
  }
  for (int q = 0; q < parts; q++) v->order_starts[q + 1] += v->order_starts[q];
  for (int64_t i = v->a->n_rows - 1; i >= 0; i--) v->order[--v->order_starts[v->part_of_row[i] + 1]] = i;
  /* order_starts[q + 1] now is where part q begins: shift back. */
  for (int q = 0; q < parts; q++) v->order_starts[q] = v->order_starts[q + 1];
  v->order_starts[parts] = v->a->n_rows;
  memcpy(v->busiest, v->nnz, (size_t)parts * sizeof *v->nnz);
  TRY(asparse_comm_sum(v->comm, v->nnz, parts));
  TRY(asparse_comm_max(v->comm, v->busiest, parts));
  TRY_MPI(MPI_Allgather(&v->a->row_begin, 1, MPI_INT64_T, v->slab_starts, 1, MPI_INT64_T, v->comm->mpi));
  v->slab_starts[v->comm->size] = v->a->m;
cleanup:
  return status;
}

/* The pairs (part, column) of parts [first, end) as keys (part - first)·k + column; own columns are left out
 * where the part of a column is known. */
static int64_t collect_pairs(const evaluation *v, int first, int end, uint64_t *keys) {
  int64_t n = 0;
  for (int q = first; q < end; q++) {
    int64_t own_begin = permuted(v) ? 0 : v->partition->col_starts[q];
    int64_t own_end = permuted(v) ? 0 : v->partition->col_starts[q + 1];
    for (int64_t o = v->order_starts[q]; o < v->order_starts[q + 1]; o++) {
      int64_t i = v->order[o];
      for (int64_t e = v->a->row_ptr[i]; e < v->a->row_ptr[i + 1]; e++) {
        int64_t col = v->a->col_idx[e];
        if (col >= own_begin && col < own_end) continue;
        keys[n++] = (uint64_t)(q - first) * (uint64_t)v->a->k + (uint64_t)col;
      }
    }
  }
  return n;
}

/* Collective. Sends each key to the judge of its column; *received [*n_received] is owned by the caller. */
static asparse_status send_to_judges(const evaluation *v, const uint64_t *keys, int64_t n, uint64_t *sorted,
                                     uint64_t **received, int64_t *n_received) {
  asparse_status status = ASPARSE_OK;
  int size = v->comm->size;
  int64_t *lists = asparse_calloc(5 * (int64_t)size, sizeof *lists, "evaluation lists");
  TRY(asparse_comm_agree(v->comm, lists ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  int64_t *send = lists, *displs = lists + size, *next = lists + 2 * size;
  int64_t *receive = lists + 3 * size, *receive_displs = lists + 4 * size, total = 0;
  for (int64_t i = 0; i < n; i++) send[judge_of(v, (int64_t)(keys[i] % (uint64_t)v->a->k))]++;
  for (int r = 1; r < size; r++) next[r] = next[r - 1] + send[r - 1];
  for (int r = 0; r < size; r++) displs[r] = next[r] * 8, send[r] *= 8;
  for (int64_t i = 0; i < n; i++) sorted[next[judge_of(v, (int64_t)(keys[i] % (uint64_t)v->a->k))]++] = keys[i];
  TRY(asparse_comm_alltoall_int64(v->comm, send, receive));
  for (int r = 0; r < size; total += receive[r++]) receive_displs[r] = total;
  *n_received = total / 8;
  *received = asparse_malloc(*n_received, sizeof **received, "pairs to judge");
  TRY(asparse_comm_agree(v->comm, *received ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_comm_alltoallv(v->comm, sorted, send, displs, *received, receive, receive_displs));
cleanup:
  asparse_free(lists);
  return status;
}

/* Pairs (part - first)·k + column, each once: rows of B that travel are counted at both ends. Local. */
static void judge(evaluation *v, int first, const uint64_t *pairs, int64_t n) {
  const uint64_t k = (uint64_t)v->a->k;
  for (int64_t i = 0; i < n; i++) {
    const int q = (int)(pairs[i] / k), part = first + q, source = part_of_column(v, (int64_t)(pairs[i] % k));
    if (source == part) continue;
    v->received[part]++;
    v->sent[source]++;
    v->marks[q * v->mark_words + source / 64] |= UINT64_C(1) << source % 64;
  }
}

/* Collective. Counts the foreign columns of parts [first, end). */
static asparse_status count_batch(evaluation *v, int first, int end) {
  asparse_status status = ASPARSE_OK;
  uint64_t *keys = NULL, *scratch = NULL, *received = NULL, *scratch_received = NULL;
  const uint64_t largest = (uint64_t)(end - first) * (uint64_t)v->a->k;
  int64_t room = 0, n_received = 0;
  for (int64_t o = v->order_starts[first]; o < v->order_starts[end]; o++)
    room += v->a->row_ptr[v->order[o] + 1] - v->a->row_ptr[v->order[o]];
  keys = asparse_malloc(room, sizeof *keys, "pairs of part and column");
  scratch = asparse_malloc(room, sizeof *scratch, "pairs of part and column");
  TRY(asparse_comm_agree(v->comm, keys && scratch ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  int64_t n = asparse_sort_unique(keys, scratch, collect_pairs(v, first, end, keys), largest);
  TRY(send_to_judges(v, keys, n, scratch, &received, &n_received));
  scratch_received = asparse_malloc(n_received, sizeof *scratch_received, "pairs to judge");
  TRY(asparse_comm_agree(v->comm, scratch_received ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  if (v->comm->size > 1) /* else they come from one rank, as sorted as they left */
    n_received = asparse_sort_unique(received, scratch_received, n_received, largest);
  judge(v, first, received, n_received);
cleanup:
  asparse_free(keys);
  asparse_free(scratch);
  asparse_free(received);
  asparse_free(scratch_received);
  return status;
}

/* End of the batch that begins with part `first`; keys stay below 2^63. */
static int batch_end(const evaluation *v, int first) {
  int64_t entries = 0, most_parts = INT64_MAX / (v->a->k > 0 ? v->a->k : 1);
  int end = first;
  while (end < v->partition->parts && end - first < most_parts) {
    entries += v->busiest[end];
    if ((entries > BATCH_ENTRIES || (end + 1 - first) * v->mark_words > BATCH_WORDS) && end > first) break;
    end++;
  }
  return end;
}

/* Collective. Every rank learns which pairs of parts exchange rows, and adds them up. */
static asparse_status count_pairs(evaluation *v, int first, int end, asparse_part_traffic *traffic) {
  asparse_status status = ASPARSE_OK;
  TRY_MPI(
      MPI_Allreduce(MPI_IN_PLACE, v->marks, (int)((end - first) * v->mark_words), MPI_UINT64_T, MPI_BOR, v->comm->mpi));
  for (int q = first; q < end; q++) {
    const uint64_t *row = v->marks + (q - first) * v->mark_words;
    for (int64_t w = 0; w < v->mark_words; w++) {
      traffic[q].sources += __builtin_popcountll(row[w]);
      for (uint64_t bits = row[w]; bits; bits &= bits - 1) traffic[64 * w + __builtin_ctzll(bits)].destinations++;
    }
  }
cleanup:
  return status;
}

/* Room for the marks of every batch. Local. */
static asparse_status allocate_marks(evaluation *v) {
  asparse_status status = ASPARSE_OK;
  int64_t most = 0;
  v->mark_words = (v->partition->parts + 63) / 64;
  for (int first = 0, end; first < v->partition->parts; first = end) {
    end = batch_end(v, first);
    if (end - first > most) most = end - first;
  }
  ALLOC(v->marks, most * v->mark_words);
cleanup:
  return status;
}

asparse_status asparse_partition_traffic(asparse_comm *comm, const asparse_csr *a, const asparse_partition *partition,
                                         asparse_part_traffic *traffic) {
  asparse_status status = ASPARSE_OK;
  const int parts = partition->parts;
  evaluation v = {.comm = comm, .a = a, .partition = partition};
  memset(traffic, 0, (size_t)parts * sizeof *traffic);
  TRY(asparse_comm_agree(comm, allocate(&v)));
  TRY(sort_rows_by_part(&v));
  TRY(asparse_comm_agree(comm, allocate_marks(&v)));
  for (int first = 0, end; first < parts; first = end) {
    end = batch_end(&v, first);
    memset(v.marks, 0, (size_t)((end - first) * v.mark_words) * sizeof *v.marks);
    TRY(count_batch(&v, first, end));
    TRY(count_pairs(&v, first, end, traffic));
  }
  TRY(asparse_comm_sum(comm, v.received, 2 * parts));
  for (int q = 0; q < parts; q++) {
    traffic[q].nnz = v.nnz[q];
    traffic[q].received = v.received[q];
    traffic[q].sent = v.sent[q];
  }
cleanup:
  release(&v);
  return status;
}

static void summarise(const asparse_partition *p, const asparse_part_traffic *traffic,
                      asparse_partition_quality *quality) {
  int64_t nnz = 0;
  *quality = (asparse_partition_quality){.imbalance = 1, .nnz_imbalance = 1};
  for (int q = 0; q < p->parts; q++) {
    int64_t rows = p->row_starts[q + 1] - p->row_starts[q];
    nnz += traffic[q].nnz;
    quality->halo_total += traffic[q].received;
    if (traffic[q].received > quality->halo_max) quality->halo_max = traffic[q].received;
    if (traffic[q].nnz > quality->nnz_max) quality->nnz_max = traffic[q].nnz;
    if (rows > quality->rows_max) quality->rows_max = rows;
  }
  /* imbalance = largest / mean */
  if (p->total_cost > 0) quality->imbalance = (double)p->largest_cost * p->parts / (double)p->total_cost;
  if (nnz > 0) quality->nnz_imbalance = (double)quality->nnz_max * p->parts / (double)nnz;
}

asparse_status asparse_partition_evaluate(asparse_comm *comm, const asparse_csr *a, const asparse_partition *partition,
                                          asparse_partition_quality *quality) {
  asparse_status status = ASPARSE_OK;
  asparse_part_traffic *traffic = asparse_malloc(partition->parts, sizeof *traffic, "traffic of each part");
  TRY(asparse_comm_agree(comm, traffic ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_partition_traffic(comm, a, partition, traffic));
  summarise(partition, traffic, quality);
cleanup:
  asparse_free(traffic);
  return status;
}
