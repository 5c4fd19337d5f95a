#include "kernels/wcsr_groups.h"

#include "base/shard.h"

enum { WARP_COLUMNS = 64, MULTIPROCESSORS = 132 };

/* Bounds of the limits. A tile takes a warp some 0.2 µs when the chip is not full (two are in flight), sharing a window
 * through shared memory 0.9 µs, each part of it in the workspace 0.3 to 2 µs. Measured over 166 matrices at n = 256 and
 * 1024 (H200): half of alone takes 1-3 % longer; half of most 0-10 %, twice as much 3-6 %. */
enum { LEAST_ALONE = 4, MOST_ALONE = 64, LEAST_TILES = 8, MOST_TILES = 32 };

/* Neighbouring windows among which those of like length are grouped, so that no warp of a CTA waits long for another.
 */
enum { SORTED_WINDOWS = 256 };

enum { W = ASPARSE_WCSR_WARPS };
_Static_assert((int)ASPARSE_WCSR_FIRST_COLUMNS == (int)ASPARSE_TILE_COLUMNS, "");

static int64_t window_tiles(const asparse_wcsr *a, int32_t w) {
  return (a->window_row_ptr[w + 1] - a->window_row_ptr[w]) / ASPARSE_TILE_COLUMNS;
}

static int64_t clamp(int64_t x, int64_t least, int64_t most) { return x < least ? least : x < most ? x : most; }

/* Warps of a multiprocessor that run at a time: see wcsr_tile.cuh. */
static int64_t resident_warps(int32_t height) { return height == 8 ? 24 : height == 16 ? 20 : height == 32 ? 12 : 8; }

asparse_wcsr_limits asparse_wcsr_limits_for(int64_t tiles, int32_t window_height, int64_t n) {
  const int64_t slices = (n + WARP_COLUMNS - 1) / WARP_COLUMNS;
  const int64_t turn = tiles * slices / (MULTIPROCESSORS * resident_warps(window_height));
  return (asparse_wcsr_limits){clamp(turn, LEAST_ALONE, MOST_ALONE), clamp(2 * turn, LEAST_TILES, MOST_TILES)};
}

/* A second group is not worth half as many tiles again. */
int64_t asparse_wcsr_groups_of(int64_t tiles, asparse_wcsr_limits limits) {
  const int64_t most = W * limits.most;
  return tiles <= most + most / 2 ? 1 : (tiles + most - 1) / most;
}

/* Tiles [first, first + n) of window w. */
static asparse_wcsr_share share_of(const asparse_wcsr *a, int64_t first, int64_t n, int32_t w, int32_t part) {
  asparse_wcsr_share share = {.first_tile = (int32_t)first, .n_tiles = (int32_t)n, .window = w, .part = part};
  for (int i = 0; i < ASPARSE_TILE_COLUMNS; i++)
    share.columns[i] = n > 0 ? a->window_col_idx[first * ASPARSE_TILE_COLUMNS + i] : -1;
  return share;
}

/* Tiles [first, first + n) of window w over the warps of one group. */
static void add_shared(asparse_wcsr_groups *out, const asparse_wcsr *a, int64_t first, int64_t n, int32_t w,
                       int32_t part) {
  asparse_wcsr_share *shares = out->shares + (int64_t)out->n_groups++ * W;
  for (int i = 0; i < W; i++) {
    const int64_t begin = n * i / W, end = n * (i + 1) / W;
    shares[i] = share_of(a, first + begin, end - begin, w, part);
  }
  out->n_shared++;
}

static void add_long(asparse_wcsr_groups *out, const asparse_wcsr *a, int32_t w, asparse_wcsr_limits limits) {
  const int64_t tiles = window_tiles(a, w), first = a->window_row_ptr[w] / ASPARSE_TILE_COLUMNS;
  const int64_t parts = asparse_wcsr_groups_of(tiles, limits);
  if (parts == 1) {
    add_shared(out, a, first, tiles, w, ASPARSE_WCSR_SHARED);
    return;
  }
  out->splits[out->n_splits] = (asparse_wcsr_split){w, out->n_slots, (int32_t)parts};
  for (int64_t i = 0; i < parts; i++) {
    const int64_t begin = tiles * i / parts, end = tiles * (i + 1) / parts;
    out->slot_split[out->n_slots] = out->n_splits;
    add_shared(out, a, first + begin, end - begin, w, out->n_slots++);
  }
  out->n_splits++;
}

