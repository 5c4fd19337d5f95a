/* Formats that asparse_convert reads. FUZZ_FROM: the format's name; FUZZ_IMPORTER: its importer. Without them, the
 * content decides: detection, and the decompression of gzip, xz and zstd. */
#include <omp.h>
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

#ifdef FUZZ_COMMENT
static void check_equal(const asparse_csr *a, const asparse_csr *b) {
  FUZZ_THAT(a->m == b->m && a->k == b->k && a->nnz == b->nnz && a->dtype == b->dtype);
  FUZZ_THAT(memcmp(a->row_ptr, b->row_ptr, (size_t)(a->m + 1) * sizeof *a->row_ptr) == 0);
  FUZZ_THAT(memcmp(a->col_idx, b->col_idx, (size_t)a->nnz * sizeof *a->col_idx) == 0);
  FUZZ_THAT(memcmp(a->values, b->values, (size_t)a->nnz * asparse_dtype_size(a->dtype)) == 0);
}

/* The text with a comment after each line, so long that it is read in pieces, one a thread: the matrix is the same.
 * For some inputs only, since it takes longer. */
static void check_pieces(const uint8_t *data, size_t size, const asparse_import_options *options, const asparse_csr *whole) {
  enum { PIECES = 3, BYTES = 4 * 64 << 10 };
  size_t n_lines = 0, n = 0;
  for (size_t i = 0; i < size; i++) n_lines += data[i] == '\n';
  if (n_lines == 0 || size > BYTES || size % 8 != 0) return;
  const size_t comment = BYTES / n_lines + 2;
  char *text = malloc(size + n_lines * comment);
  FUZZ_THAT(text);
  for (size_t i = 0; i < size; i++) {
    text[n++] = (char)data[i];
    if (data[i] != '\n') continue;
    memset(text + n, FUZZ_COMMENT, comment - 1);
    n += comment;
    text[n - 1] = '\n';
  }
  asparse_csr *a = NULL;
  asparse_source source;
  const int threads = omp_get_max_threads();
  omp_set_num_threads(PIECES);
  FUZZ_THAT(asparse_import(fuzz_comm, fuzz_file(text, n), options, &a, &source) == ASPARSE_OK);
  omp_set_num_threads(threads);
  check_equal(a, whole);
  asparse_csr_destroy(&a);
  free(text);
}
#else
static void check_pieces(const uint8_t *data, size_t size, const asparse_import_options *options, const asparse_csr *whole) {
  (void)data, (void)size, (void)options, (void)whole;
}
#endif

/* The file at path holds data. */
static asparse_status read_matrix(const char *path, const asparse_import_options *options, const uint8_t *data, size_t size) {
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
  check_pieces(data, size, options, a);
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
  asparse_status status = read_matrix(path, &options, data, size);
  if (status == ASPARSE_ERR_USAGE) { /* one of several matrices; in our own files there is one of this name */
    snprintf(named, sizeof named, "%s::a", path);
    read_matrix(named, &options, data, size);
  }
  if (options.from && strcmp(options.from, "edges") == 0) {
    options.ids = ASPARSE_IDS_COMPACT;
    read_matrix(fuzz_file(data, size), &options, data, size);
  }
}
