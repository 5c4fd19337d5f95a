#include "partition/metis_graph.h"

static const int64_t IDX_LIMIT = IDXTYPEWIDTH == 32 ? INT32_MAX : INT64_MAX;
/* Weights are scaled to a mean of WEIGHT_MEAN, or less where their sum would leave no room for the 1 added
 * to each. */
enum { WEIGHT_MEAN = 1000 };
static const int64_t WEIGHT_SUM = (int64_t)1 << 30;

/* Collective. Concatenates count elements of each rank on rank 0, in rank order; NULL elsewhere. */
static asparse_status gather(asparse_comm *comm, const void *own, int64_t count, size_t size, const char *what,
                             void **all) {
  asparse_status status = ASPARSE_OK;
  int64_t *bytes = NULL, total = 0;
  bytes = asparse_calloc(4 * (int64_t)comm->size, sizeof *bytes, "gather lists");
  TRY(asparse_comm_agree(comm, bytes ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  int64_t *send = bytes, *receive = bytes + comm->size, *displs = bytes + 2 * comm->size;
  int64_t *zeros = bytes + 3 * comm->size;
  send[0] = count * (int64_t)size;
  TRY(asparse_comm_alltoall_int64(comm, send, receive));
  for (int r = 0; r < comm->size; total += receive[r++]) displs[r] = total;
  if (comm->rank == 0) *all = asparse_malloc(total, 1, what);
  TRY(asparse_comm_agree(comm, comm->rank > 0 || *all ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_comm_alltoallv(comm, own, send, zeros, *all, receive, displs));
cleanup:
  asparse_free(bytes);
  return status;
}

/* Local. The slab's row lengths and columns as idx_t, without the diagonal. */
static asparse_status narrow_pattern(const asparse_csr *a, idx_t **lengths, idx_t **columns, int64_t *count) {
  asparse_status status = ASPARSE_OK;
  *count = 0;
  ALLOC_ZERO(*lengths, a->n_rows);
  ALLOC(*columns, asparse_csr_nnz_local(a));
  for (int64_t i = 0; i < a->n_rows; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      if (a->col_idx[e] == a->row_begin + i) continue;
      (*columns)[(*count)++] = (idx_t)a->col_idx[e];
      (*lengths)[i]++;
    }
  }
cleanup:
  return status;
}

/* Rows of the transpose of a pattern, sorted. */
static asparse_status transpose(int64_t n, const int64_t *row_ptr, const idx_t *columns, int64_t **t_row_ptr,
                                idx_t **t_columns) {
  asparse_status status = ASPARSE_OK;
  ALLOC_ZERO(*t_row_ptr, n + 2);
  ALLOC(*t_columns, row_ptr[n]);
  int64_t *next = *t_row_ptr + 1; /* next[j]: where row j continues; after filling, where row j+1 starts */
  for (int64_t e = 0; e < row_ptr[n]; e++)
    if (columns[e] + 1 < n) next[columns[e] + 1]++;
  for (int64_t j = 1; j < n; j++) next[j] += next[j - 1];
  for (int64_t i = 0; i < n; i++)
    for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++) (*t_columns)[next[columns[e]]++] = (idx_t)i;
cleanup:
  return status;
}

/* Merges two sorted lists without repetition; returns the length. out may be NULL to count. */
static int64_t merge(const idx_t *a, int64_t n_a, const idx_t *b, int64_t n_b, idx_t *out) {
  int64_t i = 0, j = 0, n = 0;
  while (i < n_a || j < n_b) {
    bool from_a = j >= n_b || (i < n_a && a[i] <= b[j]);
    bool from_b = i >= n_a || (j < n_b && b[j] <= a[i]);
    if (out) out[n] = from_a ? a[i] : b[j];
    i += from_a;
    j += from_b;
    n++;
  }
  return n;
}

/* graph = pattern + transpose. */
static asparse_status symmetrise(int64_t n, const int64_t *row_ptr, const idx_t *columns, asparse_metis_graph *graph) {
  asparse_status status = ASPARSE_OK;
  int64_t *t_row_ptr = NULL, edges = 0;
  idx_t *t_columns = NULL;
  TRY(transpose(n, row_ptr, columns, &t_row_ptr, &t_columns));
  ALLOC(graph->xadj, n + 1);
  graph->xadj[0] = 0;
  for (int64_t i = 0; i < n; i++) {
    edges += merge(columns + row_ptr[i], row_ptr[i + 1] - row_ptr[i], t_columns + t_row_ptr[i],
                   t_row_ptr[i + 1] - t_row_ptr[i], NULL);
    TRY_THAT(edges <= IDX_LIMIT, ASPARSE_ERR_USAGE,
             "the graph of A + Aᵀ has more than %lld edges, which METIS's %d-bit integers cannot count; "
             "use --partition contiguous or a METIS built with 64-bit integers",
             (long long)IDX_LIMIT, IDXTYPEWIDTH);
    graph->xadj[i + 1] = (idx_t)edges;
  }
  ALLOC(graph->adjncy, edges);
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t i = 0; i < n; i++)
    merge(columns + row_ptr[i], row_ptr[i + 1] - row_ptr[i], t_columns + t_row_ptr[i], t_row_ptr[i + 1] - t_row_ptr[i],
          graph->adjncy + graph->xadj[i]);
cleanup:
  asparse_free(t_row_ptr);
  asparse_free(t_columns);
  return status;
}

