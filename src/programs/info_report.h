/* What asparse_info found, as text and as JSON. */
#ifndef ASPARSE_INFO_REPORT_H
#define ASPARSE_INFO_REPORT_H

#include "io/io.h"
#include "kernels/kernels.h"
#include "programs/info_exchange.h"
#include "programs/structure.h"

typedef struct info_record {
  const info_options *options;
  asparse_source source;
  asparse_dtype dtype; /* that advice and volumes are for */
  int64_t n_duplicates, n_inexact;
  structure s;
  int64_t b_rereads;        /* for advice for a GPU, see asparse_profile; all ranks' */
  asparse_host_rates rates; /* rank 0 only, as are the next three */
  asparse_kernel_config chosen, candidates[ASPARSE_DEVICE_CANDIDATES];
  int n_candidates;
  info_exchange exchange;
} info_record;

/* Local: to standard output. */
void info_report_print(const info_record *r);
/* Collective; rank 0 writes to r->options->json. */
asparse_status info_report_json(asparse_comm *comm, const info_record *r);

/* What all ranks of a table receive in one way, as part of what they would if each received all of B. */
double info_fraction_of_all_gather(const info_record *r, const exchange_table *t, const exchange_way *way);
/* Largest / mean entries of a part. */
double info_nnz_imbalance(const asparse_volumes *v);
/* Why the chosen format is recommended: one sentence. */
void info_reason(const info_record *r, char *text, size_t size);

#endif
