/* Sparse arrays of MATLAB 5 files (save -v6 and -v7), also those within structures and cells: "Problem.A". */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "io/budget.h"
#include "io/coordinates.h"
#include "io/importer.h"
#include "io/matlab.h"

enum { HEADER_BYTES = 128, TAG_BYTES = 8, MATRIX = 14, COMPRESSED = 15, MOST_DEPTH = 16, PATH_LENGTH = 256 };

typedef struct reader {
  asparse_input *input;
  bool swapped;
  unsigned char *bytes; /* [n_bytes] of the variable at hand, unpacked */
  int64_t n_bytes;
  unsigned char *chosen_bytes; /* of the variable that holds the chosen array */
  asparse_matlab_array chosen;
  char chosen_path[PATH_LENGTH], list[512];
  int n_sparse;
} reader;

static asparse_status damaged(const reader *r, int64_t offset, const char *what) {
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: the variable at byte %lld is damaged or cut off (%s)", r->input->name,
                      (long long)offset, what);
}

/* ---- variables ------------------------------------------------------------------------------- */

static asparse_status grow(reader *r, int64_t capacity) {
  asparse_status status = ASPARSE_OK;
  unsigned char *larger = NULL;
  TRY(asparse_budget_allows(r->input->name, capacity, "a variable"));
  ALLOC(larger, capacity);
  if (r->n_bytes > 0) memcpy(larger, r->bytes, (size_t)r->n_bytes);
  asparse_free(r->bytes);
  r->bytes = larger;
cleanup:
  return status;
}

static asparse_status unpack(reader *r, int64_t offset, unsigned char *packed, int64_t n_packed) {
  asparse_status status = ASPARSE_OK;
  z_stream z = {.next_in = packed, .avail_in = (unsigned)n_packed};
  int64_t capacity = 4 * n_packed + 1024;
  int code = Z_OK;
  TRY_THAT(inflateInit(&z) == Z_OK, ASPARSE_ERR_MEMORY, "%s: no memory to unpack it", r->input->name);
  TRY(grow(r, capacity));
  while (code == Z_OK) {
    int64_t room = capacity - r->n_bytes;
    if (room == 0) {
      TRY(grow(r, 2 * capacity));
      capacity *= 2;
      continue;
    }
    const unsigned step = room < 1 << 30 ? (unsigned)room : 1u << 30;
    z.next_out = r->bytes + r->n_bytes;
    z.avail_out = step;
    code = inflate(&z, Z_NO_FLUSH);
    r->n_bytes += step - z.avail_out;
  }
  if (code != Z_STREAM_END) status = damaged(r, offset, z.msg ? z.msg : "its compressed data end too early");
cleanup:
  inflateEnd(&z);
  return status;
}

/* The contents of the variable at byte offset into r->bytes; *next is where the following one is. */
static asparse_status load_variable(reader *r, int64_t offset, int64_t *next, asparse_matlab_bytes *contents) {
  asparse_status status = ASPARSE_OK;
  unsigned char tag[TAG_BYTES], *packed = NULL;
  uint32_t words[2];
  TRY(asparse_input_read(r->input, offset, tag, TAG_BYTES, "a variable's tag"));
  memcpy(words, tag, TAG_BYTES);
  if (r->swapped) {
    words[0] = __builtin_bswap32(words[0]);
    words[1] = __builtin_bswap32(words[1]);
  }
  if ((words[0] != MATRIX && words[0] != COMPRESSED) || words[1] > r->input->file_bytes - offset - TAG_BYTES) {
    status = damaged(r, offset, "its tag is no array's, or it goes beyond the file");
    goto cleanup;
  }
  *next = offset + TAG_BYTES + words[1];
  FREE(r->bytes);
  r->n_bytes = 0;
  if (words[0] == MATRIX) {
    TRY(grow(r, words[1]));
    r->n_bytes = words[1];
    TRY(asparse_input_read(r->input, offset + TAG_BYTES, r->bytes, words[1], "a variable"));
    *contents = (asparse_matlab_bytes){r->bytes, r->bytes + r->n_bytes, r->swapped};
  } else {
    asparse_matlab_element e = {0};
    ALLOC(packed, (int64_t)words[1]);
    TRY(asparse_input_read(r->input, offset + TAG_BYTES, packed, words[1], "a variable"));
    TRY(unpack(r, offset, packed, words[1]));
    *contents = (asparse_matlab_bytes){r->bytes, r->bytes + r->n_bytes, r->swapped};
    if (!asparse_matlab_next(contents, &e) || e.type != MATRIX) status = damaged(r, offset, "no array in it");
    *contents = (asparse_matlab_bytes){e.data, e.data + e.bytes, r->swapped};
  }
cleanup:
  asparse_free(packed);
  return status;
}

