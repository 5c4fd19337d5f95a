/* Conventions by which programs keep a matrix in an HDF5 file, one a file convention_<name>.c. Local. */
#ifndef ASPARSE_CONVENTION_H
#define ASPARSE_CONVENTION_H

#include "io/layout.h"

/* An object of a file that may hold a matrix. */
typedef struct asparse_place {
  hid_t file, object; /* object: an open group or dataset */
  const char *path;   /* of the object; "/" is the root */
  const asparse_read_options *options;
  asparse_status *unknown; /* set to ERR_MEMORY where a question could not be answered: its answer was then "no" */
} asparse_place;

typedef enum asparse_matrix_kind { ASPARSE_IS_NO_MATRIX = 0, ASPARSE_IS_SPARSE, ASPARSE_IS_DENSE } asparse_matrix_kind;

/* detect sees the object's kind, attributes and children only; describe fills in the layout's shape,
 * arrangement, datasets and source, ERR_DATA for what is damaged or not read. */
typedef struct asparse_convention {
  const char *name;
  asparse_matrix_kind (*detect)(const asparse_place *place);
  asparse_status (*describe)(const asparse_place *place, asparse_layout *layout);
} asparse_convention;

extern const asparse_convention asparse_convention_binsparse;
extern const asparse_convention asparse_convention_anndata;
extern const asparse_convention asparse_convention_h5sparse;
extern const asparse_convention asparse_convention_matlab;
extern const asparse_convention asparse_convention_octave;
extern const asparse_convention asparse_convention_cooler;
extern const asparse_convention asparse_convention_biom;
extern const asparse_convention asparse_convention_tenx;
extern const asparse_convention asparse_convention_bare;
extern const asparse_convention asparse_convention_dense;

/* Whether the object is a group with such an attribute or child. */
bool asparse_place_has(const asparse_place *place, const char *attribute, const char *child);

/* Whether a text attribute of the object contains the word; false where it is missing or no text. */
bool asparse_place_says(const asparse_place *place, const char *attribute, const char *word);

/* Fills in datasets pointers, indices and values of the group at path, by name. MAY_BE_ABSENT: a group
 * without indices holds no entries. */
typedef enum asparse_presence { ASPARSE_MUST_BE_THERE, ASPARSE_MAY_BE_ABSENT } asparse_presence;
asparse_status asparse_layout_compressed(const asparse_place *place, const char *path, const char *const names[3],
                                         asparse_presence entries, asparse_layout *layout);

/* Sets shape and arrangement; ERR_DATA where the shape is negative or out of range. */
asparse_status asparse_layout_shape(const int64_t shape[2], asparse_arrangement arrangement, asparse_layout *layout);

/* Sets what the report says: "AnnData CSR", and the type of the values where it is not set yet. */
void asparse_layout_source(const char *format, asparse_layout *layout);

#endif
