/* Matrices given by formula, and small ones written by hand with HDF5. */
#ifndef ASPARSE_CSR_FIXTURE_H
#define ASPARSE_CSR_FIXTURE_H

#include "io_fixture.h"

typedef enum pattern { SCATTERED, NOTHING, DENSE_ROW, EVERYTHING } pattern;
typedef struct formula {
  int64_t m, k;
  pattern pattern;
} formula;

static inline bool has_entry(const formula *f, int64_t i, int64_t j) {
  if (f->pattern == SCATTERED) return i % 5 != 2 && asparse_mix64((uint64_t)(i * 1000 + j)) % 4 == 0;
  return f->pattern == EVERYTHING || (f->pattern == DENSE_ROW && i == f->m / 2);
}

static inline double value_of(int64_t i, int64_t j) { return asparse_random_element(7, i, j); }

static inline int64_t count_entries(const formula *f, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (int64_t i = begin; i < end; i++)
    for (int64_t j = 0; j < f->k; j++) count += has_entry(f, i, j);
  return count;
}

/* The even slab of this rank. */
static inline asparse_csr *make_slab(const formula *f, asparse_dtype dtype) {
  asparse_csr *a = NULL;
  int64_t begin = asparse_even_start(f->m, comm->size, comm->rank), e = 0;
  int64_t end = asparse_even_start(f->m, comm->size, comm->rank + 1);
  expect_ok(asparse_csr_create(&a, f->m, f->k, begin, end - begin, count_entries(f, begin, end), dtype));
  a->nnz = count_entries(f, 0, f->m);
  for (int64_t i = begin; i < end; i++) {
    for (int64_t j = 0; j < f->k; j++) {
      if (!has_entry(f, i, j)) continue;
      a->col_idx[e] = j;
      asparse_store(dtype, a->values, e++, value_of(i, j));
    }
    a->row_ptr[i - begin + 1] = e;
  }
  return a;
}

/* Slabs follow each other and cover all rows. */
static inline void check_cover(const asparse_csr *a, int64_t m) {
  int64_t *begins = malloc((size_t)(comm->size + 1) * sizeof *begins);
  MPI_Allgather(&a->row_begin, 1, MPI_INT64_T, begins, 1, MPI_INT64_T, comm->mpi);
  begins[comm->size] = m;
  assert_int_equal(begins[0], 0);
  assert_int_equal(a->row_begin + a->n_rows, begins[comm->rank + 1]);
  free(begins);
}

static inline void check_slab(const asparse_csr *a, const formula *f, asparse_dtype written, bool ones) {
  assert_int_equal(a->m, f->m);
  assert_int_equal(a->k, f->k);
  assert_int_equal(a->nnz, count_entries(f, 0, f->m));
  check_cover(a, f->m);
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t e = a->row_ptr[i];
    for (int64_t j = 0; j < f->k; j++) {
      if (!has_entry(f, a->row_begin + i, j)) continue;
      double expected[1];
      asparse_store(written, expected, 0, ones ? 1.0 : value_of(a->row_begin + i, j));
      assert_int_equal(a->col_idx[e], j);
      assert_true(asparse_load(a->dtype, a->values, e) == asparse_load(written, expected, 0));
      e++;
    }
    assert_int_equal(e, a->row_ptr[i + 1]);
  }
}

/* 3 × 4:  [1 . 2 .]  [. . . .]  [. 3 . 4] */
typedef struct by_hand {
  const char *json;
  int64_t pointers[8], indices[8];
  double values[8];
  int64_t n_pointers, n_indices, n_values;
  hid_t index_type, value_type; /* 0: int64, float64 */
} by_hand;

#define JSON(format, shape, stored, type, more)                                                                        \
  "{\"binsparse\": {\"version\": \"0.1\", \"format\": \"" format "\", \"shape\": " shape                               \
  ", \"number_of_stored_values\": " stored ", \"data_types\": {\"values\": \"" type "\"}" more "}}"

static inline by_hand small(void) {
  return (by_hand){JSON("CSR", "[3, 4]", "4", "float64", ""), {0, 2, 2, 4}, {0, 2, 1, 3}, {1, 2, 3, 4}, 4, 4, 4, 0, 0};
}

static inline void fill_group(hid_t where, const by_hand *h, bool fixed_text) {
  hid_t index_type = h->index_type ? h->index_type : H5T_NATIVE_INT64;
  put_text(where, "binsparse", h->json, fixed_text);
  if (h->n_pointers >= 0) put(where, "pointers_to_1", index_type, H5T_NATIVE_INT64, h->n_pointers, h->pointers);
  if (h->n_indices >= 0) put(where, "indices_1", index_type, H5T_NATIVE_INT64, h->n_indices, h->indices);
  if (h->n_values >= 0)
    put(where, "values", h->value_type ? h->value_type : H5T_NATIVE_DOUBLE, H5T_NATIVE_DOUBLE, h->n_values, h->values);
}

static inline void make(const char *name, const by_hand *h) {
  barrier(); /* nobody has the older one open any more */
  if (comm->rank == 0) {
    hid_t file = new_file(name);
    fill_group(file, h, false);
    H5Fclose(file);
  }
  barrier();
}

/* The slabs of all ranks as one dense array [m · k], on every rank. */
static inline double *dense_of(const asparse_csr *a) {
  double *dense = calloc((size_t)(a->m * a->k), sizeof *dense);
  for (int64_t i = 0; i < a->n_rows; i++)
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++)
      dense[(a->row_begin + i) * a->k + a->col_idx[e]] += asparse_load(a->dtype, a->values, e);
  MPI_Allreduce(MPI_IN_PLACE, dense, (int)(a->m * a->k), MPI_DOUBLE, MPI_SUM, comm->mpi);
  return dense;
}

static inline asparse_csr *read_ok(const char *name) {
  asparse_csr *a = NULL;
  expect_ok(asparse_csr_read(comm, in_folder(name), &a, NULL));
  return a;
}

static inline void check_dense(const char *name, const double *expected, int64_t count) {
  asparse_csr *a = read_ok(name);
  double *dense = dense_of(a);
  assert_int_equal(a->m * a->k, count);
  for (int64_t i = 0; i < count; i++) assert_true(dense[i] == expected[i]);
  free(dense);
  asparse_csr_destroy(&a);
}

static const double small_dense[12] = {1, 0, 2, 0, 0, 0, 0, 0, 0, 3, 0, 4};

#endif
