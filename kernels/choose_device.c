/* The cost model of a GPU: which kernel multiplies this matrix fastest.
 *
 *   seconds = launch + max(gathered bytes / gather rate, bytes of A, B and C / memory rate, MMA flops / MMA rate)
 *
 * with rates of one H200; each kernel reaches its own share of the gather rate. csr-resident gathers from shared memory
 * and has its own model (sell_choose.c). */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sell.h"

/* Ceilings of the chip, measured: pieces of 512 bytes gathered from L2, device copy, dense bf16; shared memory: 128
 * bytes a cycle of each multiprocessor. */
enum { MULTIPROCESSORS = 132 };
static const double GATHER = 7.6e12, SHARED = 29e12, MEMORY = 4.3e12, MMA = 790e12, LAUNCH = 2.5e-6;

typedef struct candidate {
  const char *kernel;
  asparse_format format;
  int32_t unit;
  bool bf16_only, clustered;
  double gather_share; /* of GATHER that the kernel reaches; 0: csr-resident */
} candidate;

static const candidate all[] = {
    {"csr", ASPARSE_FORMAT_CSR, 1, false, false, 0.75},
    {"csr-resident", ASPARSE_FORMAT_CSR, 1, true, false, 0},
    {"wcsr-gather", ASPARSE_FORMAT_WCSR, 8, true, false, 0.68},
    {"wcsr-clustered", ASPARSE_FORMAT_WCSR, 8, true, true, 0.68},
    {"wcsr-gather", ASPARSE_FORMAT_WCSR, 16, true, false, 0.62},
    {"wcsr-clustered", ASPARSE_FORMAT_WCSR, 16, true, true, 0.62},
    {"wcsr-gather", ASPARSE_FORMAT_WCSR, 32, true, false, 0.50},
    {"wcsr-clustered", ASPARSE_FORMAT_WCSR, 32, true, true, 0.50},
    {"wcsr-gather", ASPARSE_FORMAT_WCSR, 64, true, false, 0.40},
    {"wcsr-clustered", ASPARSE_FORMAT_WCSR, 64, true, true, 0.40},
    {"bcsr", ASPARSE_FORMAT_BCSR, 64, true, false, 0.75},
};
enum { N_CANDIDATES = sizeof all / sizeof *all };

static int window_slot(int32_t height) { return height == 8 ? 0 : height == 16 ? 1 : height == 32 ? 2 : 3; }

static const asparse_window_counts *windows(const asparse_profile *p, const candidate *c) {
  return (c->clustered ? p->clustered : p->windows) + window_slot(c->unit);
}

static double row_bytes(const asparse_profile *p, asparse_dtype dtype) {
  return (double)p->n * (double)asparse_dtype_size(dtype);
}

/* Rows of B that the kernel loads, counted with repetition. */
static double gathered_rows(const asparse_profile *p, const candidate *c) {
  if (c->format == ASPARSE_FORMAT_CSR) return (double)p->nnz;
  if (c->format == ASPARSE_FORMAT_WCSR) return (double)windows(p, c)->columns;
  return (double)p->blocks[2] * c->unit;
}

static double matrix_bytes(const asparse_profile *p, const candidate *c) {
  const double value = (double)asparse_dtype_size(p->dtype);
  if (c->format == ASPARSE_FORMAT_CSR) return (double)p->nnz * (value + 4) + 8.0 * (double)p->m;
  if (c->format == ASPARSE_FORMAT_WCSR) return (double)windows(p, c)->padded * (value * c->unit + 12);
  return (double)p->blocks[2] * c->unit * c->unit * value;
}

/* B is read at most once from memory, and no more rows of it than are gathered. */
static double dense_bytes(const asparse_profile *p) {
  return fmin((double)p->k, (double)p->nnz) * row_bytes(p, p->dtype) +
         (double)p->m * row_bytes(p, asparse_dtype_result(p->dtype));
}

/* Infinite where the rows of B do not fit. */
static double predict_resident(const asparse_profile *p) {
  const asparse_sell_profile a = {p->m, p->k, p->nnz, p->longest_row};
  return asparse_sell_choose(&a, p->n, MULTIPROCESSORS).predicted_seconds;
}

static double predict(const asparse_profile *p, const candidate *c) {
  if (c->gather_share == 0) return predict_resident(p);
  const double gather = gathered_rows(p, c) * row_bytes(p, p->dtype) / (GATHER * c->gather_share);
  const double memory = (matrix_bytes(p, c) + dense_bytes(p)) / MEMORY;
  return LAUNCH + fmax(gather, memory);
}

static bool is_possible(const asparse_profile *p, const candidate *c) {
  if (c->clustered && p->clustered[0].padded == 0) return false;
  return !c->bf16_only || p->dtype == ASPARSE_BF16;
}

static bool is_wanted(const candidate *c, asparse_format format, int32_t unit, const char *kernel) {
  return (format == ASPARSE_FORMAT_AUTO || c->format == format) && (unit == 0 || c->unit == unit) &&
         (!kernel || strcmp(kernel, c->kernel) == 0);
}

asparse_kernel_config asparse_choose_device(const asparse_profile *p, asparse_format format, int32_t unit,
                                            const char *kernel, asparse_kernel_config *candidates, int *n_candidates) {
  asparse_kernel_config best = {.format = ASPARSE_FORMAT_CSR, .unit = 1, .predicted_seconds = INFINITY};
  const double least = asparse_device_least_seconds(p);
  int n = 0;
  for (int i = 0; i < N_CANDIDATES; i++) {
    if (!is_possible(p, &all[i])) continue;
    const asparse_kernel_config config = {all[i].format, all[i].unit,      predict(p, &all[i]),
                                          all[i].kernel, all[i].clustered, least};
    if (candidates) candidates[n] = config;
    n++;
    if (is_wanted(&all[i], format, unit, kernel) && config.predicted_seconds < best.predicted_seconds) best = config;
  }
  if (n_candidates) *n_candidates = n;
  return best;
}

double asparse_device_least_seconds(const asparse_profile *p) {
  double least = INFINITY;
  for (int i = 0; i < N_CANDIDATES; i++) {
    const candidate *c = &all[i];
    if (!is_possible(p, c) || c->clustered) continue;
    if (c->gather_share == 0 && p->k > asparse_sell_most_k(8)) continue;
    const double rate = c->gather_share == 0 ? SHARED : GATHER;
    const double gather = gathered_rows(p, c) * row_bytes(p, p->dtype) / rate;
    const double rows = c->format == ASPARSE_FORMAT_CSR ? 0 : gathered_rows(p, c) * c->unit;
    const double mma = 2 * rows * (double)p->n / MMA;
    const double a_bytes = (double)p->nnz * (double)asparse_dtype_size(p->dtype);
    least = fmin(least, fmax(fmax(gather, mma), (a_bytes + dense_bytes(p)) / MEMORY));
  }
  return fmax(least, LAUNCH);
}
