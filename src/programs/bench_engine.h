/* Where kernels are timed: the host or a GPU, behind one table of functions. Local.
 *
 * open → for each matrix: load → for each n, descending: prepare each kernel → operands → ready, check, arm, sample →
 * release; → unload → close. A kernel that cannot take a matrix or product answers ERR_USAGE, one that does not fit
 * ERR_MEMORY; any other failure ends the run. */
#ifndef ASPARSE_BENCH_ENGINE_H
#define ASPARSE_BENCH_ENGINE_H

#include "programs/bench_record.h"

enum { BENCH_MOST_KERNELS = 96 };

typedef struct bench_prediction {
  double least_seconds;
  asparse_kernel_config chosen; /* predicted_seconds infinite: none */
  asparse_kernel_config candidates[ASPARSE_DEVICE_CANDIDATES];
  int n_candidates;
} bench_prediction;

typedef struct bench_engine bench_engine;

typedef struct bench_engine_functions {
  void (*close)(bench_engine *engine);
  asparse_status (*predict)(bench_engine *engine, const asparse_profile *profile, bench_prediction *prediction);

  /* Borrows a until unload; operands of up to n columns. */
  asparse_status (*load)(bench_engine *engine, const asparse_local_csr *a, int64_t n);
  void (*unload)(bench_engine *engine);

  /* A as the kernel wants it for n columns, from a host shard of its format and unit that lives until release. */
  asparse_status (*prepare)(bench_engine *engine, const bench_kernel *kernel, const asparse_shard *a, int64_t n,
                            void **prepared);
  void (*release)(bench_engine *engine, void *prepared);

  /* B and the fp64 reference for n columns. */
  asparse_status (*operands)(bench_engine *engine, int64_t n);
  /* Steps a kernel does once for a product; seconds they took. */
  asparse_status (*ready)(bench_engine *engine, void *prepared, double *seconds);
  /* One product over a poisoned C; its largest error over the bound, every element. */
  asparse_status (*check)(bench_engine *engine, void *prepared, double *max_error);
  /* Makes all of prepared[count] ready to be sampled in one and the same way, launches[i] products a sample, and names
   * that way. */
  asparse_status (*arm)(bench_engine *engine, void *const *prepared, const int *launches, int count,
                        const char **method);
  /* Seconds of one of `launches` products in a row. */
  asparse_status (*sample)(bench_engine *engine, void *prepared, int launches, double *seconds);
} bench_engine_functions;

struct bench_engine {
  const bench_engine_functions *functions;
  const char *backend; /* "host", "cuda" */
  char device[256];    /* processor or GPU, in words */
  char libraries[256]; /* versions of what the peers come from */
  bench_kernel kernels[BENCH_MOST_KERNELS];
  int n_kernels;
  asparse_dtype precision; /* when none was asked for; */
  bool own_precision;      /* true: the file's own */
};

asparse_status bench_host_open(const bench_options *options, bench_engine **engine);

/* ERR_DEVICE when this build or machine has no GPU. */
asparse_status bench_cuda_open(const bench_options *options, bench_engine **engine);

/* The engine of the backend asked for. */
asparse_status bench_engine_open(const bench_options *options, bench_engine **engine);
void bench_engine_close(bench_engine **engine);

#endif
