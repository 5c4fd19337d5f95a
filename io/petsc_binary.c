/* PETSc's binary matrices (MatView into a PETSCVIEWERBINARY; its manual, MatLoad): big-endian integers classid, rows,
 * columns, entries, the number of entries of each row, all column indices, all values. The file does not say how wide
 * integers and scalars are: both follow from where its objects end. */
#include <stdio.h>
#include <string.h>

#include "io/budget.h"
#include "io/importer.h"
#include "io/slab.h"

enum { VEC = 1211214, MAT = 1211216, IS = 1211218, CHUNK_BYTES = 1 << 16 };

typedef struct reader {
  asparse_input *input;
  int width, scalar; /* bytes of an integer, of a scalar */
  int64_t m, k, nnz;
  int64_t end;      /* of the matrix in the file */
  int64_t *row_ptr; /* [m + 1] */
} reader;

static uint64_t big(const unsigned char *p, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value = value << 8 | p[i];
  return value;
}

static int64_t integer(const unsigned char *p, int width) {
  return width == 4 ? (int32_t)(uint32_t)big(p, 4) : (int64_t)big(p, 8);
}

/* count integers from byte offset on. */
static asparse_status read_integers(const reader *r, int64_t offset, int64_t count, int64_t *to, const char *what) {
  unsigned char bytes[CHUNK_BYTES];
  const int64_t most = CHUNK_BYTES / r->width;
  for (int64_t done = 0; done < count; done += most) {
    int64_t n = count - done < most ? count - done : most;
    PASS(asparse_input_read(r->input, offset + done * r->width, bytes, n * r->width, what));
    for (int64_t i = 0; i < n; i++) to[done + i] = integer(bytes + i * r->width, r->width);
  }
  return ASPARSE_OK;
}

/* ---- widths ---------------------------------------------------------------------------------- */

/* Where the object at byte `at` ends with scalars of `scalar` bytes; -1: no object, or beyond the file. */
static int64_t object_end(const reader *r, int64_t at, int scalar) {
  int64_t h[4] = {0}, n = 0, bytes = 0;
  if (r->input->file_bytes - at < 2 * r->width || read_integers(r, at, 2, h, "header") != ASPARSE_OK) return -1;
  if (h[0] == MAT) {
    if (r->input->file_bytes - at < 4 * r->width || read_integers(r, at, 4, h, "header") != ASPARSE_OK) return -1;
    if (h[1] < 0 || h[2] < 0 || h[3] < 0 || __builtin_add_overflow(h[1], h[3], &n) ||
        __builtin_add_overflow(n, 4, &n) || __builtin_mul_overflow(n, r->width, &n) ||
        __builtin_mul_overflow(h[3], scalar, &bytes))
      return -1;
  } else if (h[0] == VEC || h[0] == IS) {
    n = 2 * r->width;
    if (h[1] < 0 || __builtin_mul_overflow(h[1], h[0] == VEC ? scalar : r->width, &bytes)) return -1;
  } else {
    return -1;
  }
  if (__builtin_add_overflow(n, bytes, &n) || n > r->input->file_bytes - at) return -1;
  return at + n;
}

/* Do objects with such scalars follow each other to the end of the file? */
static bool fits(const reader *r, int scalar) {
  int64_t at = 0;
  while (at >= 0 && at < r->input->file_bytes) at = object_end(r, at, scalar);
  return at >= 0;
}

/* Double or a pair of floats? The second halves of doubles are 0 or arbitrary bits. As imaginary parts they are of a
 * size like that of the real parts, and often short. One that is not speaks against pairs; near ones are evidence, in
 * bits: 2 for the size (1 in 6 arbitrary words), 8 more for as many trailing zeros, unless the double is a float
 * widened, whose second half ends in 29 zeros. A matrix of pairs whose imaginary parts are all 0 cannot be told from
 * one of doubles. */
