/* What the tests of Matrix Market files share: texts saved to a temporary file, read back or refused. */
#ifndef MTX_FIXTURE_H
#define MTX_FIXTURE_H

#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "io/io.h"

static char folder[64], path[128];

static inline int make_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/test_mtx_XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/matrix.mtx", folder);
  return 0;
}

static inline int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

static inline void save(const void *bytes, size_t length) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, length, file), length);
  assert_int_equal(fclose(file), 0);
}

static inline void save_text(const char *text) { save(text, strlen(text)); }

static inline void save_gzip(const void *bytes, size_t length) {
  gzFile file = gzopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(gzwrite(file, bytes, (unsigned)length), length);
  assert_int_equal(gzclose(file), Z_OK);
}

static inline asparse_csr *read_saved(asparse_source *source) {
  asparse_csr *a = NULL;
  asparse_status status = asparse_mtx_read(path, &a, source);
  if (status != ASPARSE_OK) fail_msg("%s", asparse_error_message());
  assert_int_equal(a->row_begin, 0);
  assert_int_equal(a->n_rows, a->m);
  assert_int_equal(a->dtype, ASPARSE_FP64);
  assert_int_equal(a->row_ptr[0], 0);
  assert_int_equal(a->nnz, a->row_ptr[a->m]);
  for (int64_t i = 0; i < a->m; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      assert_in_range(a->col_idx[e], 0, a->k - 1);
      if (e > a->row_ptr[i]) assert_true(a->col_idx[e - 1] < a->col_idx[e]);
    }
  }
  return a;
}

/* The matrix as text: "m×k: (i,j)=v …", indices from 1. */
static inline void describe(const asparse_csr *a, char *text, size_t size) {
  int used = snprintf(text, size, "%lldx%lld:", (long long)a->m, (long long)a->k);
  for (int64_t i = 0; i < a->m; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++)
      used += snprintf(text + used, size - (size_t)used, " (%lld,%lld)=%.17g", (long long)i + 1,
                       (long long)a->col_idx[e] + 1, ((double *)a->values)[e]);
  }
}

static inline void expect_saved(const char *expected) {
  char found[1024];
  asparse_csr *a = read_saved(NULL);
  describe(a, found, sizeof found);
  assert_string_equal(found, expected);
  asparse_csr_destroy(&a);
}

static inline void expect(const char *text, const char *expected) {
  save_text(text);
  expect_saved(expected);
}

/* The file must be refused with `code`, in words that contain each of parts. */
static inline void refuse_saved(asparse_status code, const char *part, const char *other_part) {
  asparse_csr *a = NULL;
  int64_t blocks = asparse_memory_live_blocks();
  asparse_error_clear();
  assert_int_equal(asparse_mtx_read(path, &a, NULL), code);
  assert_null(a);
  assert_int_equal(asparse_memory_live_blocks(), blocks);
  if (!strstr(asparse_error_message(), part) || !strstr(asparse_error_message(), other_part))
    fail_msg("\"%s\" does not say \"%s\" and \"%s\"", asparse_error_message(), part, other_part);
  asparse_error_clear();
}

static inline void refuse(const char *text, const char *part, const char *other_part) {
  save_text(text);
  refuse_saved(ASPARSE_ERR_DATA, part, other_part);
}

#define REAL "%%MatrixMarket matrix coordinate real general\n"
#define SYMMETRIC "%%MatrixMarket matrix coordinate real symmetric\n"
#define SKEW "%%MatrixMarket matrix coordinate real skew-symmetric\n"
#define INTEGER "%%MatrixMarket matrix coordinate integer general\n"
#define PATTERN "%%MatrixMarket matrix coordinate pattern general\n"
#define ARRAY "%%MatrixMarket matrix array real general\n"

static inline uint64_t next_random(uint64_t *seed) { return asparse_mix64((*seed)++); }

typedef struct triplet {
  int row, col;
  double value;
} triplet;

enum { LARGE_M = 173, LARGE_K = 301, LARGE_ENTRIES = 60000 };

/* Text of a matrix with many duplicates in no order, blank lines and comments between, and the sum of
 * its entries in the order of the text. */
static inline char *large_text(const char *symmetry, double *dense, int m, int k) {
  char *text = malloc(LARGE_ENTRIES * 64);
  char *end =
      text + sprintf(text, "%%%%MatrixMarket matrix coordinate real %s\n%d %d %d\n", symmetry, m, k, LARGE_ENTRIES);
  uint64_t seed = 7;
  memset(dense, 0, sizeof *dense * (size_t)m * (size_t)k);
  for (int e = 0; e < LARGE_ENTRIES; e++) {
    triplet t = {(int)(next_random(&seed) % (uint64_t)m), (int)(next_random(&seed) % (uint64_t)k),
                 (double)next_random(&seed) * 0x1p-40 - 1e5};
    bool mirrored = strcmp(symmetry, "symmetric") == 0;
    if (mirrored && t.row < t.col) t = (triplet){t.col, t.row, t.value};
    if (e % 7 == 0) end += sprintf(end, e % 2 ? "\n" : "%% remark\n");
    end += sprintf(end, "%d %d %.17g%s", t.row + 1, t.col + 1, t.value, e % 3 ? "\n" : "\r\n");
    dense[t.row * k + t.col] += t.value;
    if (mirrored && t.row != t.col) dense[t.col * k + t.row] += t.value;
  }
  return text;
}

#endif
