/* The steps of the BCSR ladder by name, and the choice among them. */
#include "kernels/bcsr_launch.h"

namespace {

constexpr int64_t kMultiprocessors = 132; /* of the GPU the choice was measured on */

int64_t padded(int64_t n, int64_t tile) { return (n + tile - 1) / tile * tile; }

/* Tiles of 256 columns compute little more than those of 128. */
bool wide_pads_little(int64_t n) { return 8 * padded(n, 256) <= 9 * padded(n, 128); }

/* Groups pay where they save an eighth of the slices of B, or where all tiles run at once and the longest decides (a
 * group's block rows even each other out), unless the last round of tiles leaves multiprocessors idle. */
bool groups_pay(const asparse_cuda_bcsr *a, int64_t n) {
  const int64_t tiles = a->groups.n_groups * (padded(n, 256) / 256);
  const int64_t rounds = (tiles + kMultiprocessors - 1) / kMultiprocessors;
  const bool busy = 4 * tiles >= 3 * rounds * kMultiprocessors,
             shared = 8 * int64_t{a->groups.n_steps} <= 7 * a->n_blocks;
  return busy && (shared || rounds == 1) && wide_pads_little(n);
}

/* Where all tiles run at once, three of 64 columns on a multiprocessor, the longest decides: narrow tiles (long rows
 * read A too often for that once they fill the chip), and several CTAs for each while there are few. A cluster starts
 * late, some 1 µs for two CTAs, 2 µs for four, and by far later once not all of them fit: there is room for some 50 of
 * two CTAs of 64 columns, with long rows 90, and 28 of four. */
bool choose_for_few(const asparse_cuda_bcsr *a, int64_t n, asparse_bcsr_pipeline_config *config) {
  const int64_t rows = a->n_block_rows, tiles = rows * (padded(n, 128) / 128), blocks = a->n_blocks;
  if (2 * tiles > 3 * kMultiprocessors) return false;
  const bool fill = 2 * tiles > kMultiprocessors && blocks >= 12 * rows;
  *config = {1, fill ? 128 : 64, 4, 1, 1, false};
  if (tiles <= 28 && blocks >= 20 * rows) config->shares = 4;
  else if (tiles <= 132 && blocks >= 64 * rows) *config = {1, 128, 4, 1, 2, false};
  else if ((tiles <= 52 && blocks >= 10 * rows) || (tiles <= 92 && blocks >= 28 * rows))
    *config = {1, 64, 4, 1, 2, false};
  return true;
}

} // namespace

/* Measured on one H200 over 18944 × 3584 and 3584 × 18944 with 50 to 99 % of the blocks empty, n = 256, 1024 and 4096,
 * and over 152 matrices of a collection. Without groups, tiles of 512 columns win from 16 blocks a row on, since they
 * read A less often; below, the ends of tiles dominate: a persistent kernel hides them (256 × 4) where every CTA has
 * several tiles of a few blocks, else two CTAs a multiprocessor (256 × 2). */
asparse_bcsr_pipeline_config asparse_bcsr_pipeline_choose(const asparse_cuda_bcsr *a, int64_t n) {
  const asparse_bcsr_pipeline_config narrow = {1, 128, 4, 1, 1, false}, narrow_256 = {1, 256, 2, 1, 1, false},
                                     wide_256 = {1, 256, 5, 1, 1, false}, wide_384 = {1, 384, 4, 1, 1, false},
                                     wide_512 = {1, 512, 3, 1, 1, false};
  const asparse_bcsr_pipeline_config preferred[2][4] = {{narrow_256, narrow, wide_384, wide_512}, /* short rows */
                                                        {wide_512, wide_256, wide_384, narrow}};  /* long rows */
  const int64_t rows = a->n_block_rows;
  const int is_long = a->n_blocks >= 16 * rows;
  asparse_bcsr_pipeline_config best = narrow;
  int64_t least = INT64_MAX;
  if (choose_for_few(a, n, &best)) return best;
  if (a->n_blocks < 10 * rows && rows * (padded(n, 256) / 256) >= 2 * kMultiprocessors && wide_pads_little(n))
    return {1, 256, 4, 1, 1, true};
  if (a->groups.rows == 2 && groups_pay(a, n)) return {2, 256, 4, 1, 1, true};
  if (a->groups.rows == 3 && groups_pay(a, n)) return {3, 256, 3, 1, 1, true};
  for (const asparse_bcsr_pipeline_config &candidate : preferred[is_long]) {
    const int64_t columns = padded(n, candidate.tile_columns), tiles = columns / candidate.tile_columns;
    /* 128 divides every tile, so it is never padded more than another */
    const bool fills = tiles * rows >= (is_long ? 100 : 600) || candidate.tile_columns == 128;
    if (fills && columns < least) best = candidate, least = columns;
  }
  return best;
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
