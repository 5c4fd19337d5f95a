/* Reading and writing files. hdf5.h is included only inside io/. */
#ifndef ASPARSE_IO_H
#define ASPARSE_IO_H

#include "base/comm.h"
#include "base/csr.h"
#include "base/dense.h"
#include "base/shard.h"

/* ---- paths --------------------------------------------------------------------------------- */

/* "file.h5::/group" → file and object; object is "" when the path names none. Caller frees both. */
asparse_status asparse_path_split(const char *path, char **file, char **object);

/* Local. Whether the file that path names is HDF5; false where it cannot be read. */
bool asparse_path_is_hdf5(const char *path);

/* ---- sparse matrices ----------------------------------------------------------------------- */

/* Collective. Reads a sparse matrix from an HDF5 file in any convention of README's table (or a dense one that is
 * named, of which the elements other than 0 are taken): rank r of p gets a slab of consecutive rows with near-equal
 * rows + entries, checked (pointers monotone, indices in range, no more entries declared than stored, memory budgeted
 * before allocation), expanded to general structure, sorted, duplicates summed. No rank holds more than its share of
 * what is read and of its rows. dtype: fp32 files give fp32, all others fp64 (integers, bool). Each rank
 * reads its own hyperslabs. source may be NULL. */
ASPARSE_API asparse_status asparse_csr_read(asparse_comm *comm, const char *path, asparse_csr **a,
                                            asparse_source *source);
/* The same with what the user says of the file. */
ASPARSE_API asparse_status asparse_csr_read_with(asparse_comm *comm, const char *path,
                                                 const asparse_read_options *options, asparse_csr **a,
                                                 asparse_source *source);

/* Collective. Writes the slabs of all ranks, in rank order, as one Binsparse CSR matrix: uint32 indices where they
 * suffice, else uint64; values of a's dtype (value_type "pattern": one iso[int8] 1, so that a pattern has no precision
 * of its own). value_type and provenance may be NULL. A temporary name in the same folder, fsync, rename: the file is
 * whole or absent. */
ASPARSE_API asparse_status asparse_csr_write(asparse_comm *comm, const char *path, const asparse_csr *a,
                                             const char *value_type, const asparse_provenance *provenance);

/* Collective. A hash of all entries (row, column, value as fp64) and the shape, the same however the rows are spread
 * over ranks and entries are ordered or stored: that of asparse_provenance. */
asparse_status asparse_matrix_hash(asparse_comm *comm, const asparse_csr *slab, uint64_t *hash);

/* How vertices of a graph without a size of its own are numbered. */
typedef enum asparse_ids {
  ASPARSE_IDS_KEEP = 0, /* vertex v is row v; as many rows as the largest one needs */
  ASPARSE_IDS_COMPACT   /* those that occur, in their order */
} asparse_ids;

typedef struct asparse_import_options {
  const char *from; /* the format, by the name that asparse_convert has for it; NULL: by the file's content */
  asparse_ids ids;
} asparse_import_options;

/* Local. ERR_USAGE naming the known formats when options->from is none of them. */
asparse_status asparse_import_check(const asparse_import_options *options);

/* Collective. Reads a matrix of a foreign format ("-": standard input; decompressed by content; "file::name" chooses
 * one of several): checked, expanded, sorted, duplicates summed. Binary formats whose rows lie together are read by
 * every rank, a slab of near-equal entries each; others by rank 0, whose slab then has all rows. dtype: fp32 for
 * single precision, otherwise fp64. Complex: ERR_DATA naming it. */
asparse_status asparse_import(asparse_comm *comm, const char *path, const asparse_import_options *options,
                              asparse_csr **a, asparse_source *source);

/* Local. The format to write a file in: by the name that asparse_convert has for it, or where to is NULL by the ending
 * of path. ERR_USAGE naming the known formats. */
asparse_status asparse_export_find(const char *path, const char *to, int *format);
const char *asparse_export_title(int format);

/* Collective. asparse_csr_write in a format found by asparse_export_find. value_type: what the values were in the
 * source; whole ones of an integer type are written as integers, "pattern" without values, where the format has that.
 * Matrix Market: values in digits that read back as the same bits; each rank holds the text of its rows meanwhile, and
 * rank 0 writes. AnnData: /X in int32 indices where they suffice, else int64. */
asparse_status asparse_export(asparse_comm *comm, const char *path, int format, const asparse_csr *a,
                              const char *value_type, const asparse_provenance *provenance);

