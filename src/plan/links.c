#include "plan/links.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "plan/halo.h"

/* Columns of B in fp64: rows of 4 KiB, as long as those of multiplications are. */
enum { COLUMNS = 512, PAIR_ROWS = 1024, MOST_SAMPLES = 101, WARMUPS = 2 };
static const double SAMPLE_SECONDS = 0.4; /* for each of the three figures, but at least one sample */

typedef struct probe {
  asparse_halo *halo;
  void *b; /* [rows × columns] fp64 in the engine's space */
  int64_t columns;
  int64_t *col_starts, *wanted;
} probe;

static void probe_free(probe *p, asparse_engine *engine) {
  asparse_halo_destroy(&p->halo);
  engine->backend->release(p->b);
  asparse_free(p->col_starts);
  asparse_free(p->wanted);
}

/* B of `rows` rows a rank, written once. Local. */
static asparse_status fill(probe *p, asparse_comm *comm, asparse_engine *engine, int64_t rows) {
  asparse_status status = ASPARSE_OK;
  const size_t bytes = (size_t)(rows * p->columns) * sizeof(double);
  double *zeros = NULL;
  ALLOC(p->col_starts, comm->size + (int64_t)1);
  ALLOC(p->wanted, rows);
  ALLOC_ZERO(zeros, rows * p->columns);
  for (int r = 0; r <= comm->size; r++) p->col_starts[r] = r * rows;
  const int64_t from = (comm->rank + comm->size / 2) % comm->size;
  for (int64_t i = 0; i < rows; i++) p->wanted[i] = from * rows + i;
  TRY(engine->backend->allocate(engine, rows * p->columns, sizeof(double), "B of the link probe", &p->b));
  TRY(engine->backend->copy_in(engine, p->b, bytes, zeros, bytes, bytes, 1));
cleanup:
  asparse_free(zeros);
  return status;
}

static asparse_status exchange(probe *p, asparse_engine *engine) {
  PASS(asparse_halo_exchange_begin(p->halo, p->b, p->columns));
  PASS(asparse_halo_exchange_end(p->halo));
  PASS(asparse_halo_wait(p->halo));
  return engine->backend->wait(engine);
}

static int compare(const void *left, const void *right) {
  const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return a < b ? -1 : a > b;
}

/* Median over exchanges of the slowest rank's seconds. Collective. */
static asparse_status time_exchanges(probe *p, asparse_comm *comm, asparse_engine *engine, double *seconds) {
  asparse_status status = ASPARSE_OK;
  int64_t samples[MOST_SAMPLES];
  double whole = 0;
  int n = 0;
  for (int i = -WARMUPS; n == 0 || (n < MOST_SAMPLES && whole < SAMPLE_SECONDS); i++) {
    TRY(asparse_comm_barrier(comm));
    const double start = asparse_seconds();
    status = exchange(p, engine);
    int64_t nanoseconds = (int64_t)(1e9 * (asparse_seconds() - start));
    TRY(asparse_comm_agree(comm, status));
    TRY(asparse_comm_max(comm, &nanoseconds, 1));
    if (i < 0) continue;
    samples[n++] = nanoseconds;
    whole += 1e-9 * (double)nanoseconds;
  }
  qsort(samples, (size_t)n, sizeof *samples, compare);
  *seconds = 1e-9 * (double)samples[n / 2];
cleanup:
  return status;
}

/* Seconds of one exchange and the bytes that each rank receives in it. Collective. */
static asparse_status measure(asparse_comm *comm, asparse_engine *engine, int64_t rows, int64_t columns, bool all,
                              double *seconds, int64_t *bytes) {
  asparse_status status = ASPARSE_OK;
  probe p = {.columns = columns};
  TRY(asparse_comm_agree(comm, fill(&p, comm, engine, rows)));
  TRY(asparse_halo_create(comm, engine, p.col_starts, all ? NULL : p.wanted, rows,
                          (asparse_halo_shape){columns, 1, ASPARSE_FP64}, &p.halo));
  TRY(time_exchanges(&p, comm, engine, seconds));
  *bytes = p.halo->bytes_received;
cleanup:
  probe_free(&p, engine);
  return status;
}

asparse_status asparse_links_measure(asparse_comm *comm, asparse_engine *engine, asparse_links *links) {
  asparse_status status = ASPARSE_OK;
  double seconds = 0;
  int64_t bytes = 0;
  *links = (asparse_links){.pair_bytes_per_second = INFINITY, .all_bytes_per_second = INFINITY};
  if (comm->size == 1) return ASPARSE_OK;
  TRY(measure(comm, engine, 1, 1, false, &links->latency_seconds, &bytes));
  TRY(measure(comm, engine, PAIR_ROWS, COLUMNS, false, &seconds, &bytes));
  links->pair_bytes_per_second = (double)bytes / seconds;
  TRY(measure(comm, engine, 1 + PAIR_ROWS / comm->size, COLUMNS, true, &seconds, &bytes));
  links->all_bytes_per_second = (double)bytes / seconds;
cleanup:
  return status;
}

asparse_link asparse_links_all(const asparse_comm *comm, const asparse_engine *engine, const asparse_links *links) {
  const bool by_cores = engine->backend->space == ASPARSE_SPACE_HOST && comm->node_size == comm->size;
  return (asparse_link){links->latency_seconds, links->all_bytes_per_second, by_cores};
}
