/* HDF5 files that HDF5 itself finds whole: what they say, and how their arrays fit, is whatever the input describes. A
 * first line "object NAME" chooses what is read in it. */
#include <stdio.h>
#include <string.h>

#include "fuzz/container.h"
#include "fuzz/hdf5_readers.h"

void fuzz_one(const uint8_t *data, size_t size) {
  static const char choice[] = "object ";
  const size_t n_choice = sizeof choice - 1;
  char path[600];
  int length = snprintf(path, sizeof path, "%s", fuzz_file("", 0));
  fuzz_container_write(path, data, size);
  if (size > n_choice && memcmp(data, choice, n_choice) == 0) {
    const uint8_t *name = data + n_choice, *end = memchr(name, '\n', size - n_choice);
    const size_t n = end ? (size_t)(end - name) : size - n_choice;
    snprintf(path + length, sizeof path - (size_t)length, "::%.*s", n < 256 ? (int)n : 256, (const char *)name);
  }
  fuzz_read_sparse(path);
  fuzz_read_dense(path);
}
