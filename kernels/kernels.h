/* Kernels: C = A·B on one rank. No MPI here.
 *
 * A backend is a small table of functions; the plan knows no other way to compute. An engine is a backend at work: the
 * host's threads, or one GPU with a stream in which everything below is enqueued in order, and a second one beside it
 * for exchanges. */
#ifndef ASPARSE_KERNELS_H
#define ASPARSE_KERNELS_H

#include "base/shard.h"

typedef struct asparse_backend asparse_backend;
typedef struct asparse_device asparse_device;             /* see kernels/device.h */
typedef struct asparse_device_shard asparse_device_shard; /* see kernels/device_shard.h */

typedef struct asparse_event asparse_event; /* a moment in a queue's work */

enum { ASPARSE_MARKS = 12 };

/* A GPU works off two queues at once: one multiplies, the other packs and copies what is exchanged. */
typedef enum asparse_queue { ASPARSE_QUEUE_COMPUTE = 0, ASPARSE_QUEUE_EXCHANGE, ASPARSE_QUEUES } asparse_queue;

typedef struct asparse_engine {
  const asparse_backend *backend;
  asparse_device *device;      /* NULL on the host */
  double marks[ASPARSE_MARKS]; /* seconds; the host's marks */
} asparse_engine;

/* A shard ready to multiply n columns. */
typedef struct asparse_operator {
  const asparse_shard *shard;      /* borrowed; the host multiplies it as it is */
  asparse_device_shard *on_device; /* a GPU's copy: the host shard is needed no longer */
  asparse_dtype c_dtype;
} asparse_operator;

struct asparse_backend {
  const char *name;
  asparse_space space; /* of B, C and packed rows */

  /* The engine's own part of open and close; the host has none. */
  asparse_status (*open)(asparse_engine *engine, int ordinal);
  void (*close)(asparse_engine *engine);
  const char *(*device_name)(const asparse_engine *engine); /* NULL on the host */
  const char *(*device_id)(const asparse_engine *engine);   /* tells it from others of this machine; NULL on the host */
  void *(*stream)(const asparse_engine *engine, asparse_queue queue); /* cudaStream_t; NULL on the host */

  /* count · size bytes in space. */
  asparse_status (*allocate)(asparse_engine *engine, int64_t count, size_t size, const char *what, void **pointer);
  void (*release)(void *pointer); /* NULL is fine */

  /* rows rows of width bytes between host and space, to_pitch and from_pitch bytes apart; done when they return. A
   * GPU's go through pinned memory. */
  asparse_status (*copy_in)(asparse_engine *engine, void *to, size_t to_pitch, const void *from_host, size_t from_pitch,
                            size_t width, size_t rows);
  asparse_status (*copy_out)(asparse_engine *engine, void *to_host, size_t to_pitch, const void *from,
                             size_t from_pitch, size_t width, size_t rows);

  /* The shard a made ready for n columns and C in c_dtype; kernel: a name of the backend's table, NULL where it has but
   * one. discard takes a zeroed operator. */
  asparse_status (*prepare)(asparse_engine *engine, const asparse_shard *a, const char *kernel, int64_t n,
                            asparse_dtype c_dtype, asparse_operator *out);
  void (*discard)(asparse_operator *a);
  int64_t (*operator_bytes)(const asparse_operator *a); /* in space, beside the host shard */

  /* C(rows, :) = A(rows, :)·B, or C += A·B when accumulate; overwrites whatever C held otherwise (beta = 0, also over
   * NaN). Rows are those of units [unit_begin, unit_end): a unit is a row of CSR, a window of WCSR, a block row of
   * BCSR; asparse_shard_units(a) of them. A GPU takes all units at once. b: [k × n], ldb ≥ n, of the shard's dtype;  c:
   * [m × n], ldc ≥ n, of c_dtype. What it computes equals CSR arithmetic: padding never turns Inf or NaN of B into NaN
   * of C. Bitwise the same whenever it is repeated; on the host, whatever the threads and units. */
  asparse_status (*multiply)(asparse_engine *engine, const asparse_operator *a, int64_t unit_begin, int64_t unit_end,
                             int64_t n, const void *b, int64_t ldb, void *c, int64_t ldc, bool accumulate);

  /* packed(i, :) = b(rows[i], :), packed [n_rows × n] with ld n; rows NULL: rows 0 … n_rows-1. All in space. */
  asparse_status (*pack)(asparse_engine *engine, asparse_queue queue, asparse_dtype dtype, int64_t n_rows,
                         const int32_t *rows, int64_t n, const void *b, int64_t ldb, void *packed);

  /* Exchanges beside the computation. On the host whatever was asked for is done when the call returns. */

  /* Host memory that copy reads and writes at full speed, count · size bytes. */
  asparse_status (*pin)(asparse_engine *engine, int64_t count, size_t size, const char *what, void **pointer);
  void (*unpin)(void *pointer); /* NULL is fine */
  /* Enqueues a copy between pinned memory and space, either way. */
  asparse_status (*copy)(asparse_engine *engine, asparse_queue queue, void *to, const void *from, size_t bytes);
  asparse_status (*event_create)(asparse_engine *engine, asparse_event **event);
  void (*event_destroy)(asparse_event *event); /* NULL is fine */
  /* The event is reached when the queue has done what was enqueued so far; one never recorded counts as reached. */
  asparse_status (*record)(asparse_engine *engine, asparse_queue queue, asparse_event *event);
  /* What is enqueued from now on waits for the event as it was recorded last. */
  asparse_status (*after)(asparse_engine *engine, asparse_queue queue, asparse_event *event);
  asparse_status (*reached)(asparse_engine *engine, asparse_event *event, bool *reached); /* does not wait */
  /* Seconds between two recorded events; waits for them. */
  asparse_status (*elapsed)(asparse_engine *engine, asparse_event *from, asparse_event *to, double *seconds);

