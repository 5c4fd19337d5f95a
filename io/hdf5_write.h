/* Writing one HDF5 file from all ranks: whole or absent (see output.h).
 *
 *   begin    rank 0 creates the file, by itself
 *   text, declare    attributes and 1-D datasets of the root group
 *   reserve  the space is claimed on disk; the file is opened for filling
 *   fill     each rank's elements of a dataset
 *   end      the file appears, or nothing remains of it
 *
 * What can be foreseen to fail (folder, disk full, quota, size limits) fails up to reserve, on one rank
 * at a time. After that, where HDF5 is parallel, every rank writes in collective hyperslabs; a write that
 * fails there can leave other ranks waiting inside HDF5 or MPI-IO, which nobody outside can undo. Where
 * HDF5 is serial, or there is one rank, rank 0 receives the elements in pieces and writes them.
 *
 * All are collective: every rank makes the same calls. */
#ifndef ASPARSE_HDF5_WRITE_H
#define ASPARSE_HDF5_WRITE_H

#include "io/element.h"
#include "io/hdf5_base.h"
#include "io/io.h"
#include "io/output.h"

typedef struct asparse_writer {
  asparse_comm *comm;
  asparse_output output;
  bool parallel; /* all ranks write, once the space is reserved */
  hid_t file;    /* < 0 on ranks that do not hold it at the moment */
} asparse_writer;

asparse_status asparse_writer_begin(asparse_comm *comm, const char *path, asparse_writer *writer);
asparse_status asparse_writer_text(asparse_writer *writer, const char *name, const char *text);
asparse_status asparse_writer_provenance(asparse_writer *writer, const asparse_provenance *provenance);
asparse_status asparse_writer_declare(asparse_writer *writer, const char *name, asparse_element element, int64_t total);
asparse_status asparse_writer_reserve(asparse_writer *writer);

/* Gives elements first … first+count-1 of the rank's own (first counts from 0), in the dataset's type. */
typedef void (*asparse_give_elements)(void *context, int64_t first, int64_t count, void *elements);

/* count elements of this rank, the first of which is element begin of the dataset; element as declared. */
asparse_status asparse_writer_fill(asparse_writer *writer, const char *name, asparse_element element, int64_t begin,
                                   int64_t count, asparse_give_elements give, void *context);

asparse_status asparse_writer_end(asparse_writer *writer, asparse_status so_far);

/* Agrees on the outcome of local work; a failure is prefixed with the file's name. */
asparse_status asparse_writer_agree(asparse_writer *writer, asparse_status local);

/* ---- the steps, for files that are written otherwise; local unless comm is given -------------- */

asparse_status asparse_hdf5_reopen(asparse_comm *comm, const char *path, hid_t *file); /* comm: MPI-IO, collective */
asparse_status asparse_hdf5_close_written(hid_t *file);                                /* ERR_IO; -1 is fine */
/* The type of text of a fixed length ≥ 1 (UTF-8, filled up with zeros); the caller closes it. Fixed: attributes then
 * lie in the object header, under its checksum. Text of variable length lies in a heap that has none, and HDF5 1.10
 * crashes on a damaged one. */
asparse_status asparse_hdf5_text_type(size_t length, hid_t *type);
asparse_status asparse_hdf5_write_text(hid_t object, const char *name, const char *text);
/* A creation property list (H5P_GROUP_CREATE, …) of objects without times, so that the same command writes the same
 * bytes; the caller closes it. */
asparse_status asparse_hdf5_creation(hid_t object_class, hid_t *creation);
asparse_status asparse_hdf5_declare(hid_t file, const char *path, asparse_element element, int64_t count);
/* Collective: rank 0 claims blocks for the closed file; each rank checks its limit on file sizes. name:
 * what messages call it. */
asparse_status asparse_hdf5_claim_space(asparse_comm *comm, const char *path, const char *name);

#endif
