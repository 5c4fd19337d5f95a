/* scipy.sparse.save_npz: a zip archive of arrays "format", "shape", "data", and "indices", "indptr" (csr, csc, bsr) or
 * "row", "col" (coo). Archives with several matrices give their arrays a prefix, "adj_data". */
#include <stdio.h>
#include <string.h>

#include "io/budget.h"
#include "io/coordinates.h"
#include "io/importer.h"
#include "io/npy.h"
#include "io/slab.h"

typedef struct reader {
  asparse_input *input;
  asparse_zip zip;
  char prefix[64];
  char format[8]; /* "csr", … */
  int64_t m, k;
  asparse_npy data; /* opened, not read */
  int64_t r, c;     /* bsr: rows and columns of a block; otherwise 1 */
  asparse_dtype dtype;
  int64_t *indptr; /* [n_ptr + 1] */
  int64_t n_ptr;
} reader;

static void reader_free(reader *r) {
  FREE(r->indptr);
  asparse_npy_close(&r->data);
  asparse_zip_close(&r->zip);
}

static asparse_status open_array(const reader *r, const char *name, asparse_npy *npy) {
  char full[96];
  snprintf(full, sizeof full, "%s%s", r->prefix, name);
  return asparse_npy_open(&r->zip, full, npy);
}

static bool has_array(const reader *r, const char *name) {
  char full[96];
  snprintf(full, sizeof full, "%s%s.npy", r->prefix, name);
  return asparse_zip_find(&r->zip, full) != NULL;
}

/* ---- which matrix ---------------------------------------------------------------------------- */

/* The prefixes with arrays "data" and "shape", as a list; *n of them, the first into r->prefix. */
static void find_prefixes(reader *r, char *list, size_t size, int *n) {
  static const char ending[] = "data.npy";
  char first[sizeof r->prefix] = "";
  size_t used = 0;
  for (int64_t i = 0; i < r->zip.n_members; i++) {
    const char *name = r->zip.members[i].name;
    size_t length = strlen(name);
    if (length < sizeof ending - 1 || strcmp(name + length - (sizeof ending - 1), ending) != 0) continue;
    length -= sizeof ending - 1;
    if (length >= sizeof r->prefix) continue;
    snprintf(r->prefix, sizeof r->prefix, "%.*s", (int)length, name);
    if (!has_array(r, "shape")) continue;
    if (length > 0 && strchr("_.-", name[length - 1])) length--;
    if (used < size) used += (size_t)snprintf(list + used, size - used, "%s%.*s", *n ? ", " : "", (int)length, name);
    if (++*n == 1) strcpy(first, r->prefix);
  }
  strcpy(r->prefix, first);
}

static asparse_status choose_matrix(reader *r) {
  static const char *const joints[] = {"_", ".", "-", ""};
  const char *object = r->input->object;
  char list[256] = "";
  int n = 0;
  find_prefixes(r, list, sizeof list, &n);
  if (n == 0)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "%s: no arrays \"data\" and \"shape\" among the %lld of this archive; expected "
                        "what scipy.sparse.save_npz writes",
                        r->input->name, (long long)r->zip.n_members);
  if (object[0] == '\0' && n == 1) return ASPARSE_OK;
  if (object[0] == '\0')
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s holds %d matrices: %s; name one of them as %s::NAME", r->input->name, n,
                        list, r->input->name);
  for (size_t i = 0; i < sizeof joints / sizeof *joints; i++) {
    snprintf(r->prefix, sizeof r->prefix, "%.60s%s", object, joints[i]);
    if (has_array(r, "data") && has_array(r, "shape")) return ASPARSE_OK;
  }
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s holds no matrix \"%s\"; it holds: %s", r->input->name, object, list);
}

/* ---- what it is ------------------------------------------------------------------------------- */

static asparse_status read_format(reader *r) {
  static const char *const known[] = {"csr", "csc", "coo", "bsr"};
  asparse_status status = ASPARSE_OK;
  asparse_npy npy = {.count = 0};
  if (has_array(r, "format")) {
    TRY(open_array(r, "format", &npy));
    TRY(asparse_npy_text(&npy, r->format, sizeof r->format));
  } else {
    strcpy(r->format, has_array(r, "indptr") ? "csr" : "coo");
  }
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(r->format, known[i]) == 0) goto cleanup;
  }
  status = ASPARSE_FAIL(ASPARSE_ERR_DATA,
                        "%s: its format is \"%s\"; expected csr, csc, coo or bsr (in Python: "
                        "save_npz(path, a.tocsr()))",
                        r->input->name, r->format);
cleanup:
  asparse_npy_close(&npy);
  return status;
}

