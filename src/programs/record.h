/* What a run of asparse_solve did: filled along the way, written as text, JSON and CSV. */
#ifndef ASPARSE_RECORD_H
#define ASPARSE_RECORD_H

#include "plan/plan.h"
#include "programs/solve_options.h"

typedef enum phase {
  PHASE_READ = 0, /* the matrix from the file, or making it */
  PHASE_PARTITION,
  PHASE_MOVE,     /* rows to their owners */
  PHASE_BUILD,    /* choice, shards, exchange lists */
  PHASE_B,        /* filling or reading B */
  PHASE_COPY,     /* B to the GPU and C back */
  PHASE_MULTIPLY, /* median over repeats, whole execute */
  PHASE_PACK,     /* parts of it, of the median repeat, some of them at the same time */
  PHASE_COMMUNICATION,
  PHASE_DIAG,
  PHASE_EXPOSED,
  PHASE_OFFD,
  PHASE_LAYOUT, /* B to blocks of columns and C back */
  PHASE_VERIFY,
  PHASE_GATHER, /* C to rank 0 */
  PHASE_WRITE,
  N_PHASES
} phase;

typedef struct solve_record {
  const solve_options *options;
  const char *command;
  asparse_source source; /* format "" for a partition file */
  int64_t m, k, n, nnz;
  asparse_extent b_extent, c_extent; /* this rank's shares of B and C */
  int64_t n_duplicates, n_inexact;   /* this rank's slab */
  uint64_t matrix_hash;
  asparse_dtype dtype, result; /* of A and B, of C */
  asparse_partition_method partition;
  asparse_planning planning;
  const char *b_source; /* "random", or the path */
  bool b_rounded;       /* B has more digits than the saved shards it meets */
  int threads;
  double imbalance, saved_seconds;
  double seconds[N_PHASES]; /* this rank */
  double *repeats;          /* [n_repeats] slowest rank of each repeat, one multiplication; room: options->repeat */
  int n_repeats;            /* done: fewer than options->repeat where interrupted */
  bool interrupted;         /* SIGUSR1 came before all repeats were done */
  int launches;             /* multiplications in a repeat, which its time is divided by */
  asparse_stats stats;
  asparse_verification verification;
} solve_record;

/* Over ranks. */
typedef struct spread {
  double min, median, p95, max, sum, mean;
} spread;

/* Collective. Gathers every rank's numbers to rank 0, which prints the report and writes JSON and CSV. */
asparse_status solve_report(asparse_comm *comm, const solve_record *record);

#endif
