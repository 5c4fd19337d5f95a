/* asparse: C = A·B, sparse A, dense B, on any number of MPI ranks.
 *
 *   MPI_Init(&argc, &argv);
 *   asparse_comm *comm = NULL;
 *   asparse_csr *slab = NULL;
 *   asparse_matrix *a = NULL;
 *   asparse_plan *plan = NULL;
 *   asparse_dense *b = NULL, *c = NULL;
 *   asparse_options options = asparse_options_default();
 *   asparse_status s = asparse_comm_create(&comm, MPI_COMM_WORLD);
 *   if (!s) s = asparse_csr_read(comm, "matrix.h5", &slab, NULL);
 *   if (!s) s = asparse_matrix_create(comm, &slab, &options, 128, &a);
 *   if (!s) s = asparse_plan_create(a, &options, 128, &plan);
 *   if (!s) s = asparse_plan_operands(plan, &b, &c);
 *   if (!s) asparse_plan_fill_random(plan, b, 42);
 *   if (!s) s = asparse_plan_execute(plan, b, c);
 *   if (s) fprintf(stderr, "%s\n", asparse_error_message());
 *   asparse_dense_destroy(&b), asparse_dense_destroy(&c);
 *   asparse_plan_destroy(&plan), asparse_matrix_destroy(&a);
 *   asparse_csr_destroy(&slab), asparse_comm_destroy(&comm);
 *   MPI_Finalize();
 *
 * Collective functions are called by every rank of the communicator and return the same status on all of
 * them (but see asparse_comm_abort); after a failure asparse_error_message() says what happened, on which
 * rank, and what to do. Destroy functions accept NULL and set the pointer to NULL. Functions are not
 * reentrant across threads.
 */
#ifndef ASPARSE_H
#define ASPARSE_H

#include <mpi.h>

#include "asparse_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct asparse_comm asparse_comm;     /* ranks that work together */
typedef struct asparse_matrix asparse_matrix; /* A, distributed by rows */
typedef struct asparse_plan asparse_plan;     /* everything prepared to multiply A by n columns */

typedef struct asparse_options {
  asparse_partition_method partition;
  asparse_format format;
  int32_t unit; /* window height (8, 16, 32, 64) or block size (16, 32, 64); 0: chosen */
  asparse_exchange_mode exchange;
  /* A grid of ranks: rank i·grid_columns + j has row part i of A and block j of the columns of B and C, and ranks with
   * the same block exchange rows of it as exchange says (grid: rows). Both 0: P × 1, or what exchange needs. */
  int32_t grid_rows, grid_columns;
  /* Chunks of columns, 1 to 4, in which rows of B travel, so that the first are multiplied while the rest travel; fewer
   * where they would have less than 8 columns, 1 with cover and reproducible. 0: as the planner of exchange auto
   * predicts, else 1. */
  int32_t chunks;
  asparse_placement operands;
  asparse_backend_kind backend;
  asparse_comm_kind comm; /* what rows of B travel by between GPUs */
  asparse_dtype precision;
  bool own_precision; /* true: precision is the matrix's own type, the field above is ignored */
  bool bf16_result;   /* C in bf16 instead of fp32, where A and B are bf16; on a GPU only */
  bool keep_order;    /* GPU: do not bring like rows together, which costs planning time and saves gathered columns */
  const char *kernel; /* GPU: a kernel by name (see asparse_bench --list); NULL: chosen */
  /* The same C bit for bit for any number of ranks and any grid: rows are summed in the order of columns, in CSR on the
   * host, after all rows of B have come. Not with cover, METIS, another format or a GPU. */
  bool reproducible;
  bool keep_csr; /* keep A beside its shards, as asparse_verify needs it */
} asparse_options;

/* contiguous, auto, auto, auto, the matrix's own precision, keep_csr. */
ASPARSE_API asparse_options asparse_options_default(void);