static asparse_status are_pairs(const reader *r, bool *pairs) {
  enum { SAMPLE = 4096, ENOUGH = 16, NEAR = 20 /* in powers of 2 */ };
  int64_t words[SAMPLE], n = r->nnz < SAMPLE ? r->nnz : SAMPLE;
  int evidence = 0;
  reader eight = *r;
  eight.width = 8;
  PASS(read_integers(&eight, r->end - 8 * r->nnz, n, words, "values"));
  for (int64_t i = 0; i < n; i++) {
    const uint32_t first = (uint32_t)((uint64_t)words[i] >> 32), second = (uint32_t)words[i];
    if (first << 1 == 0 || second << 1 == 0) continue;
    const int difference = (int)(first >> 23 & 255) - (int)(second >> 23 & 255);
    if (difference > NEAR || difference < -NEAR) return ASPARSE_OK;
    evidence += second << 24 == 0 && second << 3 != 0 ? 10 : 2;
  }
  *pairs = evidence >= ENOUGH;
  return ASPARSE_OK;
}

static asparse_status find_scalar(reader *r) {
  static const int scalars[] = {8, 4, 16};
  const asparse_input *input = r->input;
  bool pairs = false;
  for (size_t i = 0; i < sizeof scalars / sizeof *scalars && !r->scalar; i++) {
    if (fits(r, scalars[i])) r->scalar = scalars[i];
  }
  if (!r->scalar)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "%s: a matrix of %lld × %lld with %lld entries and %d-byte integers does not end "
                        "with the file, which has %lld bytes; it is cut off or no matrix",
                        input->name, (long long)r->m, (long long)r->k, (long long)r->nnz, r->width,
                        (long long)input->file_bytes);
  r->end = object_end(r, 0, r->scalar);
  if (r->scalar == 8) PASS(are_pairs(r, &pairs));
  if (r->scalar == 16 || pairs)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "%s: its values are complex, or look so (%d bytes each), which is not supported yet",
                        input->name, r->scalar);
  return ASPARSE_OK;
}

/* ---- matrix ---------------------------------------------------------------------------------- */

static asparse_status read_header(reader *r) {
  const asparse_input *input = r->input;
  unsigned char start[8];
  int64_t h[4];
  PASS(asparse_input_read(input, 0, start, 8, "the header"));
  r->width = big(start, 4) == 0 ? 8 : 4;
  if (integer(start, r->width) != MAT)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "%s begins with %lld, the number of another object of PETSc (%d is a vector); "
                        "expected %d, a matrix",
                        input->name, (long long)integer(start, r->width), VEC, MAT);
  PASS(read_integers(r, 0, 4, h, "the header"));
  if (h[3] == -1) return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: it is a dense matrix; expected a sparse one", input->name);
  if (h[1] < 0 || h[2] < 0 || h[3] < 0)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: its header says %lld × %lld with %lld entries; expected sizes ≥ 0",
                        input->name, (long long)h[1], (long long)h[2], (long long)h[3]);
  r->m = h[1];
  r->k = h[2];
  r->nnz = h[3];
  return find_scalar(r);
}

static asparse_status read_row_lengths(reader *r) {
  asparse_status status = ASPARSE_OK;
  PASS(asparse_budget_allows(r->input->name, 8 * (r->m + 1), "its row lengths"));
  ALLOC(r->row_ptr, r->m + 1);
  r->row_ptr[0] = 0;
  TRY(read_integers(r, 4 * r->width, r->m, r->row_ptr + 1, "row lengths"));
  for (int64_t i = 0; i < r->m; i++) {
    int64_t length = r->row_ptr[i + 1], left = r->nnz - r->row_ptr[i];
    TRY_THAT(length >= 0 && length <= left, ASPARSE_ERR_DATA,
             "%s, byte %lld: row %lld has %lld entries; expected 0 to %lld, what is left of %lld", r->input->name,
             (long long)((4 + i) * r->width), (long long)i, (long long)length, (long long)left, (long long)r->nnz);
    r->row_ptr[i + 1] += r->row_ptr[i];
  }
  TRY_THAT(r->row_ptr[r->m] == r->nnz, ASPARSE_ERR_DATA, "%s: its rows have %lld entries together; expected %lld",
           r->input->name, (long long)r->row_ptr[r->m], (long long)r->nnz);
cleanup:
  return status;
}