/* Local. Reads a Matrix Market file (.mtx, gzip detected by content, "-" = standard input) on all
 * threads into one slab with every row. Coordinate and array; real, double, integer, pattern;
 * general, symmetric, skew-symmetric, hermitian (= symmetric when real). Complex: ERR_DATA naming
 * it. Expanded, sorted, duplicates summed. */
ASPARSE_API asparse_status asparse_mtx_read(const char *path, asparse_csr **a, asparse_source *source);

/* ---- dense matrices ------------------------------------------------------------------------ */

/* Collective. Shape of a dense dataset: a 2-D HDF5 dataset (rows × columns), a 1-D one (one
 * column), or a Binsparse DMATR/DVEC group. */
ASPARSE_API asparse_status asparse_dense_shape(asparse_comm *comm, const char *path, int64_t *m, int64_t *n,
                                               asparse_dtype *dtype);
/* Collective. Rows row_begin … row_begin+a->m-1 of it into a (created by the caller, any dtype). */
ASPARSE_API asparse_status asparse_dense_read(asparse_comm *comm, const char *path, int64_t row_begin,
                                              asparse_dense *a);
/* Collective: true on all ranks when the HDF5 file holds such an object. */
ASPARSE_API asparse_status asparse_object_exists(asparse_comm *comm, const char *file, const char *object,
                                                 bool *exists);

/* Collective. Writes m_global × n as Binsparse DMATR at the root of a new file; each rank gives rows
 * row_begin … row_begin+a->m-1. Parallel HDF5: collective hyperslabs; serial: rank 0 receives slabs
 * and writes. Temporary name, fsync, rename. */
ASPARSE_API asparse_status asparse_dense_write(asparse_comm *comm, const char *path, int64_t m_global,
                                               int64_t row_begin, const asparse_dense *a,
                                               const asparse_provenance *provenance);

/* ---- partitioned matrices ------------------------------------------------------------------ */

/* One part of a partitioned matrix, as a rank holds it. Pointers are borrowed when writing and
 * owned by the caller after reading. */
typedef struct asparse_part {
  int64_t m_local, k_local;               /* own rows of A and C; own rows of B */
  int64_t n_halo;                         /* columns of offd */
  asparse_local_csr *diag, *offd;         /* own columns; halo columns */
  asparse_shard *diag_shard, *offd_shard; /* NULL when the format is CSR */
  int64_t *col_map_offd;                  /* [n_halo] global column (new order) of each offd column */
  int64_t *row_map;                       /* [m_local] original row of each own row; NULL if not permuted */
} asparse_part;

/* Format and unit (window height, block size; 1 for CSR) of a shard. */
typedef struct asparse_shard_kind {
  asparse_format format;
  int32_t unit;
} asparse_shard_kind;

typedef struct asparse_part_header {
  int parts;
  int64_t m, k, nnz;
  asparse_dtype dtype;
  asparse_partition_method method;
  asparse_shard_kind diag, offd;
  int64_t *row_starts, *col_starts; /* [parts + 1] */
  uint64_t matrix_hash;
  double build_seconds; /* partitioning and building that loading saves */
  double imbalance;
} asparse_part_header;

/* Collective. Begins a new partition file under a temporary name; then parts in any order, each part
 * by one rank, in rounds: every rank calls write_part equally often, with part = -1 when it has none;
 * end makes the file appear. Serial HDF5: ranks take turns. */
typedef struct asparse_part_writer asparse_part_writer;
asparse_status asparse_part_writer_begin(asparse_comm *comm, const char *path, const asparse_part_header *header,
                                         const asparse_provenance *provenance, asparse_part_writer **writer);
asparse_status asparse_part_writer_add(asparse_part_writer *writer, int part, const asparse_part *data);
asparse_status asparse_part_writer_end(asparse_part_writer **writer, asparse_status so_far);

/* Collective: is this a partition file? Every rank learns. Then the header (ERR_USAGE naming both
 * numbers and the remedy when parts ≠ comm->size), and this rank's part, checked. */
asparse_status asparse_part_file_detect(asparse_comm *comm, const char *path, bool *is_part_file);
asparse_status asparse_part_header_read(asparse_comm *comm, const char *path, asparse_part_header *header);
asparse_status asparse_part_read(asparse_comm *comm, const char *path, const asparse_part_header *header, int part,
                                 asparse_part *data);
void asparse_part_header_free(asparse_part_header *header);
void asparse_part_free(asparse_part *part);

#endif
