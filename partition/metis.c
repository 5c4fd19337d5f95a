#include "asparse_config.h"
#include "partition/partition_new.h"

#if ASPARSE_HAVE_METIS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "partition/metis_graph.h"

/* METIS prints its warnings on standard output, where results belong: kept away while it runs. */
static int silence_stdout(void) {
  fflush(stdout);
  int saved = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);
  if (saved >= 0 && null >= 0) dup2(null, STDOUT_FILENO);
  if (null >= 0) close(null);
  return saved;
}

static void restore_stdout(int saved) {
  fflush(stdout);
  if (saved < 0) return;
  dup2(saved, STDOUT_FILENO);
  close(saved);
}

static const char *metis_text(int code) {
  switch (code) {
  case METIS_ERROR_INPUT: return "METIS_ERROR_INPUT: it rejects its input";
  case METIS_ERROR_MEMORY: return "METIS_ERROR_MEMORY: it is out of memory";
  default: return "METIS_ERROR: an internal error";
  }
}

/* Local to rank 0. part_of[n]. METIS 5.1 divides by zero for one part, and has nothing to decide when there
 * are no more rows than parts. */
static asparse_status run_metis(asparse_metis_graph *graph, int parts, idx_t *part_of) {
  if (parts == 1 || graph->n <= parts) {
    for (idx_t i = 0; i < graph->n; i++) part_of[i] = parts == 1 ? 0 : i;
    return ASPARSE_OK;
  }
  idx_t options[METIS_NOPTIONS], n_constraints = 1, n_parts = parts, volume = 0;
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_OBJTYPE] = METIS_OBJTYPE_VOL;
  options[METIS_OPTION_NUMBERING] = 0;
  options[METIS_OPTION_SEED] = 1;
  int saved = silence_stdout();
  int code = METIS_PartGraphKway(&graph->n, &n_constraints, graph->xadj, graph->adjncy, graph->weight, NULL, NULL,
                                 &n_parts, NULL, NULL, options, &volume, part_of);
  restore_stdout(saved);
  if (code == METIS_OK) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME,
                      "METIS_PartGraphKway failed with code %d (%s) for %lld rows in %d parts; "
                      "use --partition contiguous",
                      code, metis_text(code), (long long)graph->n, parts);
}

/* Collective. Rank r receives the part ids of its slab from rank 0's all [m]. */
static asparse_status scatter(asparse_comm *comm, const idx_t *all, int64_t n_rows, idx_t **own) {
  asparse_status status = ASPARSE_OK;
  int64_t *lists = asparse_calloc(5 * (int64_t)comm->size, sizeof *lists, "scatter lists");
  *own = asparse_malloc(n_rows, sizeof **own, "part of each row");
  TRY(asparse_comm_agree(comm, lists && *own ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  int64_t *ask = lists, *send = lists + comm->size, *send_displs = lists + 2 * comm->size;
  int64_t *receive = lists + 3 * comm->size, *zeros = lists + 4 * comm->size;
  ask[0] = receive[0] = n_rows * (int64_t)sizeof **own;
  TRY(asparse_comm_alltoall_int64(comm, ask, send));
  for (int r = 1; r < comm->size; r++) send_displs[r] = send_displs[r - 1] + send[r - 1];
  TRY(asparse_comm_alltoallv(comm, all, send, send_displs, *own, receive, zeros));
cleanup:
  asparse_free(lists);
  return status;
}

/* Collective. Rows numbered by (part, old number): row_starts, new_row and the largest cost of a part. */
static asparse_status number_rows(asparse_comm *comm, const asparse_csr *a, const idx_t *part_of, const int64_t *cost,
                                  asparse_partition *partition) {
  asparse_status status = ASPARSE_OK;
  int parts = partition->parts;
  int64_t *lists = asparse_calloc(3 * (int64_t)parts, sizeof *lists, "rows of each part");
  partition->new_row = asparse_malloc(a->n_rows, sizeof *partition->new_row, "new row numbers");
  TRY(asparse_comm_agree(comm, lists && partition->new_row ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  int64_t *rows = lists, *next = lists + parts, *part_cost = lists + 2 * (int64_t)parts;
  for (int64_t i = 0; i < a->n_rows; i++) {
    rows[part_of[i]]++;
    part_cost[part_of[i]] += cost[i];
  }
  TRY_MPI(MPI_Exscan(rows, next, parts, MPI_INT64_T, MPI_SUM, comm->mpi));
  if (comm->rank == 0) memset(next, 0, (size_t)parts * sizeof *next);
  TRY(asparse_comm_sum(comm, lists, parts));
  TRY(asparse_comm_sum(comm, part_cost, parts));
  for (int q = 0; q < parts; q++) {
    partition->row_starts[q + 1] = partition->row_starts[q] + rows[q];
    next[q] += partition->row_starts[q];
    partition->total_cost += part_cost[q];
    if (part_cost[q] > partition->largest_cost) partition->largest_cost = part_cost[q];
  }
  for (int64_t i = 0; i < a->n_rows; i++) partition->new_row[i] = next[part_of[i]]++;
cleanup:
  asparse_free(lists);
  return status;
}

asparse_status asparse_partition_metis(asparse_comm *comm, const asparse_csr *a, const int64_t *cost, int parts,
                                       asparse_partition **out) {
  asparse_status status = ASPARSE_OK;
  asparse_partition *partition = NULL;
  asparse_metis_graph graph = {0};
  idx_t *all_parts = NULL, *own_parts = NULL;
  if (a->m != a->k)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE,
                        "METIS partitions square matrices, this one is %lld × %lld; use --partition contiguous",
                        (long long)a->m, (long long)a->k);
  TRY(asparse_comm_agree(comm, asparse_partition_new(&partition, ASPARSE_PARTITION_METIS, a->m, a->k, parts)));
  TRY(asparse_metis_graph_gather(comm, a, cost, &graph));
  if (comm->rank == 0) {
    all_parts = asparse_malloc(a->m, sizeof *all_parts, "part of each row");
    status = all_parts ? run_metis(&graph, parts, all_parts) : ASPARSE_ERR_MEMORY;
  }
  TRY(asparse_comm_agree(comm, status));
  TRY(scatter(comm, all_parts, a->n_rows, &own_parts));
  TRY(number_rows(comm, a, own_parts, cost, partition));
  asparse_partition_col_starts(partition);
  partition->n_slab_rows = a->n_rows;
  *out = partition;
  partition = NULL;
cleanup:
  asparse_metis_graph_free(&graph);
  asparse_free(all_parts);
  asparse_free(own_parts);
  asparse_partition_destroy(&partition);
  return status;
}

#else

asparse_status asparse_partition_metis(asparse_comm *comm, const asparse_csr *a, const int64_t *cost, int parts,
                                       asparse_partition **out) {
  (void)comm, (void)a, (void)cost, (void)parts, (void)out;
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "asparse was built without METIS; install libmetis-dev and build again, "
                                         "or use --partition contiguous");
}

#endif
