/* The cost model of a GPU: which kernel multiplies this matrix fastest.
 *
 *   seconds = start + work + A + rows + C + B + rereads + longest + joining
 *   work      instructions of a warp: entries × pieces of B, tiles × slices of 64 columns; of blocks, bytes of B
 *   A         entries, tiles or blocks, once
 *   rows      rows or windows, for each piece or slice
 *   C, B      their bytes; all of it shares the second-level cache with the gather, so the terms add up
 *   rereads   bytes of B that come from memory again, since they had left that cache
 *   longest   the steps one warp or CTA takes one after the other
 *   joining   what the longest window's warps and CTAs take to add their parts
 *
 * Constants fitted to timings on one H200, bf16: 353 matrices (5·10^3 to 1.2·10^7 entries) at n = 256 and 1024, 116 of
 * them at n = 8 … 128, and 17 generated ones (up to 4·10^7 entries) at n = 8 … 256; from least squares of relative
 * errors on, by random steps that shorten what the picked kernels take and, with less weight, the errors near the
 * fastest. Errors spread 0.10–0.15 for windows, 0.16–0.22 for csr, 0.18–0.25 for blocks, 0.07–0.23 for csr-resident
 * (logarithmic). The kernels picked take 2.2 to 2.6 % longer than the fastest for each n (geometric means). */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sell.h"
#include "kernels/wcsr_groups.h"

/* Ceilings of the chip, measured: pieces of 512 bytes gathered from L2, device copy, dense bf16, one launch. */
enum { MULTIPROCESSORS = 132 };
static const double GATHER = 7.6e12, MEMORY = 4.3e12, MMA = 790e12, LAUNCH = 2.0e-6;

enum { SLICE_COLUMNS = 64 }; /* of B, that a warp of the window kernels takes */

/* Of B, that stay in L2 beside A and C; and of a row of B, that CTAs that run together take. */
enum { CACHED_BYTES = 34 << 20, TOGETHER_BYTES = 512 };

/* Seconds for a byte that had left L2. Measured on seven scattered matrices with 1.3 to 5 times as many rows of B as
 * stay there: medians of 0.12 to 0.15 ps for each kernel, 0.07 to 0.2 for all. */
static const double REREAD_BYTE = 1.3e-13;

/* Seconds: to start; for a unit of work, of A, a row or window; for a byte of C and of B; for a step of the longest;
 * where a window is shared by warps, and for each of its parts where there are several. */
typedef struct costs {
  double start, work, a, row, c_byte, b_byte, step, shared, part;
} costs;

typedef struct candidate {
  const char *kernel;
  asparse_format format;
  int32_t unit;
  bool bf16_only, clustered;
  const costs *costs; /* NULL: csr-resident */
} candidate;

static const costs csr = {1.08e-6, 3.59e-11, 3.55e-12, 1.14e-10, 2.55e-13, 1.56e-13, 8.53e-8, 0, 0};
static const costs window_8 = {1.49e-6, 2.64e-10, 0, 1.61e-10, 1.84e-13, 1.01e-13, 1.65e-7, 0.51e-6, 0.20e-6};
static const costs window_16 = {1.89e-6, 2.90e-10, 2.47e-11, 3.10e-10, 1.78e-13, 1.16e-13, 1.73e-7, 0.28e-6, 0.37e-6};
static const costs window_32 = {2.66e-6, 4.08e-10, 6.55e-11, 1.23e-9, 1.88e-13, 1.10e-13, 1.46e-7, 0.02e-6, 0.90e-6};
static const costs window_64 = {2.48e-6, 6.12e-10, 1.63e-10, 3.12e-9, 1.96e-13, 1.97e-13, 1.81e-7, 0.69e-6, 1.63e-6};
static const costs blocks_64 = {2.38e-6, 7.14e-14, 3.31e-9, 0, 2.60e-13, 1.90e-13, 8.19e-8, 0, 0};

/* csr-resident: of its own model, which takes each multiprocessor by itself, and for a byte of C, whose way to memory
 * they share. */
static const double RESIDENT = 0.93, RESIDENT_C_BYTE = 2.6e-13;