static asparse_status read_shape(reader *r) {
  asparse_status status = ASPARSE_OK;
  asparse_npy npy;
  int64_t shape[2] = {0};
  TRY(open_array(r, "shape", &npy));
  TRY_THAT(npy.count == 2, ASPARSE_ERR_DATA, "%s: it has %lld elements; expected rows and columns", npy.label,
           (long long)npy.count);
  TRY(asparse_npy_integers(&npy, 2, shape));
  TRY_THAT(shape[0] >= 0 && shape[1] >= 0 && shape[0] < INT64_MAX / 16 && shape[1] < INT64_MAX / 16, ASPARSE_ERR_DATA,
           "%s: it is %lld × %lld; expected sizes ≥ 0", npy.label, (long long)shape[0], (long long)shape[1]);
  r->m = shape[0];
  r->k = shape[1];
cleanup:
  asparse_npy_close(&npy);
  return status;
}

static asparse_status open_data(reader *r) {
  const bool blocks = strcmp(r->format, "bsr") == 0;
  PASS(open_array(r, "data", &r->data));
  if (!r->data.number || r->data.n_dims != (blocks ? 3 : 1))
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: it has %d dimensions and type %s; expected numbers in %d", r->data.label,
                        r->data.n_dims, r->data.type, blocks ? 3 : 1);
  r->dtype = asparse_element_dtype(r->data.element);
  r->r = blocks ? r->data.shape[1] : 1;
  r->c = blocks ? r->data.shape[2] : 1;
  if (r->r < 1 || r->c < 1 || r->m % r->r != 0 || r->k % r->c != 0)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: blocks of %lld × %lld do not divide a matrix of %lld × %lld",
                        r->data.label, (long long)r->r, (long long)r->c, (long long)r->m, (long long)r->k);
  return ASPARSE_OK;
}

/* indptr of csr, csc (by columns), bsr (by block rows): from 0, monotone, within data. */
static asparse_status read_indptr(reader *r) {
  asparse_status status = ASPARSE_OK;
  asparse_npy npy;
  int64_t bad = -1;
  r->n_ptr = strcmp(r->format, "csc") == 0 ? r->k : r->m / r->r;
  TRY(open_array(r, "indptr", &npy));
  TRY_THAT(npy.count == r->n_ptr + 1, ASPARSE_ERR_DATA, "%s: it has %lld elements; expected %lld for %lld × %lld (%s)",
           npy.label, (long long)npy.count, (long long)r->n_ptr + 1, (long long)r->m, (long long)r->k, r->format);
  TRY(asparse_budget_allows(r->input->name, 8 * npy.count, "its pointers"));
  ALLOC(r->indptr, npy.count);
  TRY(asparse_npy_integers(&npy, npy.count, r->indptr));
  if (r->indptr[0] != 0) bad = 0;
  for (int64_t i = 0; i < r->n_ptr && bad < 0; i++) {
    if (r->indptr[i + 1] < r->indptr[i]) bad = i + 1;
  }
  if (bad < 0 && r->indptr[r->n_ptr] > r->data.shape[0]) bad = r->n_ptr;
  TRY_THAT(bad < 0, ASPARSE_ERR_DATA,
           "%s: element %lld is %lld; expected 0 first, then no less than before, at most %lld", npy.label,
           (long long)bad, (long long)r->indptr[bad < 0 ? 0 : bad], (long long)r->data.shape[0]);
cleanup:
  asparse_npy_close(&npy);
  return status;
}

/* Elements first … first+count-1 of an array, each below limit. */
typedef struct index_array {
  const char *name;
  int64_t first, count, limit;
  int64_t *to;
} index_array;

static asparse_status read_indices(const reader *r, const index_array *x) {
  asparse_status status = ASPARSE_OK;
  asparse_npy npy;
  enum { BLOCK = 32 << 10 };
  int64_t bad = 0;
  bool good = true;
  TRY(open_array(r, x->name, &npy));
  TRY(asparse_npy_skip(&npy, x->first));
  TRY(asparse_npy_integers(&npy, x->count, x->to));
#pragma omp parallel for schedule(static) reduction(&& : good)
  for (int64_t i = 0; i < x->count; i += BLOCK)
    good = asparse_all_in_range(x->to + i, x->count - i < BLOCK ? x->count - i : BLOCK, x->limit) && good;
  while (!good && (uint64_t)x->to[bad] < (uint64_t)x->limit) bad++;
  TRY_THAT(good, ASPARSE_ERR_DATA, "%s: element %lld is %lld; expected 0 to %lld", npy.label,
           (long long)(x->first + bad), (long long)x->to[bad], (long long)x->limit - 1);
cleanup:
  asparse_npy_close(&npy);
  return status;
}

