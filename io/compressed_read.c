#include "io/budget.h"
#include "io/checksum.h"
#include "io/entries.h"
#include "io/matrix_read.h"

/* A line is a row of compressed rows, a column of compressed columns. */
typedef struct reader {
  asparse_comm *comm;
  asparse_layout *layout;
  int64_t n_lines, width; /* lines that are stored; extent of the indices */
  int64_t *cuts;          /* [size + 1] first line of each rank's slab */
  int64_t stored;         /* entries of the file */
  asparse_csr *a;         /* a slab of lines */
  int64_t entry_begin;    /* first entry of the slab */
  uint64_t checksum;      /* of what this rank has read */
} reader;

/* ---- pointers ------------------------------------------------------------------------------- */

/* pointers[0 … n] of rows row_begin … row_begin+n start at 0 and never decrease or pass the datasets' ends. */
static asparse_status check_pointers(const asparse_layout *layout, int64_t row_begin, int64_t n,
                                     const int64_t *pointers) {
  const char *label = layout->pointers.label;
  if (row_begin == 0 && pointers[0] != 0)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s starts with %lld, expected 0", label, (long long)pointers[0]);
  if (pointers[0] < 0)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: element %lld is %lld, expected ≥ 0", label, (long long)row_begin,
                        (long long)pointers[0]);
  for (int64_t i = 0; i < n; i++) {
    if (pointers[i] > pointers[i + 1])
      return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s decreases from %lld to %lld at element %lld", label,
                          (long long)pointers[i], (long long)pointers[i + 1], (long long)(row_begin + i + 1));
  }
  int64_t indices = layout->indices.rows, values = layout->values.rows;
  if (layout->iso) values = values > 0 ? INT64_MAX : 0;
  if (pointers[n] > indices || pointers[n] > values)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s reaches %lld, but %s has only %lld elements", label,
                        (long long)pointers[n],
                        !asparse_dataset_is_there(&layout->indices) ? "the list of indices, which is missing,"
                        : pointers[n] > indices                     ? layout->indices.path
                                                                    : layout->values.path,
                        (long long)(pointers[n] > indices ? indices : values));
  return ASPARSE_OK;
}

/* Cuts so that entries + rows are near-equal: entries alone would give one rank all empty rows.
 * share: pointers of rows begin … end. */
static asparse_status choose_cuts(reader *r, int64_t begin, int64_t end, const int64_t *share) {
  int size = r->comm->size;
  int64_t m = r->n_lines;
  for (int part = 0; part <= size; part++) {
    int64_t target = asparse_even_start(r->stored + m, size, part); /* ≤ pointers[cut] + cut */
    int64_t low = begin, high = end + 1;
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (share[middle - begin] + middle >= target) high = middle;
      else low = middle + 1;
    }
    r->cuts[part] = low <= end ? low : m;
  }
  return asparse_comm_min(r->comm, r->cuts, size + 1);
}

static asparse_status check_share(reader *r, int64_t begin, int64_t end, const int64_t *share) {
  PASS(check_pointers(r->layout, begin, end - begin, share));
  /* Shares overlap by one pointer, which is counted where it comes first. */
  bool last = r->comm->rank == r->comm->size - 1;
  r->checksum += asparse_checksum_int64(ASPARSE_SUM_POINTERS, begin, share, 0, end - begin + last);
  if (last) r->stored = share[end - begin];
  if (last && r->layout->stored >= 0 && r->layout->stored != r->stored)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s ends with %lld, but %lld stored values are declared",
                        r->layout->pointers.label, (long long)r->stored, (long long)r->layout->stored);
  if (r->stored > INT64_MAX - r->n_lines)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: rows and entries exceed 64-bit sizes", r->layout->label);
  return ASPARSE_OK;
}

/* pointers[0 … end-begin] of rows begin … end. Consecutive ranks hold consecutive rows, so each reads its own
 * pointers alone and is told the one that ends them by the rank that holds it: Open MPI 4.1's own MPI-IO
 * (OMPIO) returns wrong data where collective reads of three ranks overlap. Collective. */
