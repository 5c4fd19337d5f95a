/* What reads matrices from HDF5 files, on the file at path. */
#ifndef ASPARSE_FUZZ_HDF5_READERS_H
#define ASPARSE_FUZZ_HDF5_READERS_H

#include "base/dense.h"
#include "fuzz/harness.h"
#include "io/io.h"

static inline asparse_status fuzz_read_csr(const char *path, asparse_read_options options, asparse_csr **a) {
  asparse_source source;
  asparse_error_clear();
  asparse_status status = asparse_csr_read_with(fuzz_comm, path, &options, a, &source);
  fuzz_check_status(status);
  FUZZ_THAT((status == ASPARSE_OK) == (*a != NULL));
  if (!*a) return status;
  fuzz_check_csr(*a, true);
  FUZZ_THAT(source.format[0] && source.value_type[0] && source.structure[0] && source.stored_entries >= 0);
  return status;
}

/* As it is, with the compression said where the file leaves it open; then transposed. */
static inline void fuzz_read_sparse(const char *path) {
  asparse_read_options options = {.compression = ASPARSE_COMPRESSION_UNSAID};
  asparse_csr *a = NULL, *t = NULL;
  if (fuzz_read_csr(path, options, &a) == ASPARSE_ERR_USAGE) {
    options.compression = ASPARSE_COMPRESSION_CSC;
    fuzz_read_csr(path, options, &a);
  }
  options.transpose = true;
  if (a) fuzz_read_csr(path, options, &t);
  if (t) FUZZ_THAT(a->m == t->k && a->k == t->m && a->nnz == t->nnz && a->n_duplicates == t->n_duplicates);
  asparse_csr_destroy(&a);
  asparse_csr_destroy(&t);
}

static inline void fuzz_read_dense(const char *path) {
  enum { MOST_ELEMENTS = 1 << 16 };
  asparse_dense *b = NULL;
  asparse_dtype dtype = ASPARSE_FP64;
  int64_t m = 0, n = 0;
  asparse_error_clear();
  asparse_status status = asparse_dense_shape(fuzz_comm, path, &m, &n, &dtype);
  fuzz_check_status(status);
  if (status != ASPARSE_OK) return;
  FUZZ_THAT(m >= 0 && n >= 0);
  if (n > MOST_ELEMENTS || (n > 0 && m > MOST_ELEMENTS / n)) return; /* the programs budget for it */
  FUZZ_THAT(asparse_dense_create(&b, m, n, dtype) == ASPARSE_OK);
  fuzz_check_status(asparse_dense_read(fuzz_comm, path, 0, b));
  asparse_dense_destroy(&b);
}

#endif