/* Elements of the array "data" from `first` on. */
typedef struct value_array {
  int64_t first, count;
  asparse_dtype dtype;
  void *to;
  int64_t *inexact;
} value_array;

static asparse_status read_values(reader *r, const value_array *x) {
  PASS(asparse_npy_skip(&r->data, x->first));
  return asparse_npy_values(&r->data, x->count, x->dtype, x->to, x->inexact);
}

/* n ≤ MOST_INDICES arrays of indices and the one of values. They are members of their own in the archive: deflated
 * ones are unpacked each by one thread, all at the same time; of stored ones, each is read by all threads. */
enum { MOST_INDICES = 2 };
static asparse_status read_arrays(reader *r, int n, const index_array *indices, const value_array *values) {
  asparse_status statuses[MOST_INDICES + 1] = {ASPARSE_OK};
#pragma omp parallel for schedule(dynamic, 1) if (r->data.reader.member->deflated)
  for (int i = 0; i <= n; i++) statuses[i] = i < n ? read_indices(r, &indices[i]) : read_values(r, values);
  for (int i = 0; i <= n; i++) PASS(statuses[i]);
  return ASPARSE_OK;
}

/* ---- rows: csr and bsr, in slabs -------------------------------------------------------------- */

static asparse_status read_csr(reader *r, asparse_csr **a) {
  PASS(read_indptr(r));
  const int64_t begin = asparse_slab_begin(r->indptr, r->m, r->input->parts, r->input->part);
  const int64_t end = asparse_slab_begin(r->indptr, r->m, r->input->parts, r->input->part + 1);
  const int64_t first = r->indptr[begin], nnz = r->indptr[end] - first;
  PASS(asparse_budget_allows(r->input->name, 16 * nnz + 8 * (end - begin), "the matrix"));
  PASS(asparse_csr_create(a, r->m, r->k, begin, end - begin, nnz, r->dtype));
  for (int64_t i = 0; i <= end - begin; i++) (*a)->row_ptr[i] = r->indptr[begin + i] - first;
  FREE(r->indptr);
  const index_array cols = {"indices", first, nnz, r->k, (*a)->col_idx};
  const value_array values = {first, nnz, r->dtype, (*a)->values, &(*a)->n_inexact};
  return read_arrays(r, 1, &cols, &values);
}

/* Entries of the rows of block row b that are not zero: into a, or only counted when a has no place yet (next NULL). */
static void take_block_row(const reader *r, int64_t b, int64_t begin, const int64_t *cols, const double *blocks,
                           asparse_csr *a, bool count_only) {
  for (int64_t i = 0; i < r->r; i++) {
    const int64_t row = (b - begin) * r->r + i;
    int64_t next = count_only ? 0 : a->row_ptr[row];
    for (int64_t e = r->indptr[b] - r->indptr[begin]; e < r->indptr[b + 1] - r->indptr[begin]; e++) {
      const double *line = blocks + (e * r->r + i) * r->c;
      for (int64_t j = 0; j < r->c; j++) {
        if (line[j] == 0.0) continue;
        if (!count_only) {
          a->col_idx[next] = cols[e] * r->c + j;
          asparse_store(a->dtype, a->values, next, line[j]);
        }
        next++;
      }
    }
    if (count_only) a->row_ptr[row + 1] = next;
  }
}

/* The blocks that are read, in fp64, and their block columns. */
typedef struct block_rows {
  int64_t begin, end, n_blocks;
  int64_t *cols;
  double *values;
} block_rows;

static asparse_status read_blocks(reader *r, block_rows *b, int64_t *inexact) {
  asparse_status status = ASPARSE_OK;
  const int64_t size = r->r * r->c, first = r->indptr[b->begin];
  b->n_blocks = r->indptr[b->end] - first;
  TRY(asparse_budget_allows(r->input->name, (b->n_blocks * size + b->n_blocks) * 8, "its blocks"));
  ALLOC(b->cols, b->n_blocks);
  ALLOC(b->values, b->n_blocks * size);
  const index_array cols = {"indices", first, b->n_blocks, r->k / r->c, b->cols};
  const value_array values = {first * size, b->n_blocks * size, ASPARSE_FP64, b->values, inexact};
  TRY(read_arrays(r, 1, &cols, &values));
cleanup:
  return status;
}