/* ---- finding sparse arrays -------------------------------------------------------------------- */

/* The one that is asked for; else the first one, and Problem.A of the SuiteSparse Collection before all others. */
static void offer(reader *r, const asparse_matlab_array *a, const char *path) {
  const char *wanted = r->input->object;
  size_t used = strlen(r->list);
  snprintf(r->list + used, sizeof r->list - used, "%s%s", r->n_sparse ? ", " : "", path);
  r->n_sparse++;
  if (wanted[0] ? strcmp(path, wanted) != 0 || r->chosen_path[0] : r->chosen_path[0] && strcmp(path, "Problem.A") != 0)
    return;
  if (r->chosen_bytes != r->bytes) asparse_free(r->chosen_bytes);
  r->chosen_bytes = r->bytes;
  r->chosen = *a;
  snprintf(r->chosen_path, sizeof r->chosen_path, "%s", path);
}

static bool walk(reader *r, asparse_matlab_bytes contents, const char *path, int depth);

/* Arrays that follow each other: fields of structures, whose names repeat, or cells, which have none. */
static bool walk_all(reader *r, asparse_matlab_bytes *b, int64_t count, const asparse_matlab_element *names,
                     int64_t name_bytes, const char *path, int depth) {
  asparse_matlab_element e;
  char child[PATH_LENGTH];
  const int64_t n_names = name_bytes > 0 ? names->bytes / name_bytes : 1;
  for (int64_t i = 0; i < count; i++) {
    for (int64_t f = 0; f < n_names; f++) {
      if (!asparse_matlab_next(b, &e) || e.type != MATRIX) return false;
      const char *name = name_bytes > 0 ? (const char *)names->data + f * name_bytes : "";
      snprintf(child, sizeof child, "%.150s%s%.*s", path, *name ? "." : "", (int)name_bytes, name);
      if (e.bytes > 0 && !walk(r, (asparse_matlab_bytes){e.data, e.data + e.bytes, b->swapped}, child, depth + 1))
        return false;
    }
  }
  return true;
}

/* Offers every sparse array within; path NULL: the array's own name. False: damaged. */
static bool walk(reader *r, asparse_matlab_bytes contents, const char *path, int depth) {
  asparse_matlab_array a;
  asparse_matlab_element length, names;
  if (depth > MOST_DEPTH || !asparse_matlab_open(contents, &a)) return false;
  if (!path) path = a.name;
  if (a.class == ASPARSE_MATLAB_SPARSE) offer(r, &a, path);
  if (a.class == ASPARSE_MATLAB_CELL) return walk_all(r, &a.rest, a.count, NULL, 0, path, depth);
  if (a.class != ASPARSE_MATLAB_STRUCT) return true;
  if (!asparse_matlab_next(&a.rest, &length) || asparse_matlab_count(&length) != 1 ||
      !asparse_matlab_next(&a.rest, &names))
    return false;
  const double name_bytes = asparse_matlab_number(&a.rest, &length, 0);
  if (!(name_bytes >= 1 && name_bytes <= 64)) return false;
  if (names.bytes < name_bytes) return true; /* no fields */
  return walk_all(r, &a.rest, a.count, &names, (int64_t)name_bytes, path, depth);
}