/* Lengths up to twice as long are alike: 0, 1, 2, 3–4, 5–8, … tiles. */
static int length_class(int64_t tiles) {
  int class = 0;
  while (tiles > 0) class ++, tiles = tiles == 1 ? 0 : (tiles + 1) / 2;
  return class;
}

/* A window of a warp: the next share of the last group, or the first of a new one. */
static void add_alone(asparse_wcsr_groups *out, const asparse_wcsr *a, int32_t w, int *used) {
  if (*used == W) {
    asparse_wcsr_share *shares = out->shares + (int64_t)out->n_groups++ * W;
    for (int i = 0; i < W; i++) shares[i] = (asparse_wcsr_share){.part = ASPARSE_WCSR_IDLE};
    *used = 0;
  }
  const int64_t first = a->window_row_ptr[w] / ASPARSE_TILE_COLUMNS;
  out->shares[((int64_t)out->n_groups - 1) * W + (*used)++] =
      share_of(a, first, window_tiles(a, w), w, ASPARSE_WCSR_ALONE);
}

/* Windows of 1 … most tiles, a warp each, longest first among neighbours. */
static void add_all_alone(asparse_wcsr_groups *out, const asparse_wcsr *a, int64_t most) {
  int used = W;
  for (int64_t begin = 0; begin < a->n_windows; begin += SORTED_WINDOWS) {
    const int64_t end = begin + SORTED_WINDOWS < a->n_windows ? begin + SORTED_WINDOWS : a->n_windows;
    for (int class = length_class(most); class > 0; class --) {
      for (int32_t w = (int32_t)begin; w < end; w++) {
        const int64_t tiles = window_tiles(a, w);
        if (tiles <= most && length_class(tiles) == class) add_alone(out, a, w, &used);
      }
    }
  }
}

/* Windows without entries, where zeros are written, in groups of their own. */
static void add_empty(asparse_wcsr_groups *out, const asparse_wcsr *a) {
  int used = W;
  for (int32_t w = 0; w < a->n_windows; w++)
    if (window_tiles(a, w) == 0) add_alone(out, a, w, &used);
}

asparse_status asparse_wcsr_groups_build(const asparse_wcsr *a, asparse_wcsr_limits limits,
                                         asparse_wcsr_groups **groups) {
  asparse_status status = ASPARSE_OK;
  asparse_wcsr_groups *out = NULL;
  const int64_t total = a->window_row_ptr[a->n_windows] / ASPARSE_TILE_COLUMNS;
  int64_t n_alone = 0, n_long = 0, n_slots = 0, n_splits = 0;
  TRY_THAT(total <= INT32_MAX - a->n_windows, ASPARSE_ERR_RUNTIME,
           "WCSR with %lld tiles: a GPU work list holds %d; use more ranks", (long long)total, INT32_MAX);
  for (int32_t w = 0; w < a->n_windows; w++) {
    const int64_t tiles = window_tiles(a, w), parts = asparse_wcsr_groups_of(tiles, limits);
    const bool alone = tiles <= limits.alone, split = !alone && parts > 1;
    n_alone += alone;
    n_long += alone ? 0 : parts;
    n_slots += split ? parts : 0;
    n_splits += split;
  }
  ALLOC_ZERO(out, 1);
  ALLOC(out->shares, W * ((n_alone + W - 1) / W + 1 + n_long));
  ALLOC(out->splits, n_splits);
  ALLOC(out->slot_split, n_slots);
  for (int32_t w = 0; w < a->n_windows; w++) {
    if (window_tiles(a, w) > limits.alone) add_long(out, a, w, limits);
  }
  add_all_alone(out, a, limits.alone);
  out->n_used = out->n_groups;
  add_empty(out, a);
  *groups = out;
  out = NULL;
cleanup:
  asparse_wcsr_groups_destroy(&out);
  return status;
}

void asparse_wcsr_groups_destroy(asparse_wcsr_groups **groups) {
  if (!groups || !*groups) return;
  asparse_free((*groups)->shares);
  asparse_free((*groups)->splits);
  asparse_free((*groups)->slot_split);
  FREE(*groups);
}