static asparse_status read_bsr(reader *r, asparse_csr **a) {
  asparse_status status = ASPARSE_OK;
  block_rows b = {0};
  asparse_csr *counts = NULL;
  int64_t inexact = 0;
  TRY(read_indptr(r));
  b.begin = asparse_slab_begin(r->indptr, r->n_ptr, r->input->parts, r->input->part);
  b.end = asparse_slab_begin(r->indptr, r->n_ptr, r->input->parts, r->input->part + 1);
  const int64_t n_rows = (b.end - b.begin) * r->r;
  TRY(read_blocks(r, &b, &inexact));
  TRY(asparse_csr_create(&counts, r->m, r->k, b.begin * r->r, n_rows, 0, r->dtype));
#pragma omp parallel for schedule(static)
  for (int64_t i = b.begin; i < b.end; i++) take_block_row(r, i, b.begin, b.cols, b.values, counts, true);
  for (int64_t i = 0; i < n_rows; i++) counts->row_ptr[i + 1] += counts->row_ptr[i];
  const int64_t nnz = counts->row_ptr[n_rows];
  TRY(asparse_budget_allows(r->input->name, 16 * nnz, "the matrix"));
  TRY(asparse_csr_create(a, r->m, r->k, b.begin * r->r, n_rows, nnz, r->dtype));
  memcpy((*a)->row_ptr, counts->row_ptr, (size_t)(n_rows + 1) * sizeof *counts->row_ptr);
  (*a)->n_inexact = inexact;
#pragma omp parallel for schedule(static)
  for (int64_t i = b.begin; i < b.end; i++) take_block_row(r, i, b.begin, b.cols, b.values, *a, false);
cleanup:
  asparse_csr_destroy(&counts);
  asparse_free(b.cols);
  asparse_free(b.values);
  return status;
}

/* ---- entries in another order: csc and coo, by part 0 alone ------------------------------------ */

static asparse_status read_coordinates(reader *r, asparse_csr **a) {
  asparse_status status = ASPARSE_OK;
  asparse_coordinates entries = {0};
  const bool columns = strcmp(r->format, "csc") == 0;
  int64_t inexact = 0, n = r->data.count;
  if (r->input->part > 0) return asparse_csr_create(a, r->m, r->k, r->m, 0, 0, r->dtype);
  if (columns) TRY(read_indptr(r));
  if (columns) n = r->indptr[r->k];
  TRY(asparse_coordinates_create(r->input->name, n, true, &entries));
  entries.m = r->m;
  entries.k = r->k;
  const index_array indices[] = {{columns ? "indices" : "row", 0, n, r->m, entries.rows},
                                 {"col", 0, n, r->k, entries.cols}};
  const value_array values = {0, n, ASPARSE_FP64, entries.values, &inexact};
  TRY(read_arrays(r, columns ? 1 : 2, indices, &values));
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t j = 0; j < (columns ? r->k : 0); j++) {
    for (int64_t e = r->indptr[j]; e < r->indptr[j + 1]; e++) entries.cols[e] = j;
  }
  TRY(asparse_coordinates_to_csr(r->input->name, &entries, a));
  (*a)->n_inexact = inexact;
  TRY(asparse_csr_convert(*a, r->dtype));
cleanup:
  asparse_coordinates_free(&entries);
  return status;
}

static asparse_status import(asparse_input *input, const asparse_import_options *options, asparse_csr **out,
                             asparse_source *source) {
  asparse_status status = ASPARSE_OK;
  reader r = {.input = input};
  asparse_csr *a = NULL;
  (void)options;
  TRY(asparse_input_seek(input));
  TRY(asparse_zip_open(input, &r.zip));
  TRY(choose_matrix(&r));
  TRY(read_format(&r));
  TRY(read_shape(&r));
  TRY(open_data(&r));
  if (strcmp(r.format, "csr") == 0) TRY(read_csr(&r, &a));
  else if (strcmp(r.format, "bsr") == 0) TRY(read_bsr(&r, &a));
  else TRY(read_coordinates(&r, &a));
  *source = (asparse_source){.structure = "general", .stored_entries = r.data.count};
  snprintf(source->format, sizeof source->format, "SciPy npz (%s)", r.format);
  snprintf(source->value_type, sizeof source->value_type, "%s",
           r.data.half ? "float16" : asparse_element_name(r.data.element));
  TRY(asparse_csr_sort_rows(a));
  *out = a;
  a = NULL;
cleanup:
  asparse_csr_destroy(&a);
  reader_free(&r);
  return status;
}

static asparse_match detect(const asparse_input *input) {
  bool zip =
      input->head_length >= 4 && (memcmp(input->head, "PK\3\4", 4) == 0 || memcmp(input->head, "PK\5\6", 4) == 0);
  return zip ? ASPARSE_MATCH_YES : ASPARSE_MATCH_NO;
}

const asparse_importer asparse_npz_importer = {
    .name = "npz", .title = "SciPy npz", .detect = detect, .read = import, .in_slabs = true};
