/* Arrays of NumPy in a zip archive (numpy.lib.format, versions 1 to 3), read from their beginning. Local. */
#ifndef ASPARSE_NPY_H
#define ASPARSE_NPY_H

#include "io/element.h"
#include "io/zip.h"

enum { ASPARSE_NPY_DIMS = 3 };

typedef struct asparse_npy {
  asparse_zip_reader reader;
  char label[160];         /* "file, array data", for messages */
  char type[16];           /* as stored: "<f8" */
  asparse_element element; /* of numbers; bool: uint8, float16: float32 after conversion */
  bool number, half, swapped;
  size_t item_bytes; /* in the file */
  int n_dims;
  int64_t shape[ASPARSE_NPY_DIMS]; /* 1 beyond n_dims */
  int64_t count, next;             /* elements, and the next one to be read */
} asparse_npy;

/* Opens member "name.npy". ERR_DATA: not there, pickled objects, complex numbers, Fortran order, or a size that the
 * member does not have. npy is valid for close in any case. */
asparse_status asparse_npy_open(const asparse_zip *zip, const char *name, asparse_npy *npy);
void asparse_npy_close(asparse_npy *npy);

/* Passes over elements. */
asparse_status asparse_npy_skip(asparse_npy *npy, int64_t count);
/* The next elements; ERR_DATA when they are no integers. */
asparse_status asparse_npy_integers(asparse_npy *npy, int64_t count, int64_t *to);
/* The next elements, rounded once to dtype; *inexact += integers that fp64 cannot hold. */
asparse_status asparse_npy_values(asparse_npy *npy, int64_t count, asparse_dtype dtype, void *to, int64_t *inexact);
/* The whole array as text, at most size - 1 characters: "csr". */
asparse_status asparse_npy_text(asparse_npy *npy, char *text, size_t size);

#endif
