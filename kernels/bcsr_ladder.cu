/* The steps of the BCSR ladder by name, and the choice among them. */
#include "kernels/bcsr_launch.h"

namespace {

constexpr int64_t kMultiprocessors = 132; /* of the GPU the choice was measured on */

int64_t padded(int64_t n, int64_t tile) { return (n + tile - 1) / tile * tile; }

/* Tiles of so many columns compute little more than those of 128. */
bool pads_little(int64_t n, int64_t tile_columns) { return 8 * padded(n, tile_columns) <= 9 * padded(n, 128); }

/* Groups pay where they save an eighth of the slices of B, or where all tiles run at once and the longest decides (a
 * group's block rows even each other out), unless the last round of tiles leaves multiprocessors idle. */
bool groups_pay(const asparse_cuda_bcsr *a, int64_t n, int64_t tile_columns) {
  const int64_t tiles = a->groups.n_groups * (padded(n, tile_columns) / tile_columns);
  const int64_t rounds = (tiles + kMultiprocessors - 1) / kMultiprocessors;
  const bool busy = 4 * tiles >= 3 * rounds * kMultiprocessors,
             shared = 8 * int64_t{a->groups.n_steps} <= 7 * a->n_blocks;
  return busy && (shared || rounds == 1) && pads_little(n, tile_columns);
}

/* Where all tiles run at once, three of 64 columns on a multiprocessor, the longest decides: narrow tiles, and several
 * CTAs for each while there are few. A cluster starts late, some 1 µs for two CTAs, 2 µs for four, and by far later
 * once not all of them fit: there is room for some 50 of two CTAs of 64 columns, with long rows 90, 28 of four and 16
 * of eight. */
bool choose_for_few(const asparse_cuda_bcsr *a, int64_t n, asparse_bcsr_pipeline_config *config) {
  const int64_t rows = a->n_block_rows, blocks = a->n_blocks;
  const int64_t tiles = rows * (padded(n, 128) / 128), half_tiles = rows * (padded(n, 64) / 64);
  if (2 * tiles > 3 * kMultiprocessors) return false;
  *config = {1, 64, 4, 1, 1, false};
  if (half_tiles <= 16 && blocks >= 100 * rows) config->shares = 8;
  else if (tiles <= 28 && blocks >= 20 * rows) config->shares = 4;
  else if ((tiles <= 132 && blocks >= 64 * rows) || (tiles > 52 && tiles <= 66 && blocks >= 28 * rows))
    *config = {1, 128, 4, 1, 2, false};
  else if ((tiles <= 52 && blocks >= 10 * rows) || (tiles <= 92 && blocks >= 28 * rows)) config->shares = 2;
  return true;
}

} // namespace

/* Measured on one H200 over 18944 × 3584 and 3584 × 18944 with 50 to 99 % of the blocks empty, n = 256, 1024 and 4096,
 * and over 195 matrices of a collection at n = 256 and 1024. Where blocks come near the fastest kernel it picks a
 * configuration 1.5 % slower than the best of them (geometric mean). Short block rows: the ends of tiles dominate,
 * which a persistent kernel hides where every CTA has several. Long ones: wide tiles read A less often. */
asparse_bcsr_pipeline_config asparse_bcsr_pipeline_choose(const asparse_cuda_bcsr *a, int64_t n) {
  const int64_t rows = a->n_block_rows;
  asparse_bcsr_pipeline_config few;
  if (choose_for_few(a, n, &few)) return few;
  if (a->n_blocks < 12 * rows && rows * (padded(n, 256) / 256) >= 2 * kMultiprocessors && pads_little(n, 256))
    return {1, 256, 4, 1, 1, true};
  for (const int32_t columns : {256, 192})
    if (a->groups.rows == 2 && groups_pay(a, n, columns)) return {2, columns, 4, 1, 1, true};
  if (a->n_blocks >= 16 * rows) {
    if (padded(n, 512) == padded(n, 128) && rows * (padded(n, 512) / 512) >= 100) return {1, 512, 3, 1, 1, false};
    if (padded(n, 256) == padded(n, 128) && rows * (padded(n, 256) / 256) >= 100) return {1, 256, 5, 1, 1, false};
  }
  return {1, 128, 4, 1, 1, false};
}

static cudaError_t pipeline(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
  return asparse_bcsr_pipeline(a, bc, {1, 256, 5, 1, 1, false}, stream);
}

static cudaError_t multicast(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
  return asparse_bcsr_pipeline(a, bc, {1, 256, 5, 2, 1, false}, stream);
}

static cudaError_t persistent(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
  return asparse_bcsr_pipeline(a, bc, {1, 256, 4, 1, 1, true}, stream);
}

static cudaError_t grouped(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
  return asparse_bcsr_pipeline(a, bc, {2, 256, 4, 1, 1, true}, stream);
}

const asparse_bcsr_variant asparse_bcsr_ladder[ASPARSE_BCSR_STEPS] = {{"scalar", false, false, asparse_bcsr_scalar},
                                                                      {"wgmma", false, false, asparse_bcsr_wgmma},
                                                                      {"tma", true, false, asparse_bcsr_tma},
                                                                      {"pipeline", true, false, pipeline},
                                                                      {"multicast", true, false, multicast},
                                                                      {"persistent", true, false, persistent},
                                                                      {"grouped", true, true, grouped}};

cudaError_t asparse_bcsr_multiply(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
  if (!asparse_tma_can_address(bc->b, a->k, bc->n, bc->ldb * int64_t{sizeof(uint16_t)}))
    return asparse_bcsr_wgmma(a, bc, stream);
  return asparse_bcsr_pipeline(a, bc, asparse_bcsr_pipeline_choose(a, bc->n), stream);
}
