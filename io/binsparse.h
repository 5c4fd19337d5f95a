/* The JSON descriptor of Binsparse 0.1 (https://graphblas.org/binsparse-specification), text attribute
 * "binsparse" of a group. Local. */
#ifndef ASPARSE_BINSPARSE_H
#define ASPARSE_BINSPARSE_H

#include "base/status.h"
#include "io/structure.h"

#define ASPARSE_BINSPARSE_ATTRIBUTE "binsparse"

typedef struct asparse_binsparse {
  char format[16];     /* "CSR", "DMATR", … */
  int n_dims;          /* 1 or 2 */
  int64_t shape[2];    /* ≥ 0; shape[1] = 1 where n_dims = 1 */
  int64_t stored;      /* number_of_stored_values, -1 where not said */
  char value_type[32]; /* data_types.values, "" where not said */
  bool iso;            /* values holds one value, that of every entry */
  bool has_fill;       /* dataset fill_value holds the value of entries that are not stored */
  asparse_structure structure;
} asparse_binsparse;

/* ERR_DATA: no such JSON, another version, complex values, a shape out of range, an unknown structure. */
asparse_status asparse_binsparse_parse(const char *text, asparse_binsparse *descriptor);

/* Names of the index datasets and their types for the writer; NULL ends the list. */
typedef struct asparse_binsparse_array {
  const char *name, *type;
} asparse_binsparse_array;

enum { ASPARSE_BINSPARSE_LENGTH = 1024 };

/* The JSON text for a descriptor; value_type is written as it stands ("iso[float32]"). */
asparse_status asparse_binsparse_text(const asparse_binsparse *descriptor, const asparse_binsparse_array *index_arrays,
                                      char text[ASPARSE_BINSPARSE_LENGTH]);

/* "DMATR", "DVEC", …: the formats of dense arrays. */
bool asparse_binsparse_is_dense(const char *format);

#endif
