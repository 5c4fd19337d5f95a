#include <string.h>

#include "io/budget.h"
#include "io/checksum.h"
#include "io/convention.h"

typedef struct reader {
  asparse_comm *comm;
  asparse_layout layout;
  hid_t file;
  int64_t *cuts;  /* [size + 1] first row of each rank's slab */
  int64_t stored; /* entries of the file */
  asparse_csr *a;
  int64_t entry_begin; /* first entry of the slab */
  uint64_t checksum;   /* of what this rank has read */
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
                        (long long)pointers[n], pointers[n] > indices ? layout->indices.path : layout->values.path,
                        (long long)(pointers[n] > indices ? indices : values));
  return ASPARSE_OK;
}

/* Cuts so that entries + rows are near-equal: entries alone would give one rank all empty rows.
 * share: pointers of rows begin … end. */
static asparse_status choose_cuts(reader *r, int64_t begin, int64_t end, const int64_t *share) {
  int size = r->comm->size;
  int64_t m = r->layout.m;
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
  PASS(check_pointers(&r->layout, begin, end - begin, share));
  /* Shares overlap by one pointer, which is counted where it comes first. */
  bool last = r->comm->rank == r->comm->size - 1;
  r->checksum += asparse_checksum_int64(ASPARSE_SUM_POINTERS, begin, share, 0, end - begin + last);
  if (last) r->stored = share[end - begin];
  if (last && r->layout.stored >= 0 && r->layout.stored != r->stored)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s ends with %lld, but number_of_stored_values is %lld",
                        r->layout.pointers.label, (long long)r->stored, (long long)r->layout.stored);
  if (r->stored > INT64_MAX - r->layout.m)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: rows and entries exceed 64-bit sizes", r->layout.label);
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
  TRY(asparse_dataset_read_int64(comm, &r->layout.pointers, begin, end - begin + last, pointers));
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
  int64_t m = r->layout.m, *share = NULL;
  int64_t begin = asparse_even_start(m, comm->size, comm->rank);
  int64_t end = asparse_even_start(m, comm->size, comm->rank + 1);
  int64_t chunks = r->layout.pointers.chunk_bytes + r->layout.indices.chunk_bytes + r->layout.values.chunk_bytes;
  status = asparse_budget_check(comm, (end - begin + 1) + chunks / 8, 8, r->layout.pointers.label);
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
  const asparse_layout *layout = &r->layout;
  asparse_dtype dtype = asparse_element_dtype(layout->values.element);
  int64_t entry_bytes = 8 + (int64_t)asparse_dtype_size(dtype), nnz = pointers[n_rows] - pointers[0];
  TRY(check_pointers(layout, row_begin, n_rows, pointers));
  TRY(asparse_budget_check(r->comm, nnz, entry_bytes, layout->label));
  TRY(asparse_csr_create(&r->a, layout->m, layout->k, row_begin, n_rows, nnz, dtype));
  for (int64_t i = 0; i <= n_rows; i++) r->a->row_ptr[i] = pointers[i] - pointers[0];
  r->entry_begin = pointers[0];
cleanup:
  return status;
}