static const candidate all[] = {
    {"csr", ASPARSE_FORMAT_CSR, 1, false, false, &csr},
    {"csr-resident", ASPARSE_FORMAT_CSR, 1, true, false, NULL},
    {"wcsr-gather", ASPARSE_FORMAT_WCSR, 8, true, false, &window_8},
    {"wcsr-clustered", ASPARSE_FORMAT_WCSR, 8, true, true, &window_8},
    {"wcsr-gather", ASPARSE_FORMAT_WCSR, 16, true, false, &window_16},
    {"wcsr-clustered", ASPARSE_FORMAT_WCSR, 16, true, true, &window_16},
    {"wcsr-gather", ASPARSE_FORMAT_WCSR, 32, true, false, &window_32},
    {"wcsr-clustered", ASPARSE_FORMAT_WCSR, 32, true, true, &window_32},
    {"wcsr-gather", ASPARSE_FORMAT_WCSR, 64, true, false, &window_64},
    {"wcsr-clustered", ASPARSE_FORMAT_WCSR, 64, true, true, &window_64},
    {"bcsr", ASPARSE_FORMAT_BCSR, 64, true, false, &blocks_64},
};
enum { N_CANDIDATES = sizeof all / sizeof *all };

static int window_slot(int32_t height) { return height == 8 ? 0 : height == 16 ? 1 : height == 32 ? 2 : 3; }

static const asparse_window_counts *windows(const asparse_profile *p, const candidate *c) {
  return (c->clustered ? p->clustered : p->windows) + window_slot(c->unit);
}

static double row_bytes(const asparse_profile *p, asparse_dtype dtype) {
  return (double)p->n * (double)asparse_dtype_size(dtype);
}

enum { SECTOR_BYTES = 32 }; /* that memory gives at once */

/* B is read at most once from memory, and no more rows of it than have entries. */
static double b_bytes(const asparse_profile *p) {
  return fmin((double)p->k, (double)p->nnz) * fmax(row_bytes(p, p->dtype), SECTOR_BYTES);
}

int64_t asparse_device_cached_rows(int64_t n, asparse_dtype dtype) {
  const int64_t bytes = n * (int64_t)asparse_dtype_size(dtype);
  return CACHED_BYTES / (bytes < TOGETHER_BYTES ? (bytes > 0 ? bytes : 1) : TOGETHER_BYTES);
}

/* A block gathers its 64 rows where windows gather those with entries. */
static double reread_bytes(const asparse_profile *p, const candidate *c) {
  if (p->k <= asparse_device_cached_rows(p->n, p->dtype)) return 0;
  const double columns = (double)p->windows[3].columns;
  const double more = c->format == ASPARSE_FORMAT_BCSR && columns > 0 ? (double)p->blocks[2] * c->unit / columns : 1;
  return more * (double)p->b_rereads * row_bytes(p, p->dtype);
}

/* Bytes of C written, or read and written; unit: rows that are written together. */
static double c_bytes(const asparse_profile *p, const asparse_window_counts *windows, int32_t unit) {
  if (!p->accumulate) return (double)p->m * row_bytes(p, p->c_dtype);
  const double rows = unit == 1 ? (double)p->used_rows : fmin((double)windows->used * unit, (double)p->m);
  return 2 * rows * row_bytes(p, p->c_dtype);
}

static double slices(const asparse_profile *p) { return ceil((double)p->n / SLICE_COLUMNS); }

/* Warps for an entry: as many lanes as 16 bytes of B each need, rounded up to a power of two (csr_cuda.cu). */
static double csr_pieces(const asparse_profile *p) {
  const double lane = 16.0 / (double)asparse_dtype_size(p->dtype), needed = ceil((double)p->n / lane);
  int lanes = 1;
  while (lanes < 32 && lanes < needed) lanes *= 2;
  return lanes / 32.0 * ceil(needed / lanes);
}

static double tiles(const asparse_profile *p, const candidate *c) {
  return (double)windows(p, c)->padded / ASPARSE_TILE_COLUMNS;
}

static double work_seconds(const asparse_profile *p, const candidate *c) {
  const costs *k = c->costs;
  if (c->format == ASPARSE_FORMAT_CSR) {
    const double rows = (double)(p->accumulate ? p->used_rows : p->m);
    return (double)p->nnz * (k->work * csr_pieces(p) + k->a) + k->row * csr_pieces(p) * rows;
  }
  if (c->format == ASPARSE_FORMAT_BCSR)
    return (double)p->blocks[2] * (k->work * c->unit * row_bytes(p, p->dtype) + k->a);
  const double rows = p->accumulate ? (double)windows(p, c)->used : ceil((double)p->m / c->unit);
  return tiles(p, c) * (k->work * slices(p) + k->a) + k->row * slices(p) * rows;
}

