#include "base/dtype.h"

#include <math.h>

/* fp32 rounded to odd: truncate, and keep a sticky last bit if anything was cut. Rounding that to
 * bf16 gives what a single rounding from fp64 gives (Boldo & Melquiond, 2008). */
static float float_to_odd(double x) {
  float y = (float)x;
  if ((double)y == x || isnan(x) || isinf(y)) return y;
  uint32_t bits;
  memcpy(&bits, &y, sizeof bits);
  if (fabs((double)y) > fabs(x)) bits -= 1; /* back to truncation */
  bits |= 1u;
  memcpy(&y, &bits, sizeof y);
  return y;
}

void asparse_store(asparse_dtype dtype, void *array, int64_t i, double x) {
  if (dtype == ASPARSE_FP64) ((double *)array)[i] = x;
  else if (dtype == ASPARSE_FP32) ((float *)array)[i] = (float)x;
  else ((uint16_t *)array)[i] = asparse_bf16_from_float(float_to_odd(x));
}

void asparse_convert_values(asparse_dtype to_dtype, void *to, asparse_dtype from_dtype, const void *from,
                            int64_t count) {
  if (to_dtype == from_dtype) {
    memcpy(to, from, (size_t)count * asparse_dtype_size(to_dtype));
    return;
  }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i++) asparse_store(to_dtype, to, i, asparse_load(from_dtype, from, i));
}
