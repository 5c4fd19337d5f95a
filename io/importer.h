/* One reader of a foreign file format each, behind one table. Local. */
#ifndef ASPARSE_IMPORTER_H
#define ASPARSE_IMPORTER_H

#include "io/input.h"
#include "io/io.h"

typedef enum asparse_match { ASPARSE_MATCH_NO = 0, ASPARSE_MATCH_MAYBE, ASPARSE_MATCH_YES } asparse_match;

typedef struct asparse_importer {
  const char *name, *title; /* "mtx" for options, "Matrix Market" for people */

  /* By input->head, or by its name where people give files of the format a name of their own. MAYBE: the content
   * would do, but other formats look alike. */
  asparse_match (*detect)(const asparse_input *input);

  /* The rows of part input->part of input->parts: checked, expanded to general structure, rows sorted, duplicates
   * summed; a->nnz is left to the caller. Parts are consecutive rows with near-equal entries; where in_slabs is
   * false only whole matrices (part 0 of 1) are asked for. */
  asparse_status (*read)(asparse_input *input, const asparse_import_options *options, asparse_csr **a,
                         asparse_source *source);
  bool in_slabs;
} asparse_importer;

extern const asparse_importer asparse_mtx_importer, asparse_npz_importer, asparse_petsc_importer, asparse_mat5_importer,
    asparse_harwell_boeing_importer, asparse_metis_importer, asparse_edges_importer;

/* Does the name end so, before ".gz" and the like? Case does not matter. */
bool asparse_input_is_named(const asparse_input *input, const char *ending);

#endif
