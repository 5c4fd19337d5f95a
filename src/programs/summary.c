#include "programs/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "programs/machine.h"
#include "programs/program.h"

const char *const phase_names[N_PHASES] = {"read",     "partition", "move",          "build", "b",    "copy",
                                           "multiply", "pack",      "communication", "local", "wait", "halo",
                                           "layout",   "verify",    "gather",        "write"};
const char *const quantity_names[N_QUANTITIES] = {"rows",
                                                  "b_rows",
                                                  "nnz",
                                                  "stored",
                                                  "halo_rows",
                                                  "bytes_sent",
                                                  "bytes_received",
                                                  "layout_bytes_sent",
                                                  "layout_bytes_received",
                                                  "shard_bytes",
                                                  "csr_bytes",
                                                  "halo_bytes",
                                                  "operand_bytes",
                                                  "peak_bytes",
                                                  "rss_bytes",
                                                  "predicted_seconds",
                                                  "predicted_execute_seconds",
                                                  "device_bytes",
                                                  "device_least_seconds",
                                                  "cores"};

static double resident_peak_bytes(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * (double)usage.ru_maxrss;
}

static void fill_quantities(const solve_record *r, double *q) {
  const asparse_stats *s = &r->stats;
  const asparse_extent *b = &r->b_extent, *c = &r->c_extent;
  double element = (double)asparse_dtype_size(r->dtype), result = (double)asparse_dtype_size(r->result);
  q[QUANTITY_ROWS] = (double)c->m;
  q[QUANTITY_B_ROWS] = (double)b->m;
  q[QUANTITY_NNZ] = (double)s->nnz;
  q[QUANTITY_STORED] = (double)s->stored;
  q[QUANTITY_HALO_ROWS] = (double)s->halo_rows;
  q[QUANTITY_BYTES_SENT] = (double)s->bytes_sent;
  q[QUANTITY_BYTES_RECEIVED] = (double)s->bytes_received;
  q[QUANTITY_LAYOUT_BYTES_SENT] = (double)s->layout_bytes_sent;
  q[QUANTITY_LAYOUT_BYTES_RECEIVED] = (double)s->layout_bytes_received;
  q[QUANTITY_SHARD_BYTES] = (double)s->shard_bytes;
  q[QUANTITY_CSR_BYTES] = (double)s->csr_bytes;
  q[QUANTITY_HALO_BYTES] = (double)s->halo_bytes;
  q[QUANTITY_OPERAND_BYTES] = (double)b->n * (double)b->m * element + (double)c->n * (double)c->m * result;
  q[QUANTITY_PEAK_BYTES] = (double)asparse_memory_peak_bytes();
  q[QUANTITY_RSS_BYTES] = resident_peak_bytes();
  q[QUANTITY_PREDICTED] = s->predicted_seconds;
  q[QUANTITY_PREDICTED_EXECUTE] = s->predicted_execute_seconds;
  q[QUANTITY_DEVICE_BYTES] = (double)s->device_bytes;
  q[QUANTITY_DEVICE_LEAST] = s->least_seconds;
  q[QUANTITY_CORES] = machine_cores();
}

/* Sorts values[count]. */
static spread spread_of(double *values, int count) {
  spread s = {0};
  asparse_program_sort(values, count);
  for (int i = 0; i < count; i++) s.sum += values[i];
  s.mean = s.sum / count;
  s.min = values[0];
  s.median = values[count / 2];
  s.p95 = values[(count - 1) * 95 / 100];
  s.max = values[count - 1];
  return s;
}

/* Every rank's numbers on rank 0, then their spread. Collective. */
static asparse_status gather_spreads(asparse_comm *comm, const solve_record *record, summary *out) {
  asparse_status status = ASPARSE_OK;
  enum { N = N_PHASES + N_QUANTITIES };
  double mine[N], *all = NULL, *column = NULL;
  memcpy(mine, record->seconds, sizeof record->seconds);
  fill_quantities(record, mine + N_PHASES);
  if (!(all = asparse_malloc((int64_t)comm->size * N, sizeof *all, "gathered numbers")) ||
      !(column = asparse_malloc(comm->size, sizeof *column, "gathered numbers")))
    status = ASPARSE_ERR_MEMORY;
  TRY(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Gather(mine, N, MPI_DOUBLE, all, N, MPI_DOUBLE, 0, comm->mpi));
  for (int i = 0; i < N && comm->rank == 0; i++) {
    for (int r = 0; r < comm->size; r++) column[r] = all[(int64_t)r * N + i];
    spread s = spread_of(column, comm->size);
    if (i < N_PHASES) out->seconds[i] = s;
    else out->quantities[i - N_PHASES] = s;
  }
cleanup:
  asparse_free(all);
  asparse_free(column);
  return status;
}

