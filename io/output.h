/* An output file that is whole or absent: written under a temporary name in the same folder, made
 * durable, then renamed; an older file of that name stays until that moment. */
#ifndef ASPARSE_OUTPUT_H
#define ASPARSE_OUTPUT_H

#include <limits.h>

#include "base/comm.h"

typedef struct asparse_output {
  char path[PATH_MAX];      /* where the file will appear (symbolic links followed) */
  char temporary[PATH_MAX]; /* "" when none exists */
} asparse_output;

/* Collective. Creates the empty temporary file, so that an unwritable folder fails at once (ERR_IO
 * with path and reason), and removes temporaries that dead processes of this host left for the same path. */
asparse_status asparse_output_begin(asparse_comm *comm, const char *path, asparse_output *output);

/* Collective. With so_far OK on every rank: fsync, rename, fsync of the folder. Otherwise, or when
 * one of these fails, the temporary is removed. Returns the agreed status. The file must be closed. */
asparse_status asparse_output_end(asparse_comm *comm, asparse_output *output, asparse_status so_far);

#endif