  /* Time: mark i is reached when the work before it is done; seconds between two marks, which waits for them. wait
   * returns when everything is done, with the error of whatever failed. */
  asparse_status (*mark)(asparse_engine *engine, int i);
  asparse_status (*between)(asparse_engine *engine, int i, int j, double *seconds);
  asparse_status (*wait)(asparse_engine *engine);
};

/* Local. The engine of that kind, or ERR_DEVICE with a message that says what is missing (this build has no CUDA; no
 * GPU is visible; it is not of the architecture the kernels are compiled for). AUTO takes a GPU that can be used, else
 * the host. ordinal: which of the visible GPUs, counted round. */
asparse_status asparse_engine_open(asparse_backend_kind kind, int ordinal, asparse_engine **engine);
void asparse_engine_close(asparse_engine **engine);

/* Units of a shard: rows (CSR), windows (WCSR), block rows (BCSR). */
int64_t asparse_shard_units(const asparse_shard *a);

/* Name of the instruction set the host kernels run with: "avx512", "avx2", "baseline". */
const char *asparse_host_isa(void);

/* ---- choice ------------------------------------------------------------------------------- */

/* What the cost model knows of a rank-local matrix, counted from the matrix. */
typedef struct asparse_profile {
  int64_t m, k, n;
  int64_t nnz;
  asparse_dtype dtype, c_dtype;       /* of A and B, of C */
  asparse_window_counts windows[4];   /* heights 8, 16, 32, 64 */
  asparse_window_counts clustered[4]; /* the same of rows brought together */
  bool has_clustered;                 /* that was tried */
  int64_t blocks[3];                  /* non-empty blocks, sizes 16, 32, 64 */
  int64_t longest_row;                /* most entries of a row */
  int64_t used_rows;                  /* rows with entries */
  int64_t b_rereads;                  /* rows of B that leave a GPU's cache and are read again, entries in order */
  bool accumulate;                    /* C += A·B: rows, windows and block rows without entries are left alone */
} asparse_profile;

typedef struct asparse_kernel_config {
  asparse_format format; /* never AUTO */
  int32_t unit;          /* window height or block size; 1 for CSR */
  double predicted_seconds;
  const char *kernel;   /* on a GPU: its name in the table of device kernels; NULL on the host */
  bool clustered;       /* the kernel wants rows brought together */
  double least_seconds; /* on a GPU: what no kernel can beat; 0 on the host */
} asparse_kernel_config;

/* Rates of one rank of this machine: one thread's, measured once per process in its own processor
 * time (so that a busy machine does not distort them), times the threads of the rank. */
typedef struct asparse_host_rates {
  int threads;
  double bytes_per_second;    /* streaming */
  double flops_per_second[3]; /* by dtype: CSR with B rows in the first-level cache, multiply-add = 2 */
} asparse_host_rates;

enum { ASPARSE_RATE_COLUMNS = 64 }; /* columns of B that flops_per_second was measured with */

/* Pure: the cheapest of CSR, WCSR × heights, BCSR × sizes by predicted time, or the cheapest of the
 * wanted format (AUTO = any) with the wanted unit (0 = any). All candidates' predictions go to
 * candidates[*n_candidates] when given (room for 8). */
asparse_kernel_config asparse_choose(const asparse_profile *profile, const asparse_host_rates *rates,
                                     asparse_format wanted, int32_t wanted_unit, asparse_kernel_config *candidates,
                                     int *n_candidates);

/* Whether a GPU kernel of that name wants rows brought together. Pure. */
bool asparse_device_kernel_clusters(const char *kernel);

/* The same for a GPU (see choose_device.c), with the wanted kernel by name (NULL = any). Room for
 * ASPARSE_DEVICE_CANDIDATES; predicted_seconds is infinite when nothing wanted fits. */
enum { ASPARSE_DEVICE_CANDIDATES = 16 };
asparse_kernel_config asparse_choose_device(const asparse_profile *profile, asparse_format wanted, int32_t wanted_unit,
                                            const char *wanted_kernel, asparse_kernel_config *candidates,
                                            int *n_candidates);

/* Pure. Rows of B, of the columns that kernels take together, that the second-level cache of a GPU keeps. */
int64_t asparse_device_cached_rows(int64_t n, asparse_dtype dtype);

/* Pure. The least time of a multiplication on a GPU: the largest of gathered bytes of B (at the window height that
 * needs least, rows in the order given) at the rate of its second-level cache, A and B read once and C written at the
 * rate of its memory, the tensor cores' work, and a launch. A kernel that brings rows together or keeps B in shared
 * memory can be below it. */
double asparse_device_least_seconds(const asparse_profile *profile);

/* Measures on the first call (some 10 ms); ERR_MEMORY when the small test problem cannot be allocated. */
asparse_status asparse_host_rates_get(asparse_host_rates *rates);

/* ---- reference ---------------------------------------------------------------------------- */

/* The oracle: C = A·B by a plain triple loop in fp64, c [m × n] with ld n, whatever the dtypes. */
asparse_status asparse_reference_multiply(const asparse_local_csr *a, const asparse_dense *b, double *c);

#endif
