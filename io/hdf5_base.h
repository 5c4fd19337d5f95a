/* HDF5's errors as ours, and our element types as HDF5's. Local. */
#ifndef ASPARSE_HDF5_BASE_H
#define ASPARSE_HDF5_BASE_H

#include <hdf5.h>

#include "base/status.h"
#include "io/element.h"

/* Before the first HDF5 call of an operation: the library stops printing its error stack; ours says it once,
 * and the filters that we bring are there. */
void asparse_hdf5_begin(void);

/* The HDF5 type of an element in memory. */
hid_t asparse_element_hdf5(asparse_element element);

/* Records the innermost text of HDF5's error stack, clears the stack, returns code. */
asparse_status asparse_hdf5_fail(asparse_status code, const char *call, const char *source, int line);

/* For calls that give a negative number when they fail. code: ERR_DATA for what a damaged file
 * causes, ERR_IO for writing. */
#define TRY_HDF5(code, call)                                                                                           \
  do {                                                                                                                 \
    if ((call) < 0) {                                                                                                  \
      status = asparse_hdf5_fail((code), #call, __FILE__, __LINE__);                                                   \
      goto cleanup;                                                                                                    \
    }                                                                                                                  \
  } while (0)

/* Closes what is open (id ≥ 0) and marks it closed. */
#define CLOSE_HDF5(close, id)                                                                                          \
  do {                                                                                                                 \
    if ((id) >= 0) close(id);                                                                                          \
    (id) = -1;                                                                                                         \
  } while (0)

#endif
