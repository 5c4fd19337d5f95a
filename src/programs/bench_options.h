/* The command line of asparse_bench. Local. */
#ifndef ASPARSE_BENCH_OPTIONS_H
#define ASPARSE_BENCH_OPTIONS_H

#include "base/status.h"

enum { BENCH_MOST_COLS = 16, BENCH_MOST_GENERATED = 64 };

typedef struct bench_options {
  char *const *paths; /* [n_paths] files and folders */
  int n_paths;
  const char *generate[BENCH_MOST_GENERATED]; /* [n_generate] descriptions for asparse_generator_parse */
  int n_generate;
  int64_t cols[BENCH_MOST_COLS]; /* [n_cols] dense columns, descending: operands shrink in place */
  int n_cols;
  asparse_backend_kind backend;
  asparse_dtype precision;
  bool own_precision;  /* none was asked for: bf16 on a GPU, the file's own on the host */
  bool bf16_result;    /* C in bf16 instead of the precision's own result type */
  const char *kernels; /* comma-separated names, NULL: those the cost model may pick, and the peers */
  bool all, no_peers;
  bool flush_l2, no_graph;
  int64_t repeat;
  double case_seconds; /* of timing for one matrix and number of columns */
  int64_t min_nnz, max_bytes, seed;
  int threads; /* 0: all cores */
  const char *csv, *json, *plot;
  bool help, version;
} bench_options;

asparse_status bench_options_parse(int argc, char **argv, bench_options *options);
void bench_options_help(void);

#endif
