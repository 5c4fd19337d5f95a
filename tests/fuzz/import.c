/* Formats that asparse_convert reads. FUZZ_FROM: the format's name; FUZZ_IMPORTER: its importer. Without them, the
 * content decides: detection, and the decompression of gzip, xz and zstd. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csr.h"
#include "fuzz/harness.h"
#include "fuzz/zip_repair.h"
#include "io/importer.h"

#ifdef FUZZ_IMPORTER
/* The slabs of several ranks, one after the other, are the whole matrix. */
static void check_slabs(const char *path, const asparse_import_options *options, const asparse_csr *whole) {
  enum { PARTS = 3 };
  int64_t row = 0, entry = 0;
  if (!FUZZ_IMPORTER.in_slabs) return;
  for (int part = 0; part < PARTS; part++) {
    asparse_input input;
    asparse_csr *a = NULL;
    asparse_source source;
    FUZZ_THAT(asparse_input_open(path, &input) == ASPARSE_OK);
    input.part = part;
    input.parts = PARTS;
    FUZZ_THAT(FUZZ_IMPORTER.read(&input, options, &a, &source) == ASPARSE_OK);
    fuzz_check_csr(a, false);
    const int64_t nnz = asparse_csr_nnz_local(a), bytes = (int64_t)asparse_dtype_size(a->dtype);
    FUZZ_THAT(a->m == whole->m && a->k == whole->k && a->row_begin == row && a->dtype == whole->dtype);
    for (int64_t i = 0; i <= a->n_rows; i++) FUZZ_THAT(a->row_ptr[i] + entry == whole->row_ptr[row + i]);
    FUZZ_THAT(memcmp(a->col_idx, whole->col_idx + entry, (size_t)nnz * sizeof *a->col_idx) == 0);
    FUZZ_THAT(memcmp(a->values, (char *)whole->values + entry * bytes, (size_t)(nnz * bytes)) == 0);
    row += a->n_rows;
    entry += nnz;
    asparse_csr_destroy(&a);
    asparse_input_close(&input);
  }
  FUZZ_THAT(row == whole->m && entry == whole->nnz);
}
#define FUZZ_OPTIONS                                                                                                   \
  { .from = FUZZ_FROM }
#else
static void check_slabs(const char *path, const asparse_import_options *options, const asparse_csr *whole) {
  (void)path, (void)options, (void)whole;
}
#define FUZZ_OPTIONS                                                                                                   \
  { .from = NULL }
#endif

static asparse_status read_matrix(const char *path, const asparse_import_options *options) {
  asparse_csr *a = NULL;
  asparse_source source;
  asparse_error_clear();
  asparse_status status = asparse_import(fuzz_comm, path, options, &a, &source);
  fuzz_check_status(status);
  FUZZ_THAT((status == ASPARSE_OK) == (a != NULL));
  if (!a) return status;
  fuzz_check_csr(a, true);
  FUZZ_THAT(source.format[0] && source.value_type[0] && source.structure[0] && source.stored_entries >= 0);
  check_slabs(path, options, a);
  asparse_csr_destroy(&a);
  return status;
}

/* The input; of an archive, with its checksums made right. */
static const char *input_file(const uint8_t *data, size_t size, bool is_zip) {
  if (!is_zip || size == 0) return fuzz_file(data, size);
  uint8_t *repaired = malloc(size);
  FUZZ_THAT(repaired);
  memcpy(repaired, data, size);
  fuzz_repair_zip(repaired, size);
  const char *path = fuzz_file(repaired, size);
  free(repaired);
  return path;
}

void fuzz_one(const uint8_t *data, size_t size) {
  char named[300];
  asparse_import_options options = FUZZ_OPTIONS;
  const char *path = input_file(data, size, options.from && strcmp(options.from, "npz") == 0);
  if (!options.from) asparse_path_is_hdf5(path);
  asparse_status status = read_matrix(path, &options);
  if (status == ASPARSE_ERR_USAGE) { /* one of several matrices; in our own files there is one of this name */
    snprintf(named, sizeof named, "%s::a", path);
    read_matrix(named, &options);
  }
  if (options.from && strcmp(options.from, "edges") == 0) {
    options.ids = ASPARSE_IDS_COMPACT;
    read_matrix(path, &options);
  }
}
