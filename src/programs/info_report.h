/* What asparse_info found, as text and as JSON. */
#ifndef ASPARSE_INFO_REPORT_H
#define ASPARSE_INFO_REPORT_H

#include "io/io.h"
#include "kernels/kernels.h"
#include "partition/partition.h"
#include "programs/info_options.h"
#include "programs/structure.h"

/* What ranks would exchange under one partition. */
typedef struct exchange_volume {
  int ranks;
  asparse_partition_method method;
  asparse_partition_quality quality;
  double seconds; /* of the partitioning, on the ranks of this run */
} exchange_volume;

enum { INFO_CANDIDATES = 8 };

typedef struct info_record {
  const info_options *options;
  asparse_source source;
  asparse_dtype dtype; /* that advice and volumes are for */
  int64_t n_duplicates, n_inexact;
  structure s;
  asparse_host_rates rates; /* rank 0 only, as are the next three */
  asparse_kernel_config chosen, candidates[INFO_CANDIDATES];
  int n_candidates;
  exchange_volume volumes[2 * INFO_MOST_RANKS];
  int n_volumes;
} info_record;

/* Local: to standard output. */
void info_report_print(const info_record *r);
/* Collective; rank 0 writes to r->options->json. */
asparse_status info_report_json(asparse_comm *comm, const info_record *r);

/* B rows every rank together would receive if each received all of B, and a volume as part of it. */
double info_all_gather_rows(const info_record *r, int ranks);
double info_fraction_of_all_gather(const info_record *r, const exchange_volume *v);
/* Megabytes (10^6) of that many B rows. */
double info_megabytes(const info_record *r, double rows);
/* Why the chosen format is recommended: one sentence. */
void info_reason(const info_record *r, char *text, size_t size);

#endif