static asparse_status read_row_ptr(reader *r) {
  asparse_status status = ASPARSE_OK;
  int64_t *pointers = NULL;
  int64_t row_begin = r->cuts[r->comm->rank], n_rows = r->cuts[r->comm->rank + 1] - row_begin;
  status = asparse_budget_check(r->comm, n_rows + 1, 16, r->layout.pointers.label);
  if (status == ASPARSE_OK) pointers = asparse_malloc(n_rows + 1, sizeof *pointers, "row pointers");
  TRY(asparse_comm_agree(r->comm, pointers ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(read_pointers(r, row_begin, row_begin + n_rows, pointers));
  TRY(asparse_comm_agree(r->comm, create_slab(r, row_begin, n_rows, pointers)));
cleanup:
  asparse_free(pointers);
  return status;
}

static asparse_status take_indices(void *context, int64_t first, int64_t count, const void *rows) {
  reader *r = context;
  int64_t *col_idx = r->a->col_idx + first, k = r->layout.k, bad = count;
  asparse_element_to_int64(r->layout.indices.element, rows, count, col_idx);
#pragma omp parallel for schedule(static) reduction(min : bad)
  for (int64_t i = 0; i < count; i++) {
    if ((uint64_t)col_idx[i] >= (uint64_t)k && i < bad) bad = i;
  }
  if (bad < count)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: element %lld is %lld, expected 0 … %lld for a matrix of %lld columns",
                        r->layout.indices.label, (long long)(r->entry_begin + first + bad), (long long)col_idx[bad],
                        (long long)k - 1, (long long)k);
  if (r->layout.has_checksum)
    r->checksum += asparse_checksum_int64(ASPARSE_SUM_INDICES, r->entry_begin + first, col_idx, 0, count);
  return ASPARSE_OK;
}

static asparse_status take_values(void *context, int64_t first, int64_t count, const void *rows) {
  reader *r = context;
  r->a->n_inexact += asparse_element_to_values(r->layout.values.element, rows, count, r->a->dtype, r->a->values, first);
  if (r->layout.has_checksum)
    r->checksum +=
        asparse_checksum_values(ASPARSE_SUM_VALUES, r->entry_begin + first, r->a->dtype, r->a->values, first, count);
  return ASPARSE_OK;
}

/* One value for all entries. */
static asparse_status take_iso(void *context, int64_t first, int64_t count, const void *rows) {
  reader *r = context;
  double value = 0;
  (void)first, (void)count;
  int64_t inexact = asparse_element_to_values(r->layout.values.element, rows, 1, ASPARSE_FP64, &value, 0);
  int64_t nnz = asparse_csr_nnz_local(r->a);
  r->a->n_inexact = inexact * nnz;
#pragma omp parallel for schedule(static)
  for (int64_t e = 0; e < nnz; e++) asparse_store(r->a->dtype, r->a->values, e, value);
  if (r->comm->rank == 0) r->checksum += asparse_checksum_values(ASPARSE_SUM_VALUES, 0, ASPARSE_FP64, &value, 0, 1);
  return ASPARSE_OK;
}

static asparse_status read_entries(reader *r) {
  int64_t nnz = asparse_csr_nnz_local(r->a);
  PASS(asparse_dataset_read(r->comm, &r->layout.indices, r->entry_begin, nnz, take_indices, r));
  if (r->layout.iso) return asparse_dataset_read(r->comm, &r->layout.values, 0, r->layout.values.rows, take_iso, r);
  return asparse_dataset_read(r->comm, &r->layout.values, r->entry_begin, nnz, take_values, r);
}

static asparse_status verify_checksum(reader *r) {
  if (!r->layout.has_checksum) return ASPARSE_OK;
  int64_t shape[2] = {r->layout.m, r->layout.k};
  if (r->comm->rank == 0) r->checksum += asparse_checksum_int64(ASPARSE_SUM_SHAPE, 0, shape, 0, 2);
  PASS(asparse_checksum_sum(r->comm, &r->checksum));
  return asparse_checksum_compare(r->layout.label, r->checksum, r->layout.checksum);
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* Rank 0 looks at the metadata; all receive what it found. */
static asparse_status find_layout(reader *r, const char *file, const char *object) {
  asparse_status status = ASPARSE_OK;
  if (r->comm->rank == 0) status = asparse_layout_find(file, object, &r->layout);
  TRY(asparse_comm_agree(r->comm, status));
  TRY_MPI(MPI_Bcast(&r->layout, sizeof r->layout, MPI_BYTE, 0, r->comm->mpi));
cleanup:
  return status;
}

static asparse_status open_datasets(reader *r, const char *file) {
  PASS(asparse_hdf5_open_all(r->comm, file, &r->file));
  PASS(asparse_dataset_open(r->comm, r->file, &r->layout.pointers));
  PASS(asparse_dataset_open(r->comm, r->file, &r->layout.indices));
  return asparse_dataset_open(r->comm, r->file, &r->layout.values);
}

static void reader_close(reader *r) {
  asparse_dataset_close(&r->layout.pointers);
  asparse_dataset_close(&r->layout.indices);
  asparse_dataset_close(&r->layout.values);
  CLOSE_HDF5(H5Fclose, r->file);
}

static asparse_status finish(reader *r) {
  PASS(asparse_structure_expand(r->comm, r->layout.structure, &r->a));
  PASS(asparse_comm_agree(r->comm, asparse_csr_sort_rows(r->a)));
  r->a->nnz = asparse_csr_nnz_local(r->a);
  return asparse_comm_sum(r->comm, &r->a->nnz, 1);
}

asparse_status asparse_csr_read(asparse_comm *comm, const char *path, asparse_csr **a, asparse_source *source) {
  asparse_status status = ASPARSE_OK;
  char *file = NULL, *object = NULL;
  reader r = {.comm = comm, .file = -1};
  r.layout.pointers.id = r.layout.indices.id = r.layout.values.id = -1;
  status = asparse_path_split(path, &file, &object);
  if (status == ASPARSE_OK) r.cuts = asparse_calloc(comm->size + 1, sizeof *r.cuts, "cuts");
  TRY(asparse_comm_agree(comm, status == ASPARSE_OK && !r.cuts ? ASPARSE_ERR_MEMORY : status));
  TRY(find_layout(&r, file, object));
  TRY(open_datasets(&r, file));
  TRY(read_cuts(&r));
  TRY(read_row_ptr(&r));
  TRY(read_entries(&r));
  TRY(verify_checksum(&r));
  reader_close(&r);
  TRY(finish(&r));
  if (source) {
    *source = r.layout.source;
    source->stored_entries = r.stored;
  }
  *a = r.a;
  r.a = NULL;
cleanup:
  reader_close(&r);
  asparse_csr_destroy(&r.a);
  asparse_free(r.cuts);
  asparse_free(file);
  asparse_free(object);
  return status;
}
