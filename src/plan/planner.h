/* The planner: before a matrix is distributed, decides how its ranks will exchange B. */
#ifndef ASPARSE_PLANNER_H
#define ASPARSE_PLANNER_H

#include "asparse.h"
#include "plan/mode_choice.h"

enum { ASPARSE_MOST_WAYS = 64 };

/* One way of exchanging B, and what a multiplication would cost. */
typedef struct asparse_planned_way {
  asparse_exchange_mode exchange;
  int grid_rows, grid_columns;
  int chunks;        /* of columns that the halo comes in */
  int64_t bytes_max; /* received by the rank that receives most, changes of layout included */
  double predicted_seconds;
} asparse_planned_way;

typedef struct asparse_planning {
  int n_ways; /* 0: options left nothing to decide, or the matrix cannot be planned for */
  int best;
  asparse_planned_way ways[ASPARSE_MOST_WAYS];
  asparse_link link;
  bool link_remembered; /* from an earlier run, not measured in this one */
  double seconds;       /* that planning took */
} asparse_planning;

/* Collective. Ways for all ranks of comm to multiply the distributed slab by n columns, scored with the rates of this
 * machine's cores or GPUs and links (measured where no earlier run has, in about a second). Only where exchange is
 * auto, no grid is given and rows are cut contiguously; operands that are rows stay so on GPUs. Ways whose part of A
 * would not fit are left out. */
asparse_status asparse_planner_plan(asparse_comm *comm, const asparse_csr *slab, const asparse_options *options,
                                    int64_t n, asparse_planning *planning);

/* Pure. The options with what was planned in the place of what they left open. */
asparse_options asparse_planned_options(const asparse_options *options, const asparse_planning *planning);

#endif
