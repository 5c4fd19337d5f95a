/* The cost model: which format multiplies this matrix fastest on the host.
 *
 *   seconds = max(updates + gathers + A read once, A and B read once + C written once)
 *   updates   register work: for each strip of columns, an entry of CSR or a column of a tile costs a
 *             fixed part and a part for each vector, in units of one CSR vector multiply-add
 *   gathers   rows of B that neighbouring rows of A do not share come from beyond the first-level cache
 *
 * The constants were fitted by hand to one core of a Xeon (AVX-512, 2 MiB second-level cache), mostly on
 * four FEM and optimisation matrices of 0.3–3 M entries at n = 16, 64, 256; with AVX2 or less they are
 * only a guess. Their ratios matter, the scale is the measured rates'; absolute times can be 2–3 off. */
#include <math.h>

#include "kernels/kernels.h"

enum { VECTOR_BYTES = 64, TILE_ROWS = 8, STRIP_VECTORS = 8, TILE_VECTORS = 2 };

/* Units of work (see above). A CSR entry cannot be faster than the latency of its multiply-add. */
static const double CSR_ENTRY = 2, CSR_VECTOR = 1, CSR_LEAST = 3.5;
static const double TILE_COLUMN = 2, WCSR_VECTOR = 8, BCSR_VECTOR = 4;
/* A column of a window taller than a tile is tested for entries in each tile's rows. */
static const double MASK_TEST = 4;
/* Rates of gathering rows of B in multiples of the streaming rate: B within the second-level cache, or not. */
static const double RATE_NEAR = 6, RATE_FAR = 2;
static const double NEAR_BYTES = 2 << 20;

typedef struct candidate {
  asparse_format format;
  int32_t unit;
} candidate;

static const candidate all[] = {{ASPARSE_FORMAT_CSR, 1},   {ASPARSE_FORMAT_WCSR, 8},  {ASPARSE_FORMAT_WCSR, 16},
                                {ASPARSE_FORMAT_WCSR, 32}, {ASPARSE_FORMAT_WCSR, 64}, {ASPARSE_FORMAT_BCSR, 16},
                                {ASPARSE_FORMAT_BCSR, 32}, {ASPARSE_FORMAT_BCSR, 64}};
enum { N_CANDIDATES = sizeof all / sizeof *all };

/* Position of a height or size in the profile's counts. */
static int window_slot(int32_t height) { return height == 8 ? 0 : height == 16 ? 1 : height == 32 ? 2 : 3; }
static int block_slot(int32_t size) { return size == 16 ? 0 : size == 32 ? 1 : 2; }

/* Stored elements of A with padding. */
static double stored(const asparse_profile *p, candidate c) {
  if (c.format == ASPARSE_FORMAT_CSR) return (double)p->nnz;
  if (c.format == ASPARSE_FORMAT_WCSR) return (double)p->windows[window_slot(c.unit)].columns * c.unit;
  return (double)p->blocks[block_slot(c.unit)] * c.unit * c.unit;
}

/* Bytes of the arrays of A. */
static double matrix_bytes(const asparse_profile *p, candidate c) {
  const double values = stored(p, c) * (double)asparse_dtype_size(p->dtype);
  if (c.format == ASPARSE_FORMAT_CSR) return values + 4.0 * (double)p->nnz + 8.0 * (double)p->m;
  if (c.format == ASPARSE_FORMAT_WCSR) return values + 12.0 * (double)p->windows[window_slot(c.unit)].columns;
  return values + (4.0 + 8.0 * c.unit) * (double)p->blocks[block_slot(c.unit)];
}

/* Rows of B that come from beyond the first-level cache: a block of 16 rows of CSR shares them, and so do
 * the rows of a tile; the tiles of a taller window each fetch their own (on 17 matrices, fp64 and fp32, at n = 16, 64
 * and 256, no taller window was faster than windows of 8). */
static double gathered_rows(const asparse_profile *p, candidate c) {
  if (c.format == ASPARSE_FORMAT_CSR) return (double)p->windows[1].columns;
  if (c.format == ASPARSE_FORMAT_WCSR) return (double)p->windows[0].columns;
  return (double)p->blocks[block_slot(c.unit)] * c.unit;
}

