#include "io/element.h"

/* Calls X(element, C type, name) for every type. */
#define FOR_INTEGERS(X)                                                                                                \
  X(ASPARSE_INT8, int8_t, "int8")                                                                                      \
  X(ASPARSE_INT16, int16_t, "int16")                                                                                   \
  X(ASPARSE_INT32, int32_t, "int32")                                                                                   \
  X(ASPARSE_INT64, int64_t, "int64")                                                                                   \
  X(ASPARSE_UINT8, uint8_t, "uint8")                                                                                   \
  X(ASPARSE_UINT16, uint16_t, "uint16")                                                                                \
  X(ASPARSE_UINT32, uint32_t, "uint32")                                                                                \
  X(ASPARSE_UINT64, uint64_t, "uint64")
#define FOR_ELEMENTS(X)                                                                                                \
  FOR_INTEGERS(X)                                                                                                      \
  X(ASPARSE_FLOAT32, float, "float32")                                                                                 \
  X(ASPARSE_FLOAT64, double, "float64")

size_t asparse_element_size(asparse_element element) {
#define SIZE(type, c_type, name) [type] = sizeof(c_type),
  static const size_t sizes[] = {FOR_ELEMENTS(SIZE)};
#undef SIZE
  return sizes[element];
}

const char *asparse_element_name(asparse_element element) {
#define NAME(type, c_type, name) [type] = name,
  static const char *const names[] = {FOR_ELEMENTS(NAME)};
#undef NAME
  return names[element];
}

bool asparse_element_is_integer(asparse_element element) { return element < ASPARSE_FLOAT32; }

asparse_dtype asparse_element_dtype(asparse_element element) {
  return element == ASPARSE_FLOAT32 ? ASPARSE_FP32 : ASPARSE_FP64;
}

asparse_element asparse_element_of_dtype(asparse_dtype dtype) {
  return dtype == ASPARSE_FP64 ? ASPARSE_FLOAT64 : ASPARSE_FLOAT32;
}

void asparse_element_to_int64(asparse_element element, const void *from, int64_t count, int64_t *to) {
  switch (element) {
#define WIDEN(type, c_type, name)                                                                                      \
  case type: {                                                                                                         \
    const c_type *typed = from;                                                                                        \
    _Pragma("omp parallel for schedule(static)") for (int64_t i = 0; i < count; i++) to[i] =                           \
        type == ASPARSE_UINT64 && (uint64_t)typed[i] > INT64_MAX ? INT64_MAX : (int64_t)typed[i];                      \
    break;                                                                                                             \
  }
    FOR_INTEGERS(WIDEN)
#undef WIDEN
  default: break;
  }
}

void asparse_element_from_int64(asparse_element element, const int64_t *from, int64_t count, void *to) {
  switch (element) {
#define NARROW(type, c_type, name)                                                                                     \
  case type: {                                                                                                         \
    c_type *typed = to;                                                                                                \
    _Pragma("omp parallel for schedule(static)") for (int64_t i = 0; i < count; i++) typed[i] = (c_type)from[i];       \
    break;                                                                                                             \
  }
    FOR_INTEGERS(NARROW)
#undef NARROW
  default: break;
  }
}

/* Whether (double)x == x, for an integer given by its magnitude: at most 53 significant bits. */
static bool is_exact(uint64_t magnitude) {
  return magnitude <= UINT64_C(1) << 53 || magnitude >> __builtin_ctzll(magnitude) <= UINT64_C(1) << 53;
}

int64_t asparse_element_to_values(asparse_element element, const void *from, int64_t count, asparse_dtype dtype,
                                  void *to, int64_t first) {
  int64_t inexact = 0;
  switch (element) {
  case ASPARSE_FLOAT32:
    asparse_convert_values(dtype, (char *)to + (size_t)first * asparse_dtype_size(dtype), ASPARSE_FP32, from, count);
    break;
  case ASPARSE_FLOAT64:
    asparse_convert_values(dtype, (char *)to + (size_t)first * asparse_dtype_size(dtype), ASPARSE_FP64, from, count);
    break;
#define CONVERT(type, c_type, name)                                                                                    \
  case type: {                                                                                                         \
    const c_type *typed = from;                                                                                        \
    _Pragma("omp parallel for schedule(static) reduction(+ : inexact)") for (int64_t i = 0; i < count; i++) {          \
      bool negative = type < ASPARSE_UINT8 && typed[i] < (c_type)1 && typed[i] != 0;                                   \
      inexact += sizeof(c_type) == 8 && !is_exact(negative ? -(uint64_t)typed[i] : (uint64_t)typed[i]);                \
      asparse_store(dtype, to, first + i, (double)typed[i]);                                                           \
    }                                                                                                                  \
    break;                                                                                                             \
  }
    FOR_INTEGERS(CONVERT)
#undef CONVERT
  }
  return inexact;
}

/* An index below 0 or above end-1 makes one of the two negative. */
bool asparse_all_in_range(const int64_t *indices, int64_t count, int64_t end) {
  int64_t signs = 0;
#pragma omp simd reduction(| : signs)
  for (int64_t i = 0; i < count; i++) signs |= indices[i] | (int64_t)((uint64_t)end - 1 - (uint64_t)indices[i]);
  return signs >= 0;
}
