/* Choosing how ranks exchange B by predicted time. Pure functions of volumes, cost model and link. */
#ifndef ASPARSE_MODE_CHOICE_H
#define ASPARSE_MODE_CHOICE_H

#include "kernels/kernels.h"
#include "plan/volumes.h"

/* What joins a rank to the others: seconds for a message, and bytes a second in one direction while all ranks use it.
 */
typedef struct asparse_link {
  double latency_seconds, bytes_per_second;
} asparse_link;

/* Constants for links that were not measured, with their origin in mode_choice.c. */
typedef enum asparse_link_kind {
  ASPARSE_LINK_SHARED_MEMORY = 0, /* MPI between the ranks of one host */
  ASPARSE_LINK_NVLINK,            /* NCCL between the GPUs of one host */
  ASPARSE_LINK_INFINIBAND         /* a 400 Gb/s port for each rank */
} asparse_link_kind;
asparse_link asparse_link_default(asparse_link_kind kind);

/* Pure. messages · latency + bytes / rate. */
double asparse_link_seconds(const asparse_link *link, int64_t messages, int64_t bytes);

/* How fast a rank multiplies. */
typedef struct asparse_mode_compute {
  const asparse_profile *whole;    /* of the whole matrix */
  const asparse_host_rates *rates; /* of each rank; NULL: each has an H200 */
} asparse_mode_compute;

/* One way for p = volumes->parts · pn ranks, and what it would cost. */
typedef struct asparse_mode_candidate {
  asparse_exchange_mode mode;
  const asparse_volumes *volumes; /* borrowed; pm = its parts */
  int pn;
  double predicted_seconds; /* of one multiplication */
  /* Of the rank with most of each: all its entries, its messages, and B to blocks and C back. */
  double compute_seconds, exchange_seconds, layout_seconds;
} asparse_mode_candidate;

/* Seconds that part i's entries take with columns of B, by the kernel cost model: the whole matrix's counts of windows
 * and blocks in proportion to entries. */
double asparse_mode_part_seconds(const asparse_volumes *volumes, const asparse_mode_compute *compute, int i,
                                 int64_t columns);

/* Fills the predictions; returns the candidate of least predicted time, where a later one must be 2 % faster than those
 * before it: simple ones come first. With r over ranks,
 *
 *   predicted = max_r ( layout(r) + max(own(r), exchange(r)) + compute(r) - own(r) )
 *   compute   = asparse_mode_part_seconds; own = compute · entries in own columns / entries, which need not wait
 *   exchange  = messages · latency + max(bytes received, bytes sent) / rate
 *   layout    = the same of moving B to blocks and C back, where row_operands; nothing happens meanwhile
 *
 * The cover's products for other ranks count as if they were made at home; packing is not counted. count ≥ 1. */
int asparse_mode_choose(asparse_mode_candidate *candidates, int count, const asparse_mode_compute *compute,
                        const asparse_link *link, const asparse_volume_shape *shape, bool row_operands);

#endif
