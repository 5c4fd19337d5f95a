#include "io/hdf5_lzf.h"

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

enum { LITERALS = 32, LONGEST_MATCH = 264 };

/* A control byte below 32 is followed by that many literals, plus one; otherwise its high three bits are the length of
 * a match minus 2 (7: the next byte is added) and its low five, with the next byte, the distance minus 1.
 * False unless the input ends just where `size` bytes have been written. */
static bool decode(const uint8_t *in, size_t n_in, uint8_t *out, size_t size) {
  size_t i = 0, o = 0;
  while (i < n_in) {
    size_t control = in[i++];
    if (control < LITERALS) {
      size_t count = control + 1;
      if (count > n_in - i || count > size - o) return false;
      while (count-- > 0) out[o++] = in[i++];
      continue;
    }
    size_t length = control >> 5;
    if (length == 7) {
      if (i == n_in) return false;
      length += in[i++];
    }
    if (i == n_in) return false;
    size_t distance = ((control & 0x1f) << 8 | in[i++]) + 1;
    length += 2;
    if (distance > o || length > size - o) return false;
    for (; length-- > 0; o++) out[o] = out[o - distance];
  }
  return o == size;
}

/* 0 means failure. */
static size_t filter(unsigned flags, size_t n_parameters, const unsigned parameters[], size_t n_bytes,
                     size_t *buffer_size, void **buffer) {
  size_t size = n_parameters > ASPARSE_LZF_CHUNK_BYTES ? parameters[ASPARSE_LZF_CHUNK_BYTES] : 0;
  if (!(flags & H5Z_FLAG_REVERSE) || size == 0 || size / LONGEST_MATCH > n_bytes) return 0;
  uint8_t *out = H5allocate_memory(size, false);
  if (!out) return 0;
  if (!decode(*buffer, n_bytes, out, size)) {
    H5free_memory(out);
    return 0;
  }
  H5free_memory(*buffer);
  *buffer = out;
  *buffer_size = size;
  return size;
}

void asparse_hdf5_lzf_register(void) {
  static const H5Z_class2_t lzf = {H5Z_CLASS_T_VERS, ASPARSE_LZF_FILTER, 0, 1, "lzf", NULL, NULL, filter};
  if (H5Zfilter_avail(ASPARSE_LZF_FILTER) <= 0) H5Zregister(&lzf);
  H5Eclear2(H5E_DEFAULT);
}
