/* Partition files, described like those of convention.c. */
#include "fuzz/container.h"
#include "fuzz/hdf5_readers.h"

void fuzz_one(const uint8_t *data, size_t size) {
  const char *path = fuzz_file("", 0);
  fuzz_container_write(path, data, size);
  fuzz_read_part(path);
}
