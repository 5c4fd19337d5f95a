/* Strips: the columns of C that a kernel holds in registers at once. Included once per instruction set. */
#ifndef ASPARSE_HOST_STRIP_H
#define ASPARSE_HOST_STRIP_H

#include "kernels/host_kernels.h"
#include "kernels/vector.h"

#define ISA_JOIN_(name, isa) name##_##isa
#define ISA_JOIN(name, isa) ISA_JOIN_(name, isa)
#define ISA_NAME(name) ISA_JOIN(name, ASPARSE_ISA_SUFFIX)

/* function(dtype, …) with dtype as a constant. */
#define FOR_DTYPE(dtype, function, ...)                                                                                \
  do {                                                                                                                 \
    if ((dtype) == ASPARSE_FP64) function(ASPARSE_FP64, __VA_ARGS__);                                                  \
    else if ((dtype) == ASPARSE_FP32) function(ASPARSE_FP32, __VA_ARGS__);                                             \
    else function(ASPARSE_BF16, __VA_ARGS__);                                                                          \
  } while (0)

typedef struct strip {
  int64_t col_begin;
  int vectors;  /* registers of this strip; 0: there are no more columns */
  int64_t tail; /* lanes used in its last register, 1 … lanes */
  int64_t vectors_left, strips_left, lanes, last_tail;
} strip;

/* The next strip, as wide as the others but for one register. */
INLINE strip strip_cut(strip s) {
  s.vectors = s.strips_left > 0 ? (int)((s.vectors_left + s.strips_left - 1) / s.strips_left) : 0;
  s.tail = s.strips_left == 1 ? s.last_tail : s.lanes;
  return s;
}

/* Columns [col_begin, col_end) in as few strips of at most `most` registers as will do. */
INLINE strip strip_first(asparse_dtype dtype, int most, int64_t col_begin, int64_t col_end) {
  int64_t lanes = vec_lanes(dtype), vectors = (col_end - col_begin + lanes - 1) / lanes;
  return strip_cut((strip){.col_begin = col_begin,
                           .vectors_left = vectors,
                           .strips_left = (vectors + most - 1) / most,
                           .lanes = lanes,
                           .last_tail = col_end - col_begin - (vectors - 1) * lanes});
}

INLINE strip strip_next(strip s) {
  s.col_begin += s.vectors * s.lanes;
  s.vectors_left -= s.vectors;
  s.strips_left--;
  return strip_cut(s);
}

/* Register v of the strip that starts at b. */
INLINE vec strip_load(asparse_dtype dtype, const bool masked, const char *b, int v, int64_t tail) {
  const char *at = b + v * vec_lanes(dtype) * (int64_t)asparse_dtype_size(dtype);
  return masked ? vec_load_tail(dtype, at, tail) : vec_load(dtype, at);
}

/* C(row, strip) = sum, or += sum. */
INLINE void strip_store(asparse_dtype dtype, const int vectors, const bool masked, const asparse_product *p,
                        int64_t row, const strip *s, const vec *sum) {
  const asparse_dtype result = dtype == ASPARSE_FP64 ? ASPARSE_FP64 : ASPARSE_FP32;
  char *c = p->c + row * p->ldc + s->col_begin * (int64_t)asparse_dtype_size(result);
  UNROLL for (int v = 0; v < vectors; v++, c += VECTOR_BYTES) {
    if (masked && v == vectors - 1) {
      vec x = p->accumulate ? vec_add(dtype, vec_load_tail(result, c, s->tail), sum[v]) : sum[v];
      vec_store_tail(dtype, c, x, s->tail);
    } else if (p->accumulate) {
      vec_store(dtype, c, vec_add(dtype, vec_load(result, c), sum[v]));
    } else if (p->stream) {
      vec_stream(c, sum[v]);
    } else {
      vec_store(dtype, c, sum[v]);
    }
  }
}

#endif