/* A long row is shared by the groups of lanes of a CTA (csr_cuda.cu). */
static double longest_row(const asparse_profile *p) {
  const double row = (double)p->longest_row, most = fmax(128, 4 * (double)p->nnz / (double)p->m);
  return row <= most ? row : fmax(most, row / 16);
}

/* By the columns of the widest window of 64, as many to a block as elsewhere. */
static double longest_block_row(const asparse_profile *p) {
  const double blocks = (double)p->blocks[2], columns = (double)p->windows[3].columns;
  if (blocks == 0) return 0;
  const double widest = (double)p->windows[3].widest / fmax(1, columns / blocks);
  return fmin(fmax(blocks / ceil((double)p->m / 64), widest), ceil((double)p->k / 64));
}

/* Steps of the longest row, window or block row as far as one warp or CTA takes them, and what joining its parts costs.
 */
static double longest_seconds(const asparse_profile *p, const candidate *c) {
  const costs *k = c->costs;
  if (p->m == 0) return 0;
  if (c->format == ASPARSE_FORMAT_CSR) return k->step * longest_row(p);
  if (c->format == ASPARSE_FORMAT_BCSR) return k->step * longest_block_row(p);
  const asparse_window_counts *w = windows(p, c);
  const asparse_wcsr_limits limits = asparse_wcsr_limits_for(w->padded / ASPARSE_TILE_COLUMNS, c->unit, p->n);
  const int64_t widest = (w->widest + ASPARSE_TILE_COLUMNS - 1) / ASPARSE_TILE_COLUMNS;
  if (widest <= limits.alone) return k->step * (double)widest;
  const double parts = (double)asparse_wcsr_groups_of(widest, limits);
  return k->step * ceil((double)widest / (ASPARSE_WCSR_WARPS * parts)) + k->shared + (parts > 1 ? k->part * parts : 0);
}

/* Infinite where the rows of B do not fit. */
static double predict_resident(const asparse_profile *p) {
  const asparse_sell_profile a = {p->m, p->k, p->nnz, p->longest_row};
  return RESIDENT * asparse_sell_choose(&a, p->n, MULTIPROCESSORS).predicted_seconds +
         RESIDENT_C_BYTE * c_bytes(p, NULL, 1);
}

static double predict(const asparse_profile *p, const candidate *c) {
  const costs *k = c->costs;
  if (!k) return predict_resident(p);
  return k->start + work_seconds(p, c) + k->c_byte * c_bytes(p, windows(p, c), c->unit) + k->b_byte * b_bytes(p) +
         REREAD_BYTE * reread_bytes(p, c) + longest_seconds(p, c);
}

static bool is_possible(const asparse_profile *p, const candidate *c) {
  if (c->clustered && !p->has_clustered) return false;
  return !c->bf16_only || p->dtype == ASPARSE_BF16;
}

bool asparse_device_kernel_clusters(const char *kernel) {
  for (int i = 0; i < N_CANDIDATES; i++)
    if (all[i].clustered && strcmp(all[i].kernel, kernel) == 0) return true;
  return false;
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

/* Rows of B that windows or blocks gather, and rows of A they multiply each with: the tensor cores' work. */
static double least_of(const asparse_profile *p, double gathered, double height) {
  const double mma = p->dtype == ASPARSE_BF16 ? 2 * gathered * height * (double)p->n / MMA : 0;
  return fmax(gathered * row_bytes(p, p->dtype) / GATHER, mma);
}

double asparse_device_least_seconds(const asparse_profile *p) {
  double least = least_of(p, (double)p->nnz, 1);
  for (int i = 0; i < 4; i++) least = fmin(least, least_of(p, (double)p->windows[i].columns, 8 << i));
  least = fmin(least, least_of(p, (double)p->blocks[2] * 64, 64));
  const double a_bytes = (double)p->nnz * (double)asparse_dtype_size(p->dtype);
  return fmax(fmax(least, (a_bytes + b_bytes(p) + c_bytes(p, NULL, 1)) / MEMORY), LAUNCH);
}
