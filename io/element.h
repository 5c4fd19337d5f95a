/* Element types of stored arrays, their conversion to int64 and to our dtypes. Local. */
#ifndef ASPARSE_ELEMENT_H
#define ASPARSE_ELEMENT_H

#include "base/dtype.h"

typedef enum asparse_element {
  ASPARSE_INT8 = 0,
  ASPARSE_INT16,
  ASPARSE_INT32,
  ASPARSE_INT64,
  ASPARSE_UINT8,
  ASPARSE_UINT16,
  ASPARSE_UINT32,
  ASPARSE_UINT64,
  ASPARSE_FLOAT32,
  ASPARSE_FLOAT64
} asparse_element;

size_t asparse_element_size(asparse_element element);
const char *asparse_element_name(asparse_element element); /* "int8", …, "float64" */
bool asparse_element_is_integer(asparse_element element);

/* The dtype that holds values of this type: fp32 for float32, otherwise fp64. */
asparse_dtype asparse_element_dtype(asparse_element element);
/* The type that values of a dtype are stored as: bf16 is widened to float32. */
asparse_element asparse_element_of_dtype(asparse_dtype dtype);

/* to[i] = from[i]; uint64 values above INT64_MAX become INT64_MAX. element is an integer type. Threaded. */
void asparse_element_to_int64(asparse_element element, const void *from, int64_t count, int64_t *to);

/* to[first + i] = from[i], integers through fp64, rounded once to dtype. Returns how many integers
 * fp64 cannot hold exactly. Threaded. */
int64_t asparse_element_to_values(asparse_element element, const void *from, int64_t count, asparse_dtype dtype,
                                  void *to, int64_t first);

/* to[i] = from[i], which must fit. Threaded. */
void asparse_element_from_int64(asparse_element element, const int64_t *from, int64_t count, void *to);

/* Are indices[count] all in 0 … end-1? By one thread. */
bool asparse_all_in_range(const int64_t *indices, int64_t count, int64_t end);

#endif