/* Local to rank 0. */
static asparse_status build(int64_t n, const idx_t *lengths, const idx_t *columns, const int64_t *cost,
                            asparse_metis_graph *graph) {
  asparse_status status = ASPARSE_OK;
  int64_t *row_ptr = NULL;
  double total = 0;
  ALLOC(row_ptr, n + 1);
  row_ptr[0] = 0;
  for (int64_t i = 0; i < n; i++) row_ptr[i + 1] = row_ptr[i] + lengths[i];
  graph->n = (idx_t)n;
  TRY(symmetrise(n, row_ptr, columns, graph));
  ALLOC(graph->weight, n);
  for (int64_t i = 0; i < n; i++) total += (double)cost[i];
  double wanted = n < WEIGHT_SUM / WEIGHT_MEAN ? (double)n * WEIGHT_MEAN : (double)WEIGHT_SUM;
  double scale = total > 0 ? wanted / total : 0;
  for (int64_t i = 0; i < n; i++) graph->weight[i] = 1 + (idx_t)((double)cost[i] * scale);
cleanup:
  asparse_free(row_ptr);
  return status;
}

asparse_status asparse_metis_graph_gather(asparse_comm *comm, const asparse_csr *a, const int64_t *cost,
                                          asparse_metis_graph *graph) {
  asparse_status status = ASPARSE_OK;
  idx_t *lengths = NULL, *columns = NULL;
  void *all_lengths = NULL, *all_columns = NULL, *all_cost = NULL;
  int64_t count = 0;
  *graph = (asparse_metis_graph){0};
  if (a->m >= IDX_LIMIT - WEIGHT_SUM)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE,
                        "%lld rows exceed what METIS's %d-bit integers allow; use --partition contiguous",
                        (long long)a->m, IDXTYPEWIDTH);
  TRY(asparse_comm_agree(comm, narrow_pattern(a, &lengths, &columns, &count)));
  TRY(gather(comm, lengths, a->n_rows, sizeof *lengths, "row lengths for METIS", &all_lengths));
  TRY(gather(comm, columns, count, sizeof *columns, "pattern for METIS", &all_columns));
  TRY(gather(comm, cost, a->n_rows, sizeof *cost, "costs for METIS", &all_cost));
  if (comm->rank == 0) status = build(a->m, all_lengths, all_columns, all_cost, graph);
  TRY(asparse_comm_agree(comm, status));
cleanup:
  asparse_free(lengths);
  asparse_free(columns);
  asparse_free(all_lengths);
  asparse_free(all_columns);
  asparse_free(all_cost);
  if (status) asparse_metis_graph_free(graph);
  return status;
}

void asparse_metis_graph_free(asparse_metis_graph *graph) {
  FREE(graph->xadj);
  FREE(graph->adjncy);
  FREE(graph->weight);
}