static int compare_names(const void *left, const void *right) {
  return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Each host once, from the places. Local, rank 0. */
static asparse_status list_hosts(summary *out) {
  asparse_status status = ASPARSE_OK;
  const char **names = NULL;
  ALLOC(names, out->ranks);
  ALLOC(out->hosts, (int64_t)out->ranks * (MPI_MAX_PROCESSOR_NAME + 1));
  for (int r = 0; r < out->ranks; r++) names[r] = out->places[r].host;
  qsort(names, (size_t)out->ranks, sizeof *names, compare_names);
  char *end = out->hosts;
  for (int r = 0; r < out->ranks; r++) {
    if (r > 0 && strcmp(names[r], names[r - 1]) == 0) continue;
    if (out->n_hosts++ > 0) *end++ = ',';
    end = stpcpy(end, names[r]);
  }
cleanup:
  asparse_free(names);
  return status;
}

/* Where every rank runs, on rank 0. Collective. */
static asparse_status gather_places(asparse_comm *comm, const solve_record *record, summary *out) {
  asparse_status status = ASPARSE_OK;
  rank_place mine = {0};
  int length = 0;
  if (comm->rank == 0) out->places = asparse_malloc(comm->size, sizeof *out->places, "places of ranks");
  TRY(asparse_comm_agree(comm, comm->rank > 0 || out->places ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY_MPI(MPI_Get_processor_name(mine.host, &length));
  machine_cores_text(mine.cores, sizeof mine.cores);
  if (record->stats.device) snprintf(mine.device, sizeof mine.device, "%s", record->stats.device);
  TRY_MPI(MPI_Gather(&mine, sizeof mine, MPI_BYTE, out->places, sizeof mine, MPI_BYTE, 0, comm->mpi));
  TRY(asparse_comm_agree(comm, comm->rank == 0 ? list_hosts(out) : ASPARSE_OK));
cleanup:
  return status;
}

/* Least time of the whole job: A and B read once and C written once at the memory speed of all ranks,
 * or 2·nnz·n operations at their peak, whichever is longer. cores: ranks, fewer where they share cores. */
static double least_seconds(const solve_record *r, const asparse_host_rates *rates, double cores) {
  double element = (double)asparse_dtype_size(r->dtype), result = (double)asparse_dtype_size(r->result);
  double nnz = (double)r->nnz, n = (double)r->n;
  double bytes = nnz * (4 + element) + (double)r->k * n * element + (double)r->m * n * result;
  double traffic = bytes / (rates->bytes_per_second * cores);
  double arithmetic = 2 * nnz * n / (rates->flops_per_second[r->dtype] * cores);
  return traffic > arithmetic ? traffic : arithmetic;
}

asparse_status summary_create(asparse_comm *comm, const solve_record *record, summary *out) {
  asparse_status status = ASPARSE_OK;
  asparse_host_rates rates = {0};
  *out = (summary){.ranks = comm->size};
  TRY(gather_spreads(comm, record, out));
  TRY(gather_places(comm, record, out));
  TRY(asparse_comm_agree(comm, asparse_host_rates_get(&rates)));
  out->core_share = asparse_comm_core_share(comm, record->threads);
  if (record->n_repeats > 0) {
    out->min_seconds = record->repeats[0];
    out->median_seconds = record->repeats[record->n_repeats / 2];
    out->max_seconds = record->repeats[record->n_repeats - 1];
  }
  if (out->median_seconds > 0) out->gflops = 2e-9 * (double)record->nnz * (double)record->n / out->median_seconds;
  out->least_seconds = record->stats.device ? out->quantities[QUANTITY_DEVICE_LEAST].max
                                            : least_seconds(record, &rates, comm->size * out->core_share);
  double stored = out->quantities[QUANTITY_STORED].sum;
  out->fill_ratio = stored > 0 ? out->quantities[QUANTITY_NNZ].sum / stored : 1.0;
  out->replicate_bytes =
      (double)(comm->size - 1) * (double)record->k * (double)record->n * (double)asparse_dtype_size(record->dtype);
cleanup:
  if (status != ASPARSE_OK) summary_free(out);
  return status;
}

void summary_free(summary *s) {
  FREE(s->hosts);
  FREE(s->places);
}

asparse_exchange_mode summary_exchange(const asparse_stats *stats) {
  if (stats->grid_columns == 1) return stats->exchange;
  return stats->grid_rows == 1 ? ASPARSE_EXCHANGE_COLUMNS : ASPARSE_EXCHANGE_GRID;
}
