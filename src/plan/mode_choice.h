/* Choosing how ranks exchange B by predicted time. Pure functions of volumes, cost model and link. */
#ifndef ASPARSE_MODE_CHOICE_H
#define ASPARSE_MODE_CHOICE_H

#include "kernels/kernels.h"
#include "plan/volumes.h"

/* What joins a rank to the others: seconds for a message, and bytes a second in one direction while all ranks use it.
 * by_cores: the ranks' own cores move the bytes, and do not multiply meanwhile. */
typedef struct asparse_link {
  double latency_seconds, bytes_per_second;
  bool by_cores;
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
  int wanted_chunks;        /* of columns, one after the other, in which rows of B shall travel; 0: the best number */
  int chunks;               /* in which they do */
  double predicted_seconds; /* of one multiplication */
  /* Of the rank with most of each: all its entries, its messages, and B to blocks and C back. */
  double compute_seconds, exchange_seconds, layout_seconds;
} asparse_mode_candidate;

/* Seconds that part i's entries in own columns, or the rest of them, take with columns of B, by the kernel cost model:
 * the whole matrix's counts of windows and blocks in proportion to entries. The rest is added to C. */
double asparse_mode_half_seconds(const asparse_volumes *volumes, const asparse_mode_compute *compute, int i, bool own,
                                 int64_t columns);

/* Pure. Seconds of a multiplication whose rows of B come in chunks: own seconds that need none of them, exchange
 * seconds until all are there, equally far apart, rest seconds for multiplying all chunks, each after its arrival. By
 * cores: one after the other. */
double asparse_mode_pipeline_seconds(double own, double exchange, double rest, int chunks, bool by_cores);

/* Fills the predictions and chunks; returns the candidate of least predicted time, where a later one must be 2 % faster
 * than those before it: simple ones come first. With r over ranks,
 *
 *   predicted = min over chunks of max_r ( layout(r) + pipeline(own(r), exchange(r), rest(r)) )
 *   pipeline  = asparse_mode_pipeline_seconds: max(own, exchange) + rest for one chunk, own + exchange + rest by cores
 *   own, rest = asparse_mode_half_seconds
 *   exchange  = chunks · messages · latency + max(bytes received, bytes sent) / rate
 *   layout    = the same of moving B to blocks and C back, where row_operands; nothing happens meanwhile
 *
 * More chunks must be 2 % faster, each of at least 64 columns; the rest is then computed in products that narrow. The
 * exchange cover has one chunk. The cover's products for other ranks count as if they were made at home; packing is not
 * counted. count ≥ 1. */
int asparse_mode_choose(asparse_mode_candidate *candidates, int count, const asparse_mode_compute *compute,
                        const asparse_link *link, const asparse_volume_shape *shape, bool row_operands);

#endif
