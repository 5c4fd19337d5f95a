/* Formats that asparse_convert reads. FUZZ_IMPORTER: which of them; where it is not defined, the content decides:
 * detection, and the decompression of gzip, xz and zstd. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csr.h"
#include "fuzz/harness.h"
#include "fuzz/zip_repair.h"
#include "io/codec.h"
#include "io/importer.h"

#ifdef FUZZ_IMPORTER
static const asparse_importer *const importer = &FUZZ_IMPORTER;
#else
static const asparse_importer *const importer = NULL;
#endif

/* Rows first_row … of the matrix `whole`, and so its entries first_entry …, are those of a. */
static void check_rows(const asparse_csr *a, const asparse_csr *whole, int64_t first_row, int64_t first_entry) {
  const size_t nnz = (size_t)asparse_csr_nnz_local(a), bytes = asparse_dtype_size(a->dtype);
  FUZZ_THAT(a->m == whole->m && a->k == whole->k && a->dtype == whole->dtype && a->row_begin == first_row);
  for (int64_t i = 0; i <= a->n_rows; i++) FUZZ_THAT(a->row_ptr[i] + first_entry == whole->row_ptr[first_row + i]);
  FUZZ_THAT(memcmp(a->col_idx, whole->col_idx + first_entry, nnz * sizeof *a->col_idx) == 0);
  FUZZ_THAT(memcmp(a->values, (char *)whole->values + (size_t)first_entry * bytes, nnz * bytes) == 0);
}

/* The slabs of several ranks, one after the other, are the whole matrix. */
static void check_slabs(const char *path, const asparse_import_options *options, const asparse_csr *whole) {
  enum { PARTS = 3 };
  int64_t row = 0, entry = 0;
  for (int part = 0; part < PARTS; part++) {
    asparse_input input;
    asparse_csr *a = NULL;
    asparse_source source;
    FUZZ_THAT(asparse_input_open(path, &input) == ASPARSE_OK);
    input.part = part;
    input.parts = PARTS;
    FUZZ_THAT(importer->read(&input, options, &a, &source) == ASPARSE_OK);
    fuzz_check_csr(a, false);
    check_rows(a, whole, row, entry);
    row += a->n_rows;
    entry += asparse_csr_nnz_local(a);
    asparse_csr_destroy(&a);
    asparse_input_close(&input);
  }
  FUZZ_THAT(row == whole->m && entry == whole->nnz);
}

/* The text with a comment after each line, but for blank ones before a banner, so long that it is read in pieces, one a
 * thread: the matrix is the same. For some inputs only, since it takes longer. */
static void check_pieces(const uint8_t *data, size_t size, const asparse_import_options *options,
                         const asparse_csr *whole) {
  enum { PIECES = 3, BYTES = 4 * 64 << 10 };
  size_t n_lines = 0, n = 0;
  for (size_t i = 0; i < size; i++) n_lines += data[i] == '\n';
  if (n_lines == 0 || size > BYTES || size % 8 != 0 || asparse_codec_detect(data, size)) return;
  const size_t comment = BYTES / n_lines + 2;
  char *text = malloc(size + n_lines * comment);
  FUZZ_THAT(text);
  bool begun = false;
  for (size_t i = 0; i < size; i++) {
    text[n++] = (char)data[i];
    begun = begun || data[i] > ' ';
    if (data[i] != '\n' || !begun) continue;
    memset(text + n, '%', comment - 1);
    n += comment;
    text[n - 1] = '\n';
  }
  asparse_csr *a = NULL;
  asparse_source source;
  const int threads = omp_get_max_threads();
  omp_set_num_threads(PIECES);
  FUZZ_THAT(asparse_import(fuzz_comm, fuzz_file(text, n), options, &a, &source) == ASPARSE_OK);
  omp_set_num_threads(threads);
  FUZZ_THAT(a->nnz == whole->nnz);
  check_rows(a, whole, 0, 0);
  asparse_csr_destroy(&a);
  free(text);
}

/* Reads path, which holds data. */
static asparse_status read_matrix(const char *path, const asparse_import_options *options, const uint8_t *data,
                                  size_t size) {
  const bool has_comments =
      importer == &asparse_mtx_importer || importer == &asparse_metis_importer || importer == &asparse_edges_importer;
  asparse_csr *a = NULL;
  asparse_source source;
  asparse_error_clear();
  asparse_status status = asparse_import(fuzz_comm, path, options, &a, &source);
  fuzz_check_status(status);
  FUZZ_THAT((status == ASPARSE_OK) == (a != NULL));
  if (!a) return status;
  fuzz_check_csr(a, true);
  FUZZ_THAT(source.format[0] && source.value_type[0] && source.structure[0] && source.stored_entries >= 0);
  if (importer && importer->in_slabs) check_slabs(path, options, a);
  if (has_comments) check_pieces(data, size, options, a);
  asparse_csr_destroy(&a);
  return status;
}

/* The input; of an archive, with its checksums made right. */
static const char *input_file(const uint8_t *data, size_t size) {
  if (importer != &asparse_npz_importer || size == 0) return fuzz_file(data, size);
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
  const char *path = input_file(data, size);
  asparse_import_options options = {.from = importer ? importer->name : NULL};
  if (!importer) asparse_path_is_hdf5(path);
  asparse_status status = read_matrix(path, &options, data, size);
  if (status == ASPARSE_ERR_USAGE) { /* one of several matrices; in our own files there is one of this name */
    snprintf(named, sizeof named, "%s::a", path);
    read_matrix(named, &options, data, size);
  }
  if (importer == &asparse_edges_importer) {
    options.ids = ASPARSE_IDS_COMPACT;
    read_matrix(fuzz_file(data, size), &options, data, size);
  }
}