static asparse_status read_pointers(reader *r, int64_t begin, int64_t end, int64_t *pointers) {
  asparse_status status = ASPARSE_OK;
  asparse_comm *comm = r->comm;
  bool last = comm->rank == comm->size - 1;
  int64_t *firsts = asparse_malloc(comm->size, sizeof *firsts, "first pointers"), total = 0;
  TRY(asparse_comm_agree(comm, firsts ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_dataset_read_int64(comm, &r->layout->pointers, begin, end - begin + last, pointers));
  if (last) total = pointers[end - begin];
  int64_t first = end > begin || last ? pointers[0] : INT64_MIN; /* INT64_MIN: holds none */
  TRY_MPI(MPI_Allgather(&first, 1, MPI_INT64_T, firsts, 1, MPI_INT64_T, comm->mpi));
  TRY_MPI(MPI_Bcast(&total, 1, MPI_INT64_T, comm->size - 1, comm->mpi));
  int next = comm->rank + 1;
  while (next < comm->size && firsts[next] == INT64_MIN) next++;
  if (!last) pointers[end - begin] = next < comm->size ? firsts[next] : total;
cleanup:
  asparse_free(firsts);
  return status;
}

static asparse_status read_cuts(reader *r) {
  asparse_status status = ASPARSE_OK;
  asparse_comm *comm = r->comm;
  int64_t m = r->n_lines, *share = NULL;
  int64_t begin = asparse_even_start(m, comm->size, comm->rank);
  int64_t end = asparse_even_start(m, comm->size, comm->rank + 1);
  int64_t chunks = r->layout->pointers.chunk_bytes + r->layout->indices.chunk_bytes + r->layout->values.chunk_bytes;
  status = asparse_budget_check(comm, (end - begin + 1) + chunks / 8, 8, r->layout->pointers.label);
  if (status == ASPARSE_OK) share = asparse_malloc(end - begin + 1, sizeof *share, "row pointers");
  TRY(asparse_comm_agree(comm, share ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(read_pointers(r, begin, end, share));
  TRY(asparse_comm_agree(comm, check_share(r, begin, end, share)));
  TRY_MPI(MPI_Bcast(&r->stored, 1, MPI_INT64_T, comm->size - 1, comm->mpi));
  TRY(choose_cuts(r, begin, end, share));
cleanup:
  asparse_free(share);
  return status;
}

/* ---- entries -------------------------------------------------------------------------------- */

static asparse_status create_slab(reader *r, int64_t row_begin, int64_t n_rows, const int64_t *pointers) {
  asparse_status status = ASPARSE_OK;
  const asparse_layout *layout = r->layout;
  asparse_dtype dtype = asparse_element_dtype(layout->values.element);
  int64_t entry_bytes = 8 + (int64_t)asparse_dtype_size(dtype), nnz = pointers[n_rows] - pointers[0];
  TRY(check_pointers(layout, row_begin, n_rows, pointers));
  TRY(asparse_budget_check(r->comm, nnz, entry_bytes, layout->label));
  TRY(asparse_csr_create(&r->a, r->n_lines, r->width, row_begin, n_rows, nnz, dtype));
  for (int64_t i = 0; i <= n_rows; i++) r->a->row_ptr[i] = pointers[i] - pointers[0];
  r->entry_begin = pointers[0];
cleanup:
  return status;
}

static asparse_status read_row_ptr(reader *r) {
  asparse_status status = ASPARSE_OK;
  int64_t *pointers = NULL;
  int64_t row_begin = r->cuts[r->comm->rank], n_rows = r->cuts[r->comm->rank + 1] - row_begin;
  status = asparse_budget_check(r->comm, n_rows + 1, 16, r->layout->pointers.label);
  if (status == ASPARSE_OK) pointers = asparse_malloc(n_rows + 1, sizeof *pointers, "row pointers");
  TRY(asparse_comm_agree(r->comm, pointers ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(read_pointers(r, row_begin, row_begin + n_rows, pointers));
  TRY(asparse_comm_agree(r->comm, create_slab(r, row_begin, n_rows, pointers)));
cleanup:
  asparse_free(pointers);
  return status;
}

/* Of an unknown extent, each is in range unless a larger one could not be counted. */
static int64_t end_of(int64_t extent) { return extent == ASPARSE_UNKNOWN_EXTENT ? INT64_MAX : extent; }

asparse_status asparse_check_indices(const asparse_dataset *dataset, int64_t first, int64_t count,
                                     const int64_t *indices, int64_t extent, const char *what) {
  int64_t end = end_of(extent), bad = 0;
  if (asparse_all_in_range(indices, count, end)) return ASPARSE_OK;
  while ((uint64_t)indices[bad] < (uint64_t)end) bad++;
  return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: element %lld is %lld, expected 0 … %lld for a matrix of %lld %s",
                      dataset->label, (long long)(first + bad), (long long)indices[bad], (long long)end - 1,
                      (long long)end, what);
}

/* In blocks that stay in a core's cache from conversion to checksum. */
static asparse_status take_indices(void *context, int64_t first, int64_t count, const void *rows) {
  enum { BLOCK = 32 << 10 };
  reader *r = context;
  const asparse_dataset *dataset = &r->layout->indices;
  const bool has_checksum = r->layout->has_checksum;
  int64_t *indices = r->a->col_idx + first, position = r->entry_begin + first, end = end_of(r->width);
  int64_t size = (int64_t)asparse_element_size(dataset->element);
  uint64_t checksum = 0;
  bool good = true;
#pragma omp parallel for schedule(static) reduction(+ : checksum) reduction(&& : good)
  for (int64_t i = 0; i < count; i += BLOCK) {
    int64_t n = count - i < BLOCK ? count - i : BLOCK;
    asparse_element_to_int64(dataset->element, (const char *)rows + i * size, n, indices + i);
    good = asparse_all_in_range(indices + i, n, end) && good;
    if (has_checksum) checksum += asparse_checksum_int64(ASPARSE_SUM_INDICES, position + i, indices + i, 0, n);
  }
  r->checksum += checksum;
  if (good) return ASPARSE_OK;
  return asparse_check_indices(dataset, position, count, indices, r->width,
                               r->layout->arrangement == ASPARSE_BY_ROWS ? "columns" : "rows");
}

/* Values in a's own type are in place already. */
static asparse_status take_values(void *context, int64_t first, int64_t count, const void *rows) {
  reader *r = context;
  asparse_csr *a = r->a;
  asparse_element element = r->layout->values.element;
  if (asparse_element_is_integer(element))
    a->n_inexact += asparse_element_to_values(element, rows, count, a->dtype, a->values, first);
  if (r->layout->has_checksum)
    r->checksum +=
        asparse_checksum_values(ASPARSE_SUM_VALUES, r->entry_begin + first, a->dtype, a->values, first, count);
  return ASPARSE_OK;
}

/* One value for all entries. */
static asparse_status take_iso(void *context, int64_t first, int64_t count, const void *rows) {
  reader *r = context;
  double value = 0;
  (void)first, (void)count;
  int64_t inexact = asparse_element_to_values(r->layout->values.element, rows, 1, ASPARSE_FP64, &value, 0);
  int64_t nnz = asparse_csr_nnz_local(r->a);
  r->a->n_inexact = inexact * nnz;
#pragma omp parallel for schedule(static)
  for (int64_t e = 0; e < nnz; e++) asparse_store(r->a->dtype, r->a->values, e, value);
  if (r->comm->rank == 0) r->checksum += asparse_checksum_values(ASPARSE_SUM_VALUES, 0, ASPARSE_FP64, &value, 0, 1);
  return ASPARSE_OK;
}

static asparse_status read_entries(reader *r) {
  int64_t nnz = asparse_csr_nnz_local(r->a);
  if (!asparse_dataset_is_there(&r->layout->indices)) return ASPARSE_OK; /* there are no entries */
  PASS(asparse_dataset_read(r->comm, &r->layout->indices, r->entry_begin, nnz, NULL, take_indices, r));
  if (r->layout->iso)
    return asparse_dataset_read(r->comm, &r->layout->values, 0, r->layout->values.rows, NULL, take_iso, r);
  void *in_place = asparse_element_is_integer(r->layout->values.element) ? NULL : r->a->values;
  return asparse_dataset_read(r->comm, &r->layout->values, r->entry_begin, nnz, in_place, take_values, r);
}

static asparse_status verify_checksum(reader *r) {
  if (!r->layout->has_checksum) return ASPARSE_OK;
  const asparse_layout *layout = r->layout;
  int64_t shape[2] = {layout->transposed ? layout->k : layout->m, layout->transposed ? layout->m : layout->k};
  if (r->comm->rank == 0) r->checksum += asparse_checksum_int64(ASPARSE_SUM_SHAPE, 0, shape, 0, 2);
  PASS(asparse_checksum_sum(r->comm, &r->checksum));
  return asparse_checksum_compare(layout->label, r->checksum, layout->checksum);
}

/* ---- lines to rows -------------------------------------------------------------------------- */

/* The extent that the largest index of all ranks needs. */
static asparse_status find_width(reader *r) {
  int64_t width = 0, nnz = asparse_csr_nnz_local(r->a);
  if (r->width != ASPARSE_UNKNOWN_EXTENT) return ASPARSE_OK;
  for (int64_t e = 0; e < nnz; e++) {
    if (r->a->col_idx[e] >= width) width = r->a->col_idx[e] + 1;
  }
  PASS(asparse_comm_max(r->comm, &width, 1));
  r->width = r->a->k = width;
  if (r->layout->arrangement == ASPARSE_BY_ROWS) r->layout->k = width;
  else r->layout->m = width;
  return ASPARSE_OK;
}

/* The numbers of the slab's lines, where only some lines are stored. */
static asparse_status read_lines(reader *r, int64_t **lines) {
  asparse_status status = ASPARSE_OK;
  const asparse_dataset *list = &r->layout->lines;
  bool by_rows = r->layout->arrangement == ASPARSE_BY_ROWS;
  int64_t begin = r->a->row_begin, count = r->a->n_rows;
  if (!asparse_dataset_is_there(list)) return ASPARSE_OK;
  *lines = asparse_malloc(count, sizeof **lines, "numbers of lines");
  TRY(asparse_comm_agree(r->comm, *lines ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_dataset_read_int64(r->comm, list, begin, count, *lines));
  TRY(asparse_comm_agree(r->comm,
                         asparse_check_indices(list, begin, count, *lines, by_rows ? r->layout->m : r->layout->k,
                                               by_rows ? "rows" : "columns")));
cleanup:
  return status;
}

/* The slab's entries by row and column; the slab is freed. */
static asparse_status list_entries(reader *r, const int64_t *lines, asparse_entries *entries) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *a = r->a;
  TRY(asparse_entries_create(r->comm, asparse_csr_nnz_local(a), r->layout->label, entries));
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t line = lines ? lines[i] : a->row_begin + i;
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      double value = asparse_load(a->dtype, a->values, e);
      entries->list[e] = r->layout->arrangement == ASPARSE_BY_ROWS ? (asparse_entry){line, a->col_idx[e], value}
                                                                   : (asparse_entry){a->col_idx[e], line, value};
    }
  }
  asparse_csr_destroy(&r->a);
cleanup:
  return status;
}

/* Replaces the slab of lines by one of rows, unless it is one. */
static asparse_status move_to_rows(reader *r) {
  asparse_status status = ASPARSE_OK;
  const asparse_layout *layout = r->layout;
  asparse_entries entries = {0};
  int64_t *lines = NULL, n_inexact = r->a->n_inexact;
  asparse_dtype dtype = r->a->dtype;
  if (layout->arrangement == ASPARSE_BY_ROWS && !asparse_dataset_is_there(&layout->lines)) return ASPARSE_OK;
  TRY(read_lines(r, &lines));
  TRY(asparse_comm_agree(r->comm, list_entries(r, lines, &entries)));
  TRY(asparse_entries_to_slabs(r->comm, layout->m, layout->k, dtype, &entries, &r->a));
  r->a->n_inexact = n_inexact;
cleanup:
  asparse_entries_free(&entries);
  asparse_free(lines);
  return status;
}

static asparse_status read_all(reader *r) {
  PASS(read_cuts(r));
  PASS(read_row_ptr(r));
  PASS(read_entries(r));
  PASS(verify_checksum(r));
  PASS(find_width(r));
  return move_to_rows(r);
}

asparse_status asparse_compressed_read(asparse_comm *comm, asparse_layout *layout, asparse_csr **a) {
  asparse_status status = ASPARSE_OK;
  reader r = {.comm = comm, .layout = layout, .n_lines = layout->pointers.rows - 1};
  r.width = layout->arrangement == ASPARSE_BY_ROWS ? layout->k : layout->m;
  r.cuts = asparse_calloc(comm->size + 1, sizeof *r.cuts, "cuts");
  TRY(asparse_comm_agree(comm, r.cuts ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(read_all(&r));
  layout->source.stored_entries = r.stored;
  *a = r.a;
  r.a = NULL;
cleanup:
  asparse_csr_destroy(&r.a);
  asparse_free(r.cuts);
  return status;
}
