/* One run as rank 0 sees it: every rank's numbers gathered, and what follows from them. */
#ifndef ASPARSE_SUMMARY_H
#define ASPARSE_SUMMARY_H

#include "programs/record.h"

/* What each rank contributes beside its seconds. */
typedef enum quantity {
  QUANTITY_ROWS = 0, /* of this rank's share of C */
  QUANTITY_B_ROWS,
  QUANTITY_NNZ,
  QUANTITY_STORED,
  QUANTITY_HALO_ROWS,
  QUANTITY_BYTES_SENT,
  QUANTITY_BYTES_RECEIVED,
  QUANTITY_LAYOUT_BYTES_SENT,
  QUANTITY_LAYOUT_BYTES_RECEIVED,
  QUANTITY_SHARD_BYTES, /* padded shards */
  QUANTITY_CSR_BYTES,
  QUANTITY_HALO_BYTES,        /* halo rows, send buffer, lists */
  QUANTITY_OPERAND_BYTES,     /* own share of B and C */
  QUANTITY_PEAK_BYTES,        /* largest sum of the program's own arrays */
  QUANTITY_RSS_BYTES,         /* largest resident set, libraries included */
  QUANTITY_PREDICTED,         /* seconds of local work, by the cost model */
  QUANTITY_PREDICTED_EXECUTE, /* … and of the exchange and the change of layout */
  QUANTITY_DEVICE_BYTES,      /* shards and workspace on the GPU */
  QUANTITY_DEVICE_LEAST,      /* seconds of local work that no kernel can beat; 0 on the host */
  QUANTITY_CORES,             /* this rank may run on */
  N_QUANTITIES
} quantity;

extern const char *const phase_names[N_PHASES];
extern const char *const quantity_names[N_QUANTITIES];

/* Where a rank runs. */
typedef struct rank_place {
  char host[MPI_MAX_PROCESSOR_NAME];
  char cores[128]; /* "0-3,8", as the operating system binds it; what does not fit ends in "…" */
  char device[64]; /* the GPU's name; "" on the host */
} rank_place;

typedef struct summary {
  int ranks, n_hosts;
  char *hosts;        /* comma-separated, each once; owned */
  rank_place *places; /* [ranks] where each runs; owned */
  double core_share;  /* of a core that each thread has: 1, or less with more threads than cores */
  spread seconds[N_PHASES];
  spread quantities[N_QUANTITIES];
  double median_seconds, min_seconds, max_seconds; /* of a multiplication, slowest rank */
  double gflops;                                   /* 2·nnz·n / median */
  double
      least_seconds; /* host: max of traffic at memory speed and arithmetic at peak, all ranks; GPU: slowest rank's */
  double fill_ratio; /* entries / stored entries */
  double replicate_bytes; /* what an all-gather of B would bring to all ranks */
} summary;

/* Collective; filled on rank 0. */
asparse_status summary_create(asparse_comm *comm, const solve_record *record, summary *out);
void summary_free(summary *s);

/* The mode a run's stats stand for: columns and grid by the shape of the grid, else what its ranks exchange. */
asparse_exchange_mode summary_exchange(const asparse_stats *stats);

#endif
