/* The command line of asparse_info. Local. */
#ifndef ASPARSE_INFO_OPTIONS_H
#define ASPARSE_INFO_OPTIONS_H

#include "base/status.h"

enum { INFO_MOST_RANKS = 32 };

typedef struct info_options {
  const char *matrix;
  int64_t cols; /* N: dense columns */
  asparse_dtype precision;
  bool own_precision; /* the matrix's own */
  int ranks[INFO_MOST_RANKS], n_ranks;
  bool metis;  /* METIS beside contiguous */
  int threads; /* 0: a fair share of the cores */
  const char *json, *spy;
  bool help, version;
} info_options;

asparse_status info_options_parse(int argc, char **argv, info_options *options);
void info_options_help(void);

#endif