/* Seconds of the slowest phase parts on this rank, and what was moved. */
typedef struct asparse_stats {
  double build_seconds;               /* plan: choosing and building shards, exchange lists */
  double total_seconds;               /* last execute: whole */
  double pack_seconds;                /* last execute: packing B rows and, for MPI from a GPU, copying them out */
  double communication_seconds;       /* last execute: from the start of packing until all rows had arrived */
  double diag_seconds;                /* last execute: own columns, while the halo travels */
  double exposed_seconds;             /* last execute: waiting for the halo after the local part */
  double offd_seconds;                /* last execute: halo columns */
  double layout_seconds;              /* last execute: B to blocks of columns and C back, where operands are rows */
  int64_t bytes_sent, bytes_received; /* per execute: rows of B, and partial rows of C with cover */
  int64_t layout_bytes_sent, layout_bytes_received; /* per execute: for the change of layout */
  int64_t halo_rows;                                /* rows of B received */
  int64_t partial_rows;                             /* partial rows of C received, with cover */
  int64_t shard_bytes, csr_bytes, halo_bytes;
  int64_t device_bytes;           /* shards and workspace on the GPU */
  asparse_exchange_mode exchange; /* among ranks with the same block of columns: rows, replicate, cover */
  int32_t grid_rows, grid_columns;
  int32_t chunks;        /* of columns that rows of B came in */
  const char *transport; /* what rows of B travel by: "mpi", "nccl" */
  asparse_format format, offd_format;
  int32_t unit, offd_unit;
  int64_t nnz, stored;                                         /* this rank's entries, without and with padding */
  double predicted_seconds;                                    /* of the local work, by the cost model */
  double predicted_exchange_seconds, predicted_layout_seconds; /* of what is moved, by links measured or usual */
  /* Of this rank's part of an execute: layout + max(own columns, exchange) + halo columns. */
  double predicted_execute_seconds;
  double least_seconds;             /* of the local work on a GPU, whatever the kernel; 0 on the host */
  bool ready_shards;                /* loaded, not built */
  const char *backend;              /* "host", "cuda" */
  const char *device;               /* the GPU's name; NULL on the host */
  const char *kernel, *offd_kernel; /* names in the benchmark's rows */
} asparse_stats;

typedef struct asparse_verification {
  bool passed;
  int64_t rows_checked;      /* by Freivalds, all ranks */
  int64_t elements_checked;  /* one by one, all ranks */
  int64_t rows_unchecked;    /* rows with Inf or NaN beyond the number checked one by one */
  double worst_bound_ratio;  /* largest |error| / rigorous bound; ≤ 1 */
  double worst_detect_ratio; /* largest |error| / probabilistic threshold; ≤ 1 unless excused */
  double max_relative_error; /* largest |error| / (|A||B|) over elements checked */
  int64_t failed_row;        /* original number of a failing row, -1 if none */
} asparse_verification;

/* Collective. Duplicates the MPI communicator. */
ASPARSE_API asparse_status asparse_comm_create(asparse_comm **comm, MPI_Comm mpi);
ASPARSE_API void asparse_comm_destroy(asparse_comm **comm);
/* Local, the same on every rank. Waits for other ranks last at most so long, then the job ends with a message that
 * names who waited for whom; 0: for ever, as after create. */
ASPARSE_API void asparse_comm_timeout(asparse_comm *comm, double seconds);
/* Local. Ends the whole job with the exit code of status, after one line on standard error. The library does so only
 * for what happens within an exchange, where peers wait and nothing can be agreed on. */
ASPARSE_API void asparse_comm_abort(asparse_comm *comm, asparse_status status);

/* Collective. Each rank reads a slab of rows of the matrix at "file.h5" or "file.h5::/group"; see io/io.h. */
ASPARSE_API asparse_status asparse_csr_read(asparse_comm *comm, const char *path, asparse_csr **a,
                                            asparse_source *source);
/* The same with what the user says of the file; options may be NULL. */
ASPARSE_API asparse_status asparse_csr_read_with(asparse_comm *comm, const char *path,
                                                 const asparse_read_options *options, asparse_csr **a,
                                                 asparse_source *source);
ASPARSE_API void asparse_csr_destroy(asparse_csr **a);

/* Collective. Partitions, moves rows to their ranks (to each of the ranks that share a part on a grid, once), and
 * splits them into own and halo columns. Takes *slab (freed, set to NULL). n: dense columns that the cost of a row is
 * predicted for. With exchange auto, contiguous parts and no grid it chooses exchange and grid by predicted time, from
 * rates of links and cores that the first run on a host measures and remembers in a file (ASPARSE_CACHE, else
 * ~/.cache/asparse). ERR_USAGE where the grid of the options does not fit the ranks. */
ASPARSE_API asparse_status asparse_matrix_create(asparse_comm *comm, asparse_csr **slab, const asparse_options *options,
                                                 int64_t n, asparse_matrix **a);
ASPARSE_API void asparse_matrix_destroy(asparse_matrix **a);

