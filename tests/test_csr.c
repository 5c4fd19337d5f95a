/* Sorting and summing of CSR rows, conversion, checked narrowing. */
#include <math.h>

#include "slabs.h"

static void sorts_and_sums(void **unused) {
  (void)unused;
  uint64_t state = 1;
  for (int trial = 0; trial < 200; trial++) {
    enum { M = 6, K = 9 };
    double expected[M][K] = {{0}};
    int64_t present[M][K] = {{0}}, duplicates = 0;
    asparse_csr *a = NULL;
    int64_t lengths[M], nnz = 0;
    for (int i = 0; i < M; i++) nnz += lengths[i] = test_random(&state, 8);
    assert_int_equal(asparse_csr_create(&a, M, K, 0, M, nnz, ASPARSE_FP64), ASPARSE_OK);
    int64_t e = 0;
    for (int i = 0; i < M; i++) {
      for (int64_t j = 0; j < lengths[i]; j++, e++) {
        int64_t col = test_random(&state, K);
        double value = (double)test_random(&state, 100);
        a->col_idx[e] = col;
        ((double *)a->values)[e] = value;
        expected[i][col] += value;
        duplicates += present[i][col];
        present[i][col] = 1;
      }
      a->row_ptr[i + 1] = e;
    }
    assert_int_equal(asparse_csr_sort_rows(a), ASPARSE_OK);
    assert_int_equal(a->n_duplicates, duplicates);
    assert_int_equal(asparse_csr_nnz_local(a), nnz - duplicates);
    for (int i = 0; i < M; i++) {
      for (e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
        assert_true(e == a->row_ptr[i] || a->col_idx[e - 1] < a->col_idx[e]);
        assert_true(((double *)a->values)[e] == expected[i][a->col_idx[e]]);
      }
    }
    asparse_csr_destroy(&a);
    assert_null(a);
  }
}

/* One pair of columns out of order, or equal, anywhere in many rows, some of them empty; and none. */
static void finds_any_disorder(void **unused) {
  (void)unused;
  enum { M = 700, PER_ROW = 3 };
  uint64_t state = 5;
  for (int64_t e = 1; e <= M * PER_ROW; e++) {
    asparse_csr *a = NULL;
    bool row_starts = e % PER_ROW == 0, equal = test_random(&state, 2) == 0;
    assert_int_equal(asparse_csr_create(&a, 2 * M, 100, 0, 2 * M, M * PER_ROW, ASPARSE_FP64), ASPARSE_OK);
    for (int64_t i = 0; i < M * PER_ROW; i++) {
      a->col_idx[i] = 10 * (i % PER_ROW) + (i / PER_ROW) % 5;
      ((double *)a->values)[i] = 1;
    }
    for (int64_t i = 0; i <= 2 * M; i++) a->row_ptr[i] = (i + e % 2) / 2 * PER_ROW; /* every other row is empty */
    if (!row_starts) a->col_idx[e] = equal ? a->col_idx[e - 1] : 0;
    assert_int_equal(asparse_csr_sort_rows(a), ASPARSE_OK);
    int64_t summed = !row_starts && a->n_duplicates > 0;
    assert_int_equal(a->n_duplicates, summed);
    assert_true(row_starts || !equal || summed);
    for (int64_t i = 0; i < 2 * M; i++) {
      for (int64_t j = a->row_ptr[i] + 1; j < a->row_ptr[i + 1]; j++) assert_true(a->col_idx[j - 1] < a->col_idx[j]);
    }
    asparse_csr_destroy(&a);
  }
}