static asparse_status find_sparse(reader *r) {
  const asparse_input *input = r->input;
  for (int64_t offset = HEADER_BYTES; offset + TAG_BYTES <= input->file_bytes;) {
    const int64_t start = offset;
    asparse_matlab_bytes contents = {NULL, NULL, false};
    PASS(load_variable(r, start, &offset, &contents));
    const bool fits = contents.at == contents.end || walk(r, contents, NULL, 0);
    if (r->chosen_bytes == r->bytes) r->bytes = NULL;
    if (!fits) return damaged(r, start, "its parts do not fit");
  }
  if (r->n_sparse == 0)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s holds no sparse array (in MATLAB: A = sparse(A))", input->name);
  if (input->object[0] && !r->chosen_path[0])
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s holds no sparse array \"%s\"; it holds: %s", input->name, input->object,
                        r->list);
  if (!input->object[0] && r->n_sparse > 1 && strcmp(r->chosen_path, "Problem.A") != 0)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s holds %d sparse arrays: %s; name one of them as %s::NAME", input->name,
                        r->n_sparse, r->list, input->name);
  return ASPARSE_OK;
}

/* ---- the array ------------------------------------------------------------------------------- */

/* e: row indices from 0, column pointers, values. False when a pointer or an index of column j leaves its range. */
static bool take_column(const asparse_matlab_bytes *b, const asparse_matlab_element e[3], int64_t j,
                        asparse_coordinates *c) {
  const double begin = asparse_matlab_number(b, &e[1], j), end = asparse_matlab_number(b, &e[1], j + 1);
  if (!(begin <= end && begin >= 0 && end <= (double)c->n)) return false;
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
    const double row = asparse_matlab_number(b, &e[0], i);
    if (!(row >= 0 && row < (double)c->m)) return false;
    c->rows[i] = (int64_t)row;
    c->cols[i] = j;
    c->values[i] = asparse_matlab_number(b, &e[2], i);
  }
  return true;
}

static asparse_status fail_column(const reader *r, const asparse_matlab_element e[3], int64_t j,
                                  const asparse_coordinates *c) {
  const asparse_matlab_bytes *b = &r->chosen.rest;
  const double begin = asparse_matlab_number(b, &e[1], j), end = asparse_matlab_number(b, &e[1], j + 1);
  if (!(begin <= end && begin >= 0 && end <= (double)c->n))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "%s, %s: pointers of column %lld are %.17g and %.17g; expected no less than "
                        "before, 0 to %lld",
                        r->input->name, r->chosen_path, (long long)j, begin, end, (long long)c->n);
  int64_t i = (int64_t)begin;
  double row = asparse_matlab_number(b, &e[0], i);
  while (row >= 0 && row < (double)c->m) row = asparse_matlab_number(b, &e[0], ++i);
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s, %s: row index %lld is %.17g; expected 0 to %lld", r->input->name,
                      r->chosen_path, (long long)i, row, (long long)c->m - 1);
}

static asparse_status take_columns(const reader *r, const asparse_matlab_element e[3], asparse_coordinates *c) {
  int64_t bad = c->k;
#pragma omp parallel for schedule(dynamic, 1024) reduction(min : bad)
  for (int64_t j = 0; j < c->k; j++) {
    if (j < bad && !take_column(&r->chosen.rest, e, j, c)) bad = j;
  }
  return bad == c->k ? ASPARSE_OK : fail_column(r, e, bad, c);
}

