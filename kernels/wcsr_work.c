#include "kernels/wcsr_work.h"

#include "base/shard.h"

static int64_t window_tiles(const asparse_wcsr *a, int32_t w) {
  return (a->window_row_ptr[w + 1] - a->window_row_ptr[w]) / ASPARSE_TILE_COLUMNS;
}

static int64_t parts_of(int64_t tiles, int32_t tiles_per_task) {
  return tiles / tiles_per_task + (tiles % tiles_per_task != 0);
}

/* Even parts: the first tiles % parts of them hold one tile more. */
static void add_split(const asparse_wcsr *a, int32_t w, int32_t parts, asparse_wcsr_work *out) {
  int64_t tiles = window_tiles(a, w), first = a->window_row_ptr[w] / ASPARSE_TILE_COLUMNS;
  out->splits[out->n_splits++] = (asparse_wcsr_split){w, out->n_slots, parts};
  for (int32_t i = 0; i < parts; i++) {
    int32_t n = (int32_t)(tiles / parts + (i < tiles % parts));
    out->tasks[out->n_tasks++] = (asparse_wcsr_task){(int32_t)first, n, w, out->n_slots++};
    first += n;
  }
}

asparse_status asparse_wcsr_work_build(const asparse_wcsr *a, int32_t tiles_per_task, asparse_wcsr_work **work) {
  asparse_status status = ASPARSE_OK;
  asparse_wcsr_work *out = NULL;
  int64_t n_tasks = 0, n_splits = 0, total = a->window_row_ptr[a->n_windows] / ASPARSE_TILE_COLUMNS;
  TRY_THAT(tiles_per_task >= 1, ASPARSE_ERR_USAGE, "WCSR tasks of %d tiles: use 1 or more", tiles_per_task);
  /* n_tasks ≤ tiles + windows */
  TRY_THAT(total <= INT32_MAX - a->n_windows, ASPARSE_ERR_RUNTIME,
           "WCSR with %lld tiles: a GPU task list holds %d; use more ranks", (long long)total, INT32_MAX);
  for (int32_t w = 0; w < a->n_windows; w++) {
    int64_t parts = parts_of(window_tiles(a, w), tiles_per_task);
    n_tasks += parts > 1 ? parts : 1;
    n_splits += parts > 1;
  }
  ALLOC_ZERO(out, 1);
  ALLOC(out->tasks, n_tasks);
  ALLOC(out->splits, n_splits);
  for (int32_t w = 0; w < a->n_windows; w++) {
    int64_t parts = parts_of(window_tiles(a, w), tiles_per_task);
    if (parts > 1) add_split(a, w, (int32_t)parts, out);
  }
  for (int32_t w = 0; w < a->n_windows; w++) {
    int64_t tiles = window_tiles(a, w);
    if (tiles > tiles_per_task) continue;
    int32_t first = (int32_t)(a->window_row_ptr[w] / ASPARSE_TILE_COLUMNS);
    out->tasks[out->n_tasks++] = (asparse_wcsr_task){first, (int32_t)tiles, w, -1};
  }
  *work = out;
  out = NULL;
cleanup:
  asparse_wcsr_work_destroy(&out);
  return status;
}

void asparse_wcsr_work_destroy(asparse_wcsr_work **work) {
  if (!work || !*work) return;
  asparse_free((*work)->tasks);
  asparse_free((*work)->splits);
  FREE(*work);
}
