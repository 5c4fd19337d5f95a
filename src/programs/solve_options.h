/* Options of asparse_solve and asparse_partition. Local, before MPI. */
#ifndef ASPARSE_SOLVE_OPTIONS_H
#define ASPARSE_SOLVE_OPTIONS_H

#include "asparse.h"
#include "generate/generate.h"

typedef struct solve_options {
  const char *matrix; /* "file.h5", "file.h5::/object", or what --generate says */
  bool generate;      /* A is made in place: */
  asparse_generator generator;
  asparse_read_options read;
  const char *b;      /* NULL: dataset B of the same file, else random */
  const char *output; /* NULL: C is not written */
  const char *json, *csv;
  int64_t cols; /* 0: as B has, or 128 */
  int repeat, warmup, threads;
  double timeout; /* seconds of waiting for other ranks; 0: for ever */
  uint64_t seed;
  bool b_from_root, gather; /* B comes from rank 0; C goes there */
  bool verify, dry_run, quiet;
  asparse_options plan;
  bool help, version;
} solve_options;

/* ERR_USAGE with a message for anything unknown, repeated positions, or out of range. */
asparse_status solve_options_parse(int argc, char **argv, solve_options *options);
void solve_options_help(void);

typedef struct partition_options {
  const char *matrix, *output;
  asparse_read_options read;
  int parts, threads;
  int64_t cols;
  asparse_options plan;
  bool quiet, help, version;
} partition_options;
asparse_status partition_options_parse(int argc, char **argv, partition_options *options);
void partition_options_help(void);

#endif