/* Rounding once, to nearest even: fp64 to bf16 where rounding through fp32 would err. */
static void rounds_once(void **unused) {
  (void)unused;
  uint16_t bits;
  double tie = 1 + 0x1p-8;      /* halfway between two bf16 numbers: to even, 1 */
  double above = tie + 0x1p-40; /* fp32 rounds it to the tie; bf16 is the upper one */
  asparse_store(ASPARSE_BF16, &bits, 0, tie);
  assert_true(asparse_float_from_bf16(bits) == 1.0f);
  asparse_store(ASPARSE_BF16, &bits, 0, above);
  assert_true(asparse_float_from_bf16(bits) == 1.0f + 0x1p-7f);
  asparse_store(ASPARSE_BF16, &bits, 0, -above);
  assert_true(asparse_float_from_bf16(bits) == -1.0f - 0x1p-7f);
  asparse_store(ASPARSE_BF16, &bits, 0, NAN);
  assert_true(isnan(asparse_float_from_bf16(bits)));
  asparse_store(ASPARSE_BF16, &bits, 0, -INFINITY);
  assert_true(asparse_float_from_bf16(bits) == -INFINITY);
  asparse_store(ASPARSE_BF16, &bits, 0, 1e300);
  assert_true(isinf(asparse_float_from_bf16(bits)));
  for (uint32_t i = 0; i < 0x10000; i++) { /* every bf16 number is itself */
    uint16_t back;
    float x = asparse_float_from_bf16((uint16_t)i);
    if (isnan(x)) continue;
    asparse_store(ASPARSE_BF16, &back, 0, x);
    assert_int_equal(back, i);
  }
}

static void narrowing_is_checked(void **unused) {
  (void)unused;
  int32_t local = -1;
  assert_int_equal(asparse_int32_from(INT32_MAX, "rows", &local), ASPARSE_OK);
  assert_int_equal(local, INT32_MAX);
  assert_int_equal(asparse_int32_from((int64_t)INT32_MAX + 1, "rows", &local), ASPARSE_ERR_RUNTIME);
  assert_non_null(strstr(asparse_error_message(), "rows"));
  asparse_error_clear();
}

static void sizes_that_overflow(void **unused) {
  (void)unused;
  asparse_dense *a = NULL;
  assert_int_equal(asparse_dense_create(&a, INT64_MAX / 2, 8, ASPARSE_FP64), ASPARSE_ERR_MEMORY);
  asparse_error_clear();
  assert_int_equal(asparse_dense_create(&a, (int64_t)1 << 60, 1, ASPARSE_FP64), ASPARSE_ERR_MEMORY);
  asparse_error_clear();
  assert_null(a);
  asparse_csr *csr = NULL;
  assert_int_equal(asparse_csr_create(&csr, 1, 1, 0, 1, -5, ASPARSE_FP32), ASPARSE_ERR_MEMORY);
  asparse_error_clear();
  assert_null(csr);
}

static void allocation_failures(void **unused) {
  (void)unused;
  int64_t live = asparse_memory_live_blocks();
  for (int64_t n = 1; n < 12; n++) {
    asparse_csr *a = NULL;
    asparse_memory_fail_at(n);
    asparse_status status = asparse_csr_create(&a, 2, 4, 0, 2, 4, ASPARSE_FP64);
    if (status == ASPARSE_OK) {
      memcpy(a->col_idx, (int64_t[]){3, 1, 1, 0}, 32);
      memset(a->values, 0, 32);
      a->row_ptr[1] = 2;
      a->row_ptr[2] = 4;
      status = asparse_csr_sort_rows(a);
      if (status == ASPARSE_OK) status = asparse_csr_convert(a, ASPARSE_BF16);
    }
    asparse_memory_fail_at(0);
    assert_true(status == ASPARSE_ERR_MEMORY || n > 7);
    asparse_csr_destroy(&a);
    assert_int_equal(asparse_memory_live_blocks(), live);
    asparse_error_clear();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sorts_and_sums),      cmocka_unit_test(finds_any_disorder),
                                     cmocka_unit_test(rounds_once),         cmocka_unit_test(narrowing_is_checked),
                                     cmocka_unit_test(sizes_that_overflow), cmocka_unit_test(allocation_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
