/* What numbers of ranks would exchange, in every way, and how long a multiplication would take. */
#ifndef ASPARSE_INFO_EXCHANGE_H
#define ASPARSE_INFO_EXCHANGE_H

#include "base/comm.h"
#include "plan/mode_choice.h"
#include "programs/info_options.h"

/* The volumes of one number of parts. */
typedef struct exchange_counts {
  asparse_partition_method method;
  double seconds; /* of partitioning and counting, on the ranks of this run */
  asparse_volumes *volumes;
} exchange_counts;

/* One way for one number of ranks. */
typedef struct exchange_way {
  asparse_volume largest, total;
  bool exact; /* else at most so much */
} exchange_way;

/* All ways of one number of ranks with one partitioner. */
typedef struct exchange_table {
  int ranks;
  asparse_link link;
  const exchange_counts *counts; /* of as many parts as ranks */
  int n_ways, best;
  asparse_mode_candidate *candidates; /* [n_ways] */
  exchange_way *ways;                 /* [n_ways] */
} exchange_table;

typedef struct info_exchange {
  asparse_volume_shape shape;
  exchange_counts *counts; /* [n_counts] by method and number of parts */
  int n_counts;
  exchange_table *tables; /* [n_tables], rank 0 only */
  int n_tables;
  char metis_skipped[256]; /* why METIS, though asked for, has no tables; else "" */
} info_exchange;

/* Collective. Counts for options->ranks and all grids of so many ranks. dtype: of A and B. */
asparse_status info_exchange_count(asparse_comm *comm, const asparse_csr *slab, const info_options *options,
                                   asparse_dtype dtype, info_exchange *exchange);

/* Local, of rank 0. Fills the tables. */
asparse_status info_exchange_predict(const info_options *options, const asparse_mode_compute *compute,
                                     info_exchange *exchange);

void info_exchange_free(info_exchange *exchange);

#endif
