/* Reading HDF5 files that nobody vouches for: opening with checks, objects, text attributes, and
 * hyperslabs of datasets. */
#ifndef ASPARSE_HDF5_READ_H
#define ASPARSE_HDF5_READ_H

#include "base/comm.h"
#include "io/element.h"
#include "io/hdf5_base.h"

/* Local. Opens for reading by this process alone. ERR_NO_INPUT: missing or unreadable; ERR_DATA:
 * empty, truncated, not HDF5 (the message says what it looks like). */
asparse_status asparse_hdf5_open(const char *path, hid_t *file);

/* Collective. Opens on every rank, through MPI-IO where HDF5 is parallel and there are several ranks;
 * closing is then collective too. For a file that asparse_hdf5_open has just accepted on one rank. */
asparse_status asparse_hdf5_open_all(asparse_comm *comm, const char *path, hid_t *file);

/* Local. Opens the group or dataset at path; "" and "/" are the root. Links into other files are
 * refused. ERR_USAGE when there is no such object. */
asparse_status asparse_hdf5_open_object(hid_t file, const char *path, hid_t *object);

/* Local. Whether path leads to an object of this file; links into other files: ERR_DATA. */
asparse_status asparse_hdf5_exists(hid_t file, const char *path, bool *exists);

/* Local. A text attribute, of fixed or variable length; caller frees with asparse_free. ERR_DATA when
 * it is missing or no text. */
asparse_status asparse_hdf5_read_text(hid_t object, const char *name, char **text);

/* Local. The n integers of an attribute. ERR_DATA when it is missing or holds anything else. */
asparse_status asparse_hdf5_read_integers(hid_t object, const char *name, int n, int64_t *values);

/* A numeric dataset of one or two dimensions. Plain data apart from id. */
typedef struct asparse_dataset {
  char path[512];          /* within the file */
  char label[800];         /* "file.h5::/path", for messages */
  asparse_element element; /* as it is read; narrower floats as float32 */
  int rank;                /* 1 or 2 */
  int64_t rows, cols;      /* cols = 1 where rank = 1 */
  int64_t chunk_bytes;     /* 0 where contiguous */
  hid_t id;                /* < 0 while closed */
} asparse_dataset;

/* Where a matrix needs none, path is "". */
static inline bool asparse_dataset_is_there(const asparse_dataset *dataset) { return dataset->path[0] != '\0'; }

/* Local. Fills in everything but id. ERR_DATA when group/name is no such dataset, or lies
 * in other files (external, virtual), or needs a filter that is not installed. */
asparse_status asparse_dataset_inspect(hid_t file, const char *group, const char *name, asparse_dataset *dataset);

/* Local. The n integers of a small dataset, whatever its dimensions; checked like the others. */
asparse_status asparse_dataset_read_integers(hid_t file, const char *group, const char *name, int n, int64_t *values);

/* Collective where the file was opened on all ranks: opens what was inspected, maybe on another rank. */
asparse_status asparse_dataset_open(asparse_comm *comm, hid_t file, asparse_dataset *dataset);
void asparse_dataset_close(asparse_dataset *dataset); /* local; closed ones are fine */

/* Takes rows first … first+count-1 of those asked for (first counts from 0), in the dataset's element type. */
typedef asparse_status (*asparse_take_rows)(void *context, int64_t first, int64_t count, const void *rows);

/* Collective. Reads rows row_begin … row_begin+count-1, each rank its own (they may overlap), piece by piece, and hands
 * each piece to take. to: where all of them are put, [count][cols] in the dataset's element type; NULL: each piece
 * is gone after take. take may be NULL when to is not. */
asparse_status asparse_dataset_read(asparse_comm *comm, const asparse_dataset *dataset, int64_t row_begin,
                                    int64_t count, void *to, asparse_take_rows take, void *context);

/* Collective. The dataset holds a matrix of `lines` lines, one after the other (2-D, or 1-D): hands elements begin …
 * begin+count-1 of every line to take, in pieces of whole lines. Ranks' ranges may overlap. */
asparse_status asparse_dataset_read_across(asparse_comm *comm, const asparse_dataset *dataset, int64_t lines,
                                           int64_t begin, int64_t count, asparse_take_rows take, void *context);

/* Collective. A 1-D integer dataset as int64, to [count]. */
asparse_status asparse_dataset_read_int64(asparse_comm *comm, const asparse_dataset *dataset, int64_t begin,
                                          int64_t count, int64_t *to);

/* Bytes that one transfer moves at most: pieces stay far below the 2^31 bytes where MPI-IO fails. */
int64_t asparse_piece_bytes(const asparse_comm *comm);

#endif
