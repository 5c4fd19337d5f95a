/* HDF5 files of which any byte may be damaged. */
#include "fuzz/hdf5_readers.h"

void fuzz_one(const uint8_t *data, size_t size) {
  const char *path = fuzz_file(data, size);
  fuzz_read_sparse(path);
  fuzz_read_dense(path);
}