/* Bytes of a row of B, or of C. */
static double row_bytes(const asparse_profile *p, asparse_dtype dtype) {
  return (double)p->n * (double)asparse_dtype_size(dtype);
}

/* Register work, in CSR vector multiply-adds. */
static double updates(const asparse_profile *p, candidate c) {
  const double vectors = ceil(row_bytes(p, asparse_dtype_result(p->dtype)) / VECTOR_BYTES);
  const double strips = ceil(vectors / (c.format == ASPARSE_FORMAT_CSR ? STRIP_VECTORS : TILE_VECTORS));
  if (c.format == ASPARSE_FORMAT_CSR)
    return (double)p->nnz * fmax(CSR_ENTRY * strips + CSR_VECTOR * vectors, CSR_LEAST * strips);
  if (c.format == ASPARSE_FORMAT_BCSR) return stored(p, c) / TILE_ROWS * (TILE_COLUMN * strips + BCSR_VECTOR * vectors);
  /* Eight rows of a taller window that have no entry in a column are skipped. */
  const double tested = c.unit > TILE_ROWS ? stored(p, c) / TILE_ROWS : 0;
  return (double)p->windows[0].columns * (TILE_COLUMN * strips + WCSR_VECTOR * vectors) + tested * MASK_TEST * strips;
}

/* Bytes of C written, or read and written. */
static double result_bytes(const asparse_profile *p, candidate c) {
  const double row = row_bytes(p, asparse_dtype_result(p->dtype));
  if (!p->accumulate) return row * (double)p->m;
  if (c.format == ASPARSE_FORMAT_CSR) return 2 * row * (double)p->used_rows;
  return 2 * row * fmin((double)p->windows[window_slot(c.unit)].used * c.unit, (double)p->m);
}

static double predict(const asparse_profile *p, const asparse_host_rates *r, candidate c) {
  const double b_row = row_bytes(p, p->dtype), b_bytes = b_row * fmin((double)p->k, (double)p->nnz);
  const double c_bytes = result_bytes(p, c);
  /* flops_per_second was measured with one strip: an entry's 2 flops a column took these units. */
  const double columns = (double)ASPARSE_RATE_COLUMNS;
  const double vectors = columns * (double)asparse_dtype_size(asparse_dtype_result(p->dtype)) / VECTOR_BYTES;
  const double unit_seconds = 2 * columns / r->flops_per_second[p->dtype] / (CSR_ENTRY + CSR_VECTOR * vectors);
  const double gather_rate = r->bytes_per_second * (b_bytes <= NEAR_BYTES * r->threads ? RATE_NEAR : RATE_FAR);
  const double a_seconds = matrix_bytes(p, c) / r->bytes_per_second;
  return a_seconds + fmax(updates(p, c) * unit_seconds + gathered_rows(p, c) * b_row / gather_rate,
                          (b_bytes + c_bytes) / r->bytes_per_second);
}

static bool is_wanted(candidate c, asparse_format format, int32_t unit) {
  return (format == ASPARSE_FORMAT_AUTO || c.format == format) && (unit == 0 || c.unit == unit);
}

asparse_kernel_config asparse_choose(const asparse_profile *profile, const asparse_host_rates *rates,
                                     asparse_format wanted, int32_t wanted_unit, asparse_kernel_config *candidates,
                                     int *n_candidates) {
  asparse_kernel_config best = {ASPARSE_FORMAT_CSR, 1, INFINITY, NULL, false, 0};
  for (int i = 0; i < N_CANDIDATES; i++) {
    const asparse_kernel_config config = {all[i].format, all[i].unit, predict(profile, rates, all[i]), NULL, false, 0};
    if (candidates) candidates[i] = config;
    if (is_wanted(all[i], wanted, wanted_unit) && config.predicted_seconds < best.predicted_seconds) best = config;
  }
  if (n_candidates) *n_candidates = N_CANDIDATES;
  return best;
}