/* Collective. Builds shards and exchange lists for B with n columns. The plan borrows a. ERR_USAGE where the options
 * ask for another grid than a lies on, or n is less than its columns of ranks. */
ASPARSE_API asparse_status asparse_plan_create(asparse_matrix *a, const asparse_options *options, int64_t n,
                                               asparse_plan **plan);
ASPARSE_API void asparse_plan_destroy(asparse_plan **plan);

/* Local. Allocates this rank's B and C in the plan's types, on the host; the caller destroys them. Their rows are
 * consecutive from rank to rank unless the partition permutes rows, their columns one range. */
ASPARSE_API asparse_status asparse_plan_operands(const asparse_plan *plan, asparse_dense **b, asparse_dense **c);
/* Local. Original numbers of row i of this rank's B and C, and of column j of both. */
ASPARSE_API int64_t asparse_plan_b_row(const asparse_plan *plan, int64_t i);
ASPARSE_API int64_t asparse_plan_c_row(const asparse_plan *plan, int64_t i);
ASPARSE_API int64_t asparse_plan_column(const asparse_plan *plan, int64_t j);
/* Local. Fills this rank's B with numbers in [-1, 1) that depend on seed and original position alone. */
ASPARSE_API void asparse_plan_fill_random(const asparse_plan *plan, asparse_dense *b, uint64_t seed);

/* Local. The same in the memory the plan computes in: a GPU's, or the host's. Destroy them before the plan. ERR_USAGE
 * for rows that would have to change their layout on a GPU. */
ASPARSE_API asparse_status asparse_plan_engine_operands(const asparse_plan *plan, asparse_dense **b, asparse_dense **c);
/* Local. Copies from the host to there or back; both of one shape and type; done when it returns. */
ASPARSE_API asparse_status asparse_plan_copy(const asparse_plan *plan, const asparse_dense *from, asparse_dense *to);
ASPARSE_API void asparse_dense_destroy(asparse_dense **a);

/* Collective. C = A·B. b and c are as asparse_plan_operands makes them, with any ld; overwrites C whatever it held.
 * Operands on the host are ready when it returns; where the plan computes on a GPU they are copied there and back,
 * through memory allocated the first time. With operands on the GPU nothing is allocated, and the work is only enqueued
 * on the plan's stream (by MPI between GPUs it is after their messages have come); with one rank that stream may be
 * under capture into a CUDA graph. */
ASPARSE_API asparse_status asparse_plan_execute(asparse_plan *plan, const asparse_dense *b, asparse_dense *c);
/* Local. Waits for what execute enqueued, and takes its times for asparse_plan_stats. */
ASPARSE_API asparse_status asparse_plan_wait(asparse_plan *plan);
/* Local. The cudaStream_t of the plan; NULL on the host. */
ASPARSE_API void *asparse_plan_stream(const asparse_plan *plan);
ASPARSE_API void asparse_plan_stats(const asparse_plan *plan, asparse_stats *stats);

/* Collective. B or C whole on rank 0, rows in their original order, beside every rank's share without gaps between
 * rows. whole: [k × columns] on rank 0, of b's type; ignored elsewhere. *whole: [m × columns] on rank 0, for the caller
 * to destroy; NULL elsewhere. Rank 0 needs room for it and for one share more. */
ASPARSE_API asparse_status asparse_plan_scatter_b(const asparse_plan *plan, const asparse_dense *whole,
                                                  asparse_dense *b);
ASPARSE_API asparse_status asparse_plan_gather_c(const asparse_plan *plan, const asparse_dense *c,
                                                 asparse_dense **whole);

/* Collective, after execute with the same b and c. Checks C against A and B in fp64: A(Bx) = Cx for a
 * random ±1 vector x over all rows (Freivalds 1977), and a sample of rows element by element.
 * ERR_VERIFY when C is wrong; *verification is filled in either case, the same on every rank. */
ASPARSE_API asparse_status asparse_verify(asparse_plan *plan, const asparse_dense *b, const asparse_dense *c,
                                          uint64_t seed, asparse_verification *verification);

ASPARSE_API const char *asparse_version(void); /* "0.1.0" */
ASPARSE_API const char *asparse_error_message(void);
ASPARSE_API const char *asparse_status_name(asparse_status status);
ASPARSE_API int asparse_exit_code(asparse_status status);

#ifdef __cplusplus
}
#endif
#endif
