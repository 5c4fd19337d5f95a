/* Generated matrices for tests, whole and as dense arrays. */
#ifndef ASPARSE_GENERATE_FIXTURE_H
#define ASPARSE_GENERATE_FIXTURE_H

#include "generate/generate.h"
#include "slabs.h"

static inline asparse_generator parsed(const char *text, uint64_t seed, asparse_dtype dtype) {
  asparse_generator g;
  asparse_status status = asparse_generator_parse(text, seed, dtype, &g);
  if (status != ASPARSE_OK) print_error("%s: %s\n", text, asparse_error_message());
  assert_int_equal(status, ASPARSE_OK);
  return g;
}

/* Rows sorted, unique, in range. */
static inline void check_sorted(const asparse_csr *a) {
  assert_int_equal(a->row_ptr[0], 0);
  for (int64_t i = 0; i < a->n_rows; i++) {
    assert_true(a->row_ptr[i] <= a->row_ptr[i + 1]);
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++)
      assert_true(a->col_idx[e] >= (e > a->row_ptr[i] ? a->col_idx[e - 1] + 1 : 0) && a->col_idx[e] < a->k);
  }
}

static inline asparse_csr *slab_of(const asparse_generator *g, int64_t begin, int64_t n_rows) {
  asparse_csr *a = NULL;
  asparse_status status = asparse_generate_slab(g, begin, n_rows, &a);
  if (status != ASPARSE_OK) print_error("%s\n", asparse_error_message());
  assert_int_equal(status, ASPARSE_OK);
  assert_int_equal(a->m, g->m);
  assert_int_equal(a->k, g->k);
  assert_int_equal(a->row_begin, begin);
  assert_int_equal(a->n_rows, n_rows);
  assert_int_equal(a->nnz, asparse_csr_nnz_local(a));
  assert_int_equal(a->dtype, g->dtype);
  check_sorted(a);
  return a;
}

static inline asparse_csr *whole_of(const char *text, uint64_t seed) {
  asparse_generator g = parsed(text, seed, ASPARSE_FP64);
  return slab_of(&g, 0, g.m);
}

static inline double value_at(const asparse_csr *a, int64_t e) { return asparse_load(a->dtype, a->values, e); }

static inline bool equal(const asparse_csr *a, const asparse_csr *b) {
  size_t nnz = (size_t)asparse_csr_nnz_local(a);
  return a->m == b->m && a->k == b->k && a->n_rows == b->n_rows && a->dtype == b->dtype &&
         memcmp(a->row_ptr, b->row_ptr, (size_t)(a->n_rows + 1) * sizeof *a->row_ptr) == 0 &&
         memcmp(a->col_idx, b->col_idx, nnz * sizeof *a->col_idx) == 0 &&
         memcmp(a->values, b->values, nnz * asparse_dtype_size(a->dtype)) == 0;
}

/* m × k, row-major; where there is an entry and what it is. Freed with dense_free. */
typedef struct dense_form {
  int64_t m, k;
  bool *there;
  double *value;
} dense_form;

static inline dense_form dense_of(const asparse_csr *a) {
  dense_form d = {.m = a->m, .k = a->k};
  d.there = calloc((size_t)(a->m * a->k), sizeof *d.there);
  d.value = calloc((size_t)(a->m * a->k), sizeof *d.value);
  for (int64_t i = 0; i < a->n_rows; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
      d.there[(a->row_begin + i) * a->k + a->col_idx[e]] = true;
      d.value[(a->row_begin + i) * a->k + a->col_idx[e]] = value_at(a, e);
    }
  }
  return d;
}

static inline void dense_free(dense_form *d) {
  free(d->there);
  free(d->value);
}

#endif