static asparse_status read_columns(const reader *r, int64_t first, asparse_csr *a) {
  const int64_t offset = (4 + r->m + first) * r->width, nnz = asparse_csr_nnz_local(a);
  PASS(read_integers(r, offset, nnz, a->col_idx, "column indices"));
  for (int64_t e = 0; e < nnz; e++) {
    if ((uint64_t)a->col_idx[e] >= (uint64_t)r->k)
      return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s, byte %lld: column index %lld of entry %lld; expected 0 to %lld",
                          r->input->name, (long long)(offset + e * r->width), (long long)a->col_idx[e],
                          (long long)(first + e), (long long)r->k - 1);
  }
  return ASPARSE_OK;
}

static asparse_status read_values(const reader *r, int64_t first, asparse_csr *a) {
  const int64_t nnz = asparse_csr_nnz_local(a), offset = r->end - (r->nnz - first) * r->scalar;
  unsigned char *bytes = a->values;
  PASS(asparse_input_read(r->input, offset, bytes, nnz * r->scalar, "values"));
#pragma omp parallel for schedule(static)
  for (int64_t e = 0; e < nnz; e++) {
    const uint64_t wide = big(bytes + e * r->scalar, r->scalar);
    const uint32_t narrow = (uint32_t)wide;
    if (r->scalar == 8) memcpy(bytes + e * 8, &wide, 8);
    else memcpy(bytes + e * 4, &narrow, 4);
  }
  return ASPARSE_OK;
}

static asparse_status import(asparse_input *input, const asparse_import_options *options, asparse_csr **out,
                             asparse_source *source) {
  asparse_status status = ASPARSE_OK;
  reader r = {.input = input};
  asparse_csr *a = NULL;
  (void)options;
  TRY_THAT(input->object[0] == '\0', ASPARSE_ERR_USAGE, "%s has no names, \"::%s\" cannot be chosen in it", input->name,
           input->object);
  TRY(asparse_input_seek(input));
  TRY(read_header(&r));
  TRY(read_row_lengths(&r));
  const int64_t begin = asparse_slab_begin(r.row_ptr, r.m, input->parts, input->part);
  const int64_t end = asparse_slab_begin(r.row_ptr, r.m, input->parts, input->part + 1);
  const int64_t first = r.row_ptr[begin], nnz = r.row_ptr[end] - first;
  TRY(asparse_budget_allows(input->name, (8 + r.scalar) * nnz + 8 * (end - begin), "the matrix"));
  TRY(asparse_csr_create(&a, r.m, r.k, begin, end - begin, nnz, r.scalar == 4 ? ASPARSE_FP32 : ASPARSE_FP64));
  for (int64_t i = 0; i <= end - begin; i++) a->row_ptr[i] = r.row_ptr[begin + i] - first;
  TRY(read_columns(&r, first, a));
  TRY(read_values(&r, first, a));
  TRY(asparse_csr_sort_rows(a));
  *source = (asparse_source){.format = "PETSc binary", .structure = "general", .stored_entries = r.nnz};
  strcpy(source->value_type, r.scalar == 4 ? "float32" : "float64");
  if (r.end < input->file_bytes) strcpy(source->note, "more objects follow the matrix in the file and were left out");
  *out = a;
  a = NULL;
cleanup:
  asparse_csr_destroy(&a);
  asparse_free(r.row_ptr);
  return status;
}

static asparse_match detect(const asparse_input *input) {
  const unsigned char *p = (const unsigned char *)input->head;
  if (input->head_length < 8) return ASPARSE_MATCH_NO;
  const uint64_t narrow = big(p, 4), wide = big(p, 8);
  bool petsc = (narrow >= VEC && narrow <= IS) || (wide >= VEC && wide <= IS);
  return petsc ? ASPARSE_MATCH_YES : ASPARSE_MATCH_NO;
}

const asparse_importer asparse_petsc_importer = {
    .name = "petsc", .title = "PETSc binary", .detect = detect, .read = import, .in_slabs = true};
