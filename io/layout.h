/* How a file holds a matrix, whatever the convention, and finding it in the file. Local. */
#ifndef ASPARSE_LAYOUT_H
#define ASPARSE_LAYOUT_H

#include "io/hdf5_read.h"
#include "io/io.h"
#include "io/structure.h"

/* How the entries are arranged. Below, a line is a row of what is arranged by rows, a column otherwise. */
typedef enum asparse_arrangement {
  ASPARSE_BY_ROWS,         /* compressed: pointers [lines + 1], indices [entries] = columns */
  ASPARSE_BY_COLUMNS,      /* compressed: pointers [lines + 1], indices [entries] = rows */
  ASPARSE_BY_ENTRY,        /* lines [entries] = rows, indices [entries] = columns */
  ASPARSE_DENSE_BY_ROWS,   /* values [m × k] or [m · k]: all elements */
  ASPARSE_DENSE_BY_COLUMNS /* values [k × m] or [k · m] */
} asparse_arrangement;

enum { ASPARSE_UNKNOWN_EXTENT = -1 };

/* Plain data: one rank fills it in, all receive it. */
typedef struct asparse_layout {
  char label[800]; /* "file.h5::/group", for messages */
  int64_t m, k;    /* ASPARSE_UNKNOWN_EXTENT: as the largest index needs (the dimension of indices only) */
  int64_t stored;  /* entries as declared, -1 where not said */
  asparse_arrangement arrangement;
  asparse_dataset pointers;
  asparse_dataset lines; /* by entry; compressed: the lines that are stored, absent where all are */
  asparse_dataset indices, values;
  bool iso; /* values holds one value, that of every entry */
  asparse_structure structure;
  bool transposed; /* the opposite of what the file holds */
  bool has_checksum;
  uint64_t checksum;
  asparse_source source; /* stored_entries is set when the entries are read */
} asparse_layout;

static inline bool asparse_is_dense(asparse_arrangement arrangement) { return arrangement >= ASPARSE_DENSE_BY_ROWS; }

/* An empty layout, datasets closed and absent. */
void asparse_layout_init(asparse_layout *layout);

/* Opens path for this process, finds the matrix (object "": the root, else the only object of the file
 * that holds one) and fills in the layout, checked as far as metadata tell. dense: looks for a dense matrix, else for a
 * sparse one; a dense one that is named is fine there too. ERR_USAGE: several matrices (listed), no such object;
 * ERR_DATA: none, or of a kind that is not read (named). options may be NULL. */
asparse_status asparse_layout_find(const char *path, const char *object, bool dense,
                                   const asparse_read_options *options, asparse_layout *layout);

/* Checks that hold for every convention: ranks, classes and lengths of the datasets against the shape. */
asparse_status asparse_layout_check(const asparse_layout *layout);

/* Collective. Opens the datasets that are there, in a file that is open on all ranks; closing is local. */
asparse_status asparse_layout_open(asparse_comm *comm, hid_t file, asparse_layout *layout);
void asparse_layout_close(asparse_layout *layout);

#endif
