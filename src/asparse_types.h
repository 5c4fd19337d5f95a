/* asparse: enums and containers shared by the whole library. Plain C, no MPI, no CUDA.
 *
 * C = A·B with A sparse (m × k), B dense (k × n, row-major), C dense (m × n, row-major).
 * Global indices are int64_t, rank-local ones int32_t; every conversion is checked.
 */
#ifndef ASPARSE_TYPES_H
#define ASPARSE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ASPARSE_API __attribute__((visibility("default")))
#else
#define ASPARSE_API
#endif

/* Ordered by severity: when ranks disagree, the largest wins (see asparse_comm_agree). */
typedef enum asparse_status {
  ASPARSE_OK = 0,
  ASPARSE_INTERRUPTED,  /* ended early on SIGUSR1; the steps done are whole exit code 85 */
  ASPARSE_ERR_VERIFY,   /* the result failed verification                    exit code 3 */
  ASPARSE_ERR_USAGE,    /* an option or argument cannot be used              exit code 2 */
  ASPARSE_ERR_NO_INPUT, /* an input file does not exist or cannot be opened  exit code 66 */
  ASPARSE_ERR_DATA,     /* an input file is damaged or not what it claims    exit code 65 */
  ASPARSE_ERR_MEMORY,   /* an allocation failed                              exit code 1 */
  ASPARSE_ERR_IO,       /* writing or reading failed (disk full, permission) exit code 1 */
  ASPARSE_ERR_MPI,      /* an MPI call failed                                exit code 1 */
  ASPARSE_ERR_DEVICE,   /* a device is missing or a device call failed       exit code 1 */
  ASPARSE_ERR_RUNTIME   /* anything else                                     exit code 1 */
} asparse_status;

/* Element types of values and dense matrices. Accumulation: fp64 in fp64, fp32 and bf16 in fp32. */
typedef enum asparse_dtype { ASPARSE_FP64 = 0, ASPARSE_FP32, ASPARSE_BF16 } asparse_dtype;

typedef enum asparse_format {
  ASPARSE_FORMAT_AUTO = 0, /* chosen by the cost model */
  ASPARSE_FORMAT_CSR,
  ASPARSE_FORMAT_WCSR, /* windows of rows sharing a column list; window_height 8, 16, 32 or 64 */
  ASPARSE_FORMAT_BCSR  /* dense square blocks; block_size 16, 32 or 64 */
} asparse_format;

/* Where an array lives. */
typedef enum asparse_space { ASPARSE_SPACE_HOST = 0, ASPARSE_SPACE_DEVICE } asparse_space;

typedef enum asparse_backend_kind {
  ASPARSE_BACKEND_AUTO = 0,
  ASPARSE_BACKEND_HOST,
  ASPARSE_BACKEND_CUDA
} asparse_backend_kind;

typedef enum asparse_partition_method {
  ASPARSE_PARTITION_CONTIGUOUS = 0, /* contiguous rows, largest predicted cost minimised exactly */
  ASPARSE_PARTITION_METIS           /* METIS k-way, communication volume minimised; square A only */
} asparse_partition_method;

typedef enum asparse_exchange_mode {
  ASPARSE_EXCHANGE_AUTO = 0,
  ASPARSE_EXCHANGE_REPLICATE, /* every rank receives all of B */
  ASPARSE_EXCHANGE_ROWS,      /* every rank receives the B rows its columns use */
  ASPARSE_EXCHANGE_COVER,     /* rows of B or partial rows of C, whichever are less, by minimum vertex covers */
  ASPARSE_EXCHANGE_COLUMNS,   /* every rank has all of A and a block of the columns of B and C: a grid of 1 × P */
  ASPARSE_EXCHANGE_GRID       /* both: parts of A on the rows of a grid of ranks, blocks of columns on its columns */
} asparse_exchange_mode;

/* What the rows of B travel by between ranks. */
typedef enum asparse_comm_kind {
  ASPARSE_COMM_AUTO = 0, /* NCCL where every rank has a GPU of its own, else MPI */
  ASPARSE_COMM_NCCL,
  ASPARSE_COMM_MPI /* from GPUs through pinned memory of the host */
} asparse_comm_kind;

/* How B and C lie on a grid of ranks with more than one column. */
typedef enum asparse_placement {
  ASPARSE_PLACEMENT_ROWS = 0, /* rows of all columns; every execute moves B to its blocks and C back */
  ASPARSE_PLACEMENT_PLANNER   /* as they are multiplied: all rows of the rank's part, columns of its block */
} asparse_placement;

/* A slab of consecutive rows of a global sparse matrix, columns sorted and unique in each row. */
typedef struct asparse_csr {
  int64_t m, k;      /* global rows and columns */
  int64_t nnz;       /* global stored entries */
  int64_t row_begin; /* first global row of the slab */
  int64_t n_rows;    /* rows of the slab */
  asparse_dtype dtype;
  int64_t *row_ptr;     /* [n_rows + 1], row_ptr[0] = 0 */
  int64_t *col_idx;     /* [row_ptr[n_rows]], global columns, 0 … k-1 */
  void *values;         /* [row_ptr[n_rows]] of dtype */
  int64_t n_duplicates; /* entries of the file that were summed into another (own rows) */
  int64_t n_inexact;    /* integer values that fp64 cannot hold exactly (own rows) */
} asparse_csr;

