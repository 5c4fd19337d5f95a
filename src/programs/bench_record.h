/* What a run of asparse_bench found: filled along the way, written as text, CSV, JSON and a plot. */
#ifndef ASPARSE_BENCH_RECORD_H
#define ASPARSE_BENCH_RECORD_H

#include "kernels/kernels.h"
#include "programs/bench_options.h"

/* One kernel at one window height or block size, ours or a library's. */
typedef struct bench_kernel {
  const char *name;      /* "wcsr-gather", "cusparse-csr-1" */
  asparse_format format; /* of the host shard it is made from */
  int32_t unit;          /* window height or block size; 1 for CSR */
  bool automatic;        /* the cost model may pick it */
  bool clustered;        /* of rows brought together */
  bool bf16_only;        /* left out for A of another type */
  bool peer, cusparse;   /* a library's; cuSPARSE's */
  const void *row;       /* of the engine's own table */
} bench_kernel;

typedef enum bench_outcome {
  BENCH_TIMED = 0,
  BENCH_UNSUPPORTED, /* the kernel or library does not take such a product */
  BENCH_TOO_LARGE,   /* A does not fit in this layout */
  BENCH_WRONG,       /* beyond the error bound: not timed */
} bench_outcome;

/* One kernel on one matrix and number of columns. */
typedef struct bench_row {
  const bench_kernel *kernel;
  bench_outcome outcome;
  char note[160];          /* why it was not timed */
  bool chosen;             /* by the cost model */
  double seconds, p5, p95; /* median and spread of one multiplication */
  int samples, launches;   /* samples taken, multiplications in each */
  double predicted;        /* by the cost model, NAN when it does not know the kernel */
  double plan_seconds;     /* building A from CSR and bringing it to where it is multiplied */
  double preprocess_seconds;
  double max_error; /* largest error of an element over its bound */
} bench_row;

/* One matrix and number of columns. */
typedef struct bench_case {
  char *matrix;            /* name; owned */
  asparse_profile profile; /* with n */
  asparse_dtype c_dtype;
  const char *method; /* of timing */
  double least_seconds;
  bench_row *rows; /* [n_rows]; owned */
  int n_rows;
  int chosen, best, csr;               /* rows, -1: none timed; best and csr of our own kernels */
  int best_cusparse, best_ell, cublas; /* the same of peers */
} bench_case;

typedef struct bench_failure {
  char *path, *message; /* owned */
  asparse_status status;
} bench_failure;

typedef struct bench_record {
  const bench_options *options;
  const char *command, *backend, *device, *libraries; /* borrowed */
  int threads;
  int n_matrices, n_skipped;  /* timed; below --min-nnz */
  bool interrupted;           /* SIGUSR1 came before the last matrix */
  int n_wrong, n_wrong_peers; /* rows beyond the bound, of our kernels and of libraries */
  bench_case *cases;          /* [n_cases] */
  int n_cases;
  bench_failure *failures; /* [n_failures] */
  int n_failures;
} bench_record;

/* Finds the rows a case refers to. */
void bench_case_finish(bench_case *c);
void bench_record_free(bench_record *record);

static inline const bench_row *bench_row_at(const bench_case *c, int row) { return row < 0 ? NULL : &c->rows[row]; }
double bench_density(const bench_case *c); /* nnz / (m·k) */
double bench_tflops(const bench_case *c, double seconds);

/* What speed-ups are over: the best cuSPARSE row, without peers our own CSR row, else NULL. */
const bench_row *bench_baseline(const bench_case *c);

#endif
