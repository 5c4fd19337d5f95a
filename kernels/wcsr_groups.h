/* The work list of the register-gather WCSR kernel: what the four warps of each CTA do. Local, host. */
#ifndef ASPARSE_WCSR_GROUPS_H
#define ASPARSE_WCSR_GROUPS_H

#include "kernels/wcsr_work.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ASPARSE_WCSR_WARPS = 4 };          /* of a CTA: the shares of a group */
enum { ASPARSE_WCSR_FIRST_COLUMNS = 16 }; /* of a share: those of a tile */

/* Values of asparse_wcsr_share.part below 0. */
enum {
  ASPARSE_WCSR_ALONE = -1,  /* the share is a whole window */
  ASPARSE_WCSR_SHARED = -2, /* the group's shares are one window: their sums are added through shared memory */
  ASPARSE_WCSR_IDLE = -3
};

/* What one warp multiplies: consecutive tiles of one window. */
typedef struct asparse_wcsr_share {
  int32_t first_tile, n_tiles; /* tiles counted over the whole matrix; n_tiles may be 0 */
  int32_t window;
  int32_t part; /* see above; ≥ 0: the group's shares are this part (workspace slot) of a window of several groups */
  int32_t columns[ASPARSE_WCSR_FIRST_COLUMNS]; /* of the first tile, else -1: a read less until rows of B are known */
} asparse_wcsr_share;

typedef struct asparse_wcsr_groups {
  int32_t n_groups, n_shared; /* all; those with part other than ALONE */
  int32_t n_used;             /* the first of all: those of windows with entries, which are enough for C += A·B */
  int32_t n_splits, n_slots;  /* windows of several groups; groups that are parts of them */
  asparse_wcsr_share *shares; /* [n_groups · 4]; groups of several windows hold near ones of like length */
  asparse_wcsr_split *splits; /* [n_splits] */
  int32_t *slot_split;        /* [n_slots] the split a slot belongs to */
} asparse_wcsr_groups;

/* Tiles of one warp: more than alone, and the window is shared by a CTA; more than most for each of its warps, and it
 * is shared by several. */
typedef struct asparse_wcsr_limits {
  int64_t alone, most;
} asparse_wcsr_limits;

/* For a matrix of so many tiles of one window height, and n columns of B: a window is shared when one warp would be
 * busy with it beyond its turn. Pure. */
asparse_wcsr_limits asparse_wcsr_limits_for(int64_t tiles, int32_t window_height, int64_t n);

/* Groups that share a window of so many tiles, more than limits.alone. Pure. */
int64_t asparse_wcsr_groups_of(int64_t tiles, asparse_wcsr_limits limits);

/* The list for a, limits ≥ 1. The caller destroys it. ERR_MEMORY; ERR_RUNTIME when a has more tiles than int32 counts.
 */
asparse_status asparse_wcsr_groups_build(const asparse_wcsr *a, asparse_wcsr_limits limits,
                                         asparse_wcsr_groups **groups);
void asparse_wcsr_groups_destroy(asparse_wcsr_groups **groups);

#ifdef __cplusplus
}
#endif
#endif
