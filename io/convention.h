/* Conventions by which programs keep a sparse matrix in an HDF5 group, and finding the group. Local. */
#ifndef ASPARSE_CONVENTION_H
#define ASPARSE_CONVENTION_H

#include "io/hdf5_read.h"
#include "io/io.h"
#include "io/structure.h"

/* A compressed matrix as a file holds it. Plain data: one rank fills it in, all receive it. */
typedef struct asparse_layout {
  char label[800]; /* "file.h5::/group", for messages */
  int64_t m, k;
  int64_t stored; /* entries as declared, -1 where not said */
  asparse_dataset pointers, indices, values;
  bool iso; /* values holds one value, that of every entry */
  asparse_structure structure;
  bool has_checksum;
  uint64_t checksum;
  asparse_source source; /* stored_entries is set when the pointers are read */
} asparse_layout;

/* Opens path for this process, finds the matrix (object "": the root, else the only group of the root
 * that holds one) and fills in the layout, checked as far as metadata tell. ERR_USAGE: several
 * matrices (listed), no such object; ERR_DATA: none, or of a kind that is not read (named). */
asparse_status asparse_layout_find(const char *path, const char *object, asparse_layout *layout);

/* Whether an object of the file can be what is looked for. */
typedef bool (*asparse_is_candidate)(hid_t object);

/* The path of the root when it is a candidate, else of the only candidate one level below it. what:
 * "sparse matrix". ERR_USAGE: several; ERR_DATA: none. */
asparse_status asparse_hdf5_find(hid_t file, asparse_is_candidate is_candidate, const char *what, char path[512]);

#endif
