/* The work list of a WCSR multiplication on a GPU: windows cut into tasks of bounded length. Local, host. */
#ifndef ASPARSE_WCSR_WORK_H
#define ASPARSE_WCSR_WORK_H

#include "asparse_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Consecutive tiles of one window. */
typedef struct asparse_wcsr_task {
  int32_t first_tile, n_tiles; /* tiles counted over the whole matrix; n_tiles may be 0 */
  int32_t window;
  int32_t slot; /* workspace slot that takes the partial sum; -1: the task is its whole window and writes C */
} asparse_wcsr_task;

/* A window whose tasks write to slots [first_slot, first_slot + n_slots), to be added in that order. */
typedef struct asparse_wcsr_split {
  int32_t window, first_slot, n_slots;
} asparse_wcsr_split;

typedef struct asparse_wcsr_work {
  int32_t n_tasks, n_splits, n_slots;
  asparse_wcsr_task *tasks;   /* [n_tasks], split windows first, then the others in order of rows */
  asparse_wcsr_split *splits; /* [n_splits] */
} asparse_wcsr_work;

/* The list for a, no task longer than tiles_per_task ≥ 1. The caller destroys it. ERR_MEMORY; ERR_USAGE when
 * tiles_per_task < 1; ERR_RUNTIME when a has more tiles than int32 counts. */
asparse_status asparse_wcsr_work_build(const asparse_wcsr *a, int32_t tiles_per_task, asparse_wcsr_work **work);
void asparse_wcsr_work_destroy(asparse_wcsr_work **work);

#ifdef __cplusplus
}
#endif
#endif