/* A rank-local sparse matrix with int32 columns. */
typedef struct asparse_local_csr {
  int32_t m, k; /* rows and columns */
  asparse_dtype dtype;
  int64_t *row_ptr; /* [m + 1], row_ptr[0] = 0 */
  int32_t *col_idx; /* [row_ptr[m]], sorted and unique in each row */
  void *values;     /* [row_ptr[m]] of dtype */
} asparse_local_csr;

/* Windowed CSR: rows in windows of height h; each window lists the sorted union of its columns.
 * Compressed column c of a window (c counted from window_row_ptr[w]) stands in tile c / 16 at
 * tile column c % 16; a tile is h × 16, row-major. Every window starts on a whole tile. */
typedef struct asparse_wcsr {
  int32_t m, k;
  int32_t window_height; /* h: 8, 16, 32 or 64 */
  int32_t n_windows;     /* ⌈m / h⌉ */
  int64_t nnz;           /* entries stored in A, without padding */
  asparse_dtype dtype;
  int64_t *window_row_ptr; /* [n_windows + 1], in compressed columns, multiples of 16 */
  int32_t *window_col_idx; /* [window_row_ptr[n_windows]], original column, -1 = padding */
  uint64_t *row_mask;      /* [window_row_ptr[n_windows]], bit r set: row r of the window has an entry */
  void *values;            /* [window_row_ptr[n_windows] · h] of dtype, tiles h × 16 */
  int32_t *row_map; /* [m] row of A at each row of the windows, where like rows were brought together; NULL: the same */
} asparse_wcsr;

/* Block CSR with dense square blocks, row-major, zero where A has no entry. */
typedef struct asparse_bcsr {
  int32_t m, k;
  int32_t block_size;   /* r: 16, 32 or 64 */
  int32_t n_block_rows; /* ⌈m / r⌉ */
  int64_t nnz;          /* entries stored in A, without padding */
  asparse_dtype dtype;
  int64_t *block_row_ptr; /* [n_block_rows + 1] */
  int32_t *block_col_idx; /* [block_row_ptr[n_block_rows]], sorted in each block row */
  uint64_t *entry_mask;   /* [block_row_ptr[n_block_rows] · r], bit c set: A stores (row, c) of the block */
  void *blocks;           /* [block_row_ptr[n_block_rows] · r · r] of dtype */
} asparse_bcsr;

/* A rank-local sparse matrix in one of the three formats; exactly one pointer is not NULL. */
typedef struct asparse_shard {
  asparse_format format; /* never AUTO */
  asparse_local_csr *csr;
  asparse_wcsr *wcsr;
  asparse_bcsr *bcsr;
  bool borrows_csr; /* csr belongs to someone else and is not freed with the shard */
} asparse_shard;

/* Rank-local rows of a dense matrix, row-major, element (i, j) at values[i·ld + j]. */
typedef struct asparse_dense {
  int64_t m, n; /* local rows, columns */
  int64_t ld;   /* ≥ n, in elements */
  asparse_dtype dtype;
  void *values;                  /* [m · ld] of dtype */
  asparse_space space;           /* of values */
  void (*release)(void *values); /* how destroy frees values; NULL: they are the library's host memory */
} asparse_dense;

/* What a file said of the matrix read from it. */
typedef struct asparse_source {
  char format[32];        /* "Binsparse CSR", "Matrix Market", … */
  char value_type[16];    /* as stored: "float64", "int8", "iso[float32]", "pattern" … */
  char structure[24];     /* "general", "symmetric_lower", … as stored; the slab is always expanded */
  int64_t stored_entries; /* in the file, before expansion and summing */
  char note[96];          /* what of the file was left out; "" when nothing was */
} asparse_source;

/* Which way a group of data, indices and indptr is compressed that does not say it itself. */
typedef enum asparse_compression {
  ASPARSE_COMPRESSION_UNSAID = 0,
  ASPARSE_COMPRESSION_CSR, /* indptr over rows */
  ASPARSE_COMPRESSION_CSC  /* indptr over columns */
} asparse_compression;

/* What the user says of a matrix file. All zero: nothing. */
typedef struct asparse_read_options {
  bool transpose; /* take the transposed matrix; PETSc means this by files of MATLAB's kind */
  asparse_compression compression;
} asparse_read_options;

/* What a written file says of where it came from; NULL and 0 where nothing is to be said. */
typedef struct asparse_provenance {
  const char *program;  /* "asparse_convert 0.1.0" */
  const char *source;   /* the file it came from */
  const char *options;  /* the command line */
  uint64_t matrix_hash; /* of the entries of the sparse matrix that is written or was multiplied */
} asparse_provenance;

#ifdef __cplusplus
}
#endif
#endif
