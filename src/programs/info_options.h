/* The command line of asparse_info. Local. */
#ifndef ASPARSE_INFO_OPTIONS_H
#define ASPARSE_INFO_OPTIONS_H

#include "generate/generate.h"
#include "plan/mode_choice.h"

enum { INFO_MOST_RANKS = 32, INFO_MOST_PARTS = 1 << 16 }; /* numbers of --ranks; the largest of them */

typedef struct info_options {
  const char *matrix; /* a file, or what --generate says */
  bool generate;      /* it is made in place: */
  asparse_generator generator;
  int64_t seed;
  asparse_read_options read;
  int64_t cols; /* N: dense columns */
  asparse_dtype precision;
  bool own_precision; /* the matrix's own */
  int ranks[INFO_MOST_RANKS], n_ranks;
  bool metis;                 /* METIS beside contiguous */
  bool device;                /* times of H200 GPUs instead of this host */
  asparse_link link, network; /* within a node and beyond; bytes_per_second 0: by default */
  int node_ranks;             /* of a node; 0: by default */
  bool row_operands;          /* the caller's B and C are row slices, whatever the exchange */
  int threads;                /* 0: a fair share of the cores */
  const char *json, *spy;
  bool help, version;
} info_options;

asparse_status info_options_parse(int argc, char **argv, info_options *options);
void info_options_help(void);

#endif