static asparse_status read_sparse(reader *r, asparse_csr **a) {
  asparse_status status = ASPARSE_OK;
  asparse_matlab_array *array = &r->chosen;
  asparse_matlab_bytes rest = array->rest;
  asparse_matlab_element e[3];
  asparse_coordinates c = {0};
  TRY_THAT(!array->complex, ASPARSE_ERR_DATA, "%s, %s: complex values are not supported yet", r->input->name,
           r->chosen_path);
  const bool whole = array->n_dims == 2 && asparse_matlab_next(&rest, &e[0]) && asparse_matlab_next(&rest, &e[1]) &&
                     asparse_matlab_next(&rest, &e[2]) && asparse_matlab_count(&e[1]) == array->n + 1;
  TRY_THAT(whole, ASPARSE_ERR_DATA, "%s, %s: row indices, pointers of %lld columns or values are not whole",
           r->input->name, r->chosen_path, (long long)array->n);
  const double nnz = asparse_matlab_number(&rest, &e[1], array->n);
  /* MATLAB writes logical values as a byte each and says that they are doubles. */
  if (array->logical && nnz > (double)asparse_matlab_count(&e[2]) && nnz <= (double)e[2].bytes)
    e[2].type = ASPARSE_MATLAB_UINT8;
  TRY_THAT(nnz >= 0 && nnz <= (double)asparse_matlab_count(&e[0]) && nnz <= (double)asparse_matlab_count(&e[2]) &&
               asparse_matlab_number(&rest, &e[1], 0) == 0,
           ASPARSE_ERR_DATA, "%s, %s: the pointers say %.17g entries, but there are %lld row indices and %lld values",
           r->input->name, r->chosen_path, nnz, (long long)asparse_matlab_count(&e[0]),
           (long long)asparse_matlab_count(&e[2]));
  TRY(asparse_coordinates_create(r->input->name, (int64_t)nnz, true, &c));
  c.m = array->m;
  c.k = array->n;
  TRY(take_columns(r, e, &c));
  TRY(asparse_coordinates_to_csr(r->input->name, &c, a));
cleanup:
  asparse_coordinates_free(&c);
  return status;
}

static asparse_status check_version(const asparse_input *input, bool *swapped) {
  const unsigned char *h = (const unsigned char *)input->head;
  if (input->head_length < HEADER_BYTES || strncmp(input->head, "MATLAB 5.0 MAT-file", 19) != 0) {
    if (input->head_length > 10 && strncmp(input->head, "MATLAB 7.3", 10) == 0)
      return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s is a MATLAB 7.3 file, which is HDF5 and needs no conversion",
                          input->name);
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "%s is no MATLAB 5 file (older ones are not read); expected one saved with -v6 "
                        "or -v7",
                        input->name);
  }
  const bool little = h[126] == 'I' && h[127] == 'M';
  if (!little && !(h[126] == 'M' && h[127] == 'I'))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s, byte 126: no mark of the byte order (IM or MI)", input->name);
  *swapped = !little;
  return ASPARSE_OK;
}

static asparse_status import(asparse_input *input, const asparse_import_options *options, asparse_csr **a,
                             asparse_source *source) {
  asparse_status status = ASPARSE_OK;
  reader r = {.input = input};
  (void)options;
  TRY(check_version(input, &r.swapped));
  TRY(asparse_input_seek(input));
  TRY(find_sparse(&r));
  TRY(read_sparse(&r, a));
  *source = (asparse_source){.format = "MATLAB 5", .structure = "general"};
  strcpy(source->value_type, r.chosen.logical ? "logical" : "float64");
  source->stored_entries = asparse_csr_nnz_local(*a) + (*a)->n_duplicates;
cleanup:
  asparse_free(r.bytes);
  asparse_free(r.chosen_bytes);
  return status;
}

static asparse_match detect(const asparse_input *input) {
  bool matlab = strncmp(input->head, "MATLAB ", input->head_length < 7 ? 0 : 7) == 0 && input->head_length >= 7;
  return matlab || asparse_input_is_named(input, ".mat") ? ASPARSE_MATCH_YES : ASPARSE_MATCH_NO;
}

const asparse_importer asparse_mat5_importer = {.name = "mat5", .title = "MATLAB 5", .detect = detect, .read = import};
