/* The sliced-ELLPACK layout: every entry exactly once and in its place, padding harmless, banks apart, bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>
#include <math.h>

#include "base/csr.h"
#include "base/dense.h"
#include "kernels/sell.h"

/* About per_thousand of 1000 elements of row i, more in the first rows when skewed. */
static asparse_local_csr *matrix(int32_t m, int32_t k, int32_t per_thousand, bool skewed) {
  asparse_local_csr *a = NULL;
  assert_int_equal(asparse_local_csr_create(&a, m, k, (int64_t)m * k, ASPARSE_BF16), ASPARSE_OK);
  int64_t e = 0;
  for (int32_t i = 0; i < m; i++) {
    const int32_t wanted = skewed ? 1000 * 3 / (i + 3) : per_thousand;
    for (int32_t j = 0; j < k; j++) {
      if (asparse_mix64((uint64_t)i << 32 | (uint64_t)j) % 1000 >= (uint64_t)wanted) continue;
      a->col_idx[e] = j;
      ((uint16_t *)a->values)[e] = (uint16_t)(asparse_mix64((uint64_t)e) % 0x7f00 + 1);
      e++;
    }
    a->row_ptr[i + 1] = e;
  }
  return a;
}

/* seen[e]++ for the stored entry of that row, column and value; false when there is none. */
static bool mark(const asparse_local_csr *a, int32_t row, int32_t col, uint16_t value, int *seen) {
  for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++) {
    if (a->col_idx[e] != col) continue;
    seen[e]++;
    return ((const uint16_t *)a->values)[e] == value;
  }
  return false;
}

static uint32_t entry_at(const asparse_sell *s, const asparse_sell_slice *slice, int32_t segment, int32_t step) {
  const int64_t quad = ((int64_t)slice->first_quad + step / ASPARSE_SELL_QUAD) * s->height + segment;
  return s->entries[quad * ASPARSE_SELL_QUAD + step % ASPARSE_SELL_QUAD];
}

/* Counts the entries and the padding of one segment; false when one is in the wrong place. */
static bool check_segment(const asparse_local_csr *a, const asparse_sell *s, int32_t index, int32_t segment,
                          int *seen) {
  const asparse_sell_slice *slice = &s->slices[index];
  const int32_t row = s->rows[(int64_t)index * s->height + segment], pieces = s->columns / 8;
  for (int32_t step = 0; step < slice->n_quads * ASPARSE_SELL_QUAD; step++) {
    const uint32_t entry = entry_at(s, slice, segment, step), piece = entry & 0xffff, value = entry >> 16;
    if (piece % (uint32_t)pieces != 0) return false;
    const int32_t col = (int32_t)piece / pieces;
    if (col >= s->k) {
      if (value != 0 || col >= s->k + 64 / s->columns) return false; /* not one of the rows of zeros */
    } else if (row < 0 || !mark(a, row, col, (uint16_t)value, seen)) {
      return false;
    }
  }
  return true;
}

static void check_layout(const asparse_local_csr *a, const asparse_sell *s) {
  int *seen = calloc((size_t)a->row_ptr[a->m] + 1, sizeof *seen),
      *segments = calloc((size_t)a->m + 1, sizeof *segments);
  int64_t quads = 0;
  assert_int_equal(s->height * s->columns, 256);
  assert_int_equal(s->nnz, a->row_ptr[a->m]);
  for (int32_t i = 0; i < s->n_slices; i++) {
    const asparse_sell_slice *slice = &s->slices[i];
    assert_int_equal(slice->first_quad, quads);
    quads += slice->n_quads;
    if (i > 0) assert_true(slice->n_quads <= s->slices[i - 1].n_quads);
    for (int32_t g = 0; g < s->height; g++) {
      const int32_t row = s->rows[(int64_t)i * s->height + g];
      assert_int_equal(row, s->rows[(int64_t)i * s->height + g / slice->parts * slice->parts]);
      if (row >= 0) segments[row] += g % slice->parts == 0;
      assert_true(check_segment(a, s, i, g, seen));
    }
  }
  assert_int_equal(quads * s->height * ASPARSE_SELL_QUAD, s->n_stored);
  for (int64_t e = 0; e < s->nnz; e++) assert_int_equal(seen[e], 1);
  for (int32_t row = 0; row < a->m; row++) assert_int_equal(segments[row], 1); /* empty rows too: C is overwritten */
  free(seen);
  free(segments);
}

static void test_every_entry_once(void **state) {
  (void)state;
  static const int32_t shapes[][3] = {{0, 5, 0}, {7, 0, 0}, {9, 9, 0}, {1, 300, 1000}, {83, 71, 100}, {200, 129, 30}};
  for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
    const int32_t *shape = shapes[i / 2];
    asparse_local_csr *a = matrix(shape[0], shape[1], shape[2], i % 2);
    for (int32_t columns = 8; columns <= 64; columns *= 2) {
      for (int32_t most_steps = 1; most_steps <= 1000; most_steps *= 31) {
        asparse_sell *s = NULL;
        assert_int_equal(asparse_sell_build(a, columns, most_steps, &s), ASPARSE_OK);
        check_layout(a, s);
        asparse_sell_destroy(&s);
        assert_null(s);
      }
    }
    asparse_local_csr_destroy(&a);
  }
}

/* Steps at which two of the segments that read together start in the same bank. */
static int64_t conflicts_of(const asparse_sell *s, int64_t *steps) {
  const int32_t residues = 64 / s->columns, pieces = s->columns / 8;
  int64_t conflicts = 0;
  *steps = 0;
  for (int32_t i = 0; i < s->n_slices; i++) {
    for (int32_t begin = 0; begin < s->height; begin += residues) {
      for (int32_t step = 0; step < s->slices[i].n_quads * ASPARSE_SELL_QUAD; step++, ++*steps) {
        uint32_t rows[8] = {0};
        bool conflict = false;
        for (int32_t g = 0; g < residues; g++) {
          rows[g] = (entry_at(s, &s->slices[i], begin + g, step) & 0xffff) / (uint32_t)pieces;
          for (int32_t h = 0; h < g; h++) /* the same row is one read */
            conflict |= rows[h] != rows[g] && rows[h] % (uint32_t)residues == rows[g] % (uint32_t)residues;
        }
        conflicts += conflict;
      }
    }
  }
  return conflicts;
}

static void test_rows_without_choice_do_not_conflict(void **state) {
  (void)state;
  asparse_local_csr *a = matrix(64, 128, 1000, false); /* dense: as many columns of each residue */
  for (int32_t columns = 8; columns <= 64; columns *= 2) {
    asparse_sell *s = NULL;
    int64_t steps;
    assert_int_equal(asparse_sell_build(a, columns, 128, &s), ASPARSE_OK);
    assert_int_equal(conflicts_of(s, &steps), 0);
    assert_true(steps > 0);
    asparse_sell_destroy(&s);
  }
  asparse_local_csr_destroy(&a);
}

/* In random order 8, 4 and 2 rows conflict in 99.8, 91 and 50 % of the steps. */
static void test_random_rows_rarely_conflict(void **state) {
  (void)state;
  static const double most[] = {0.25, 0.12, 0.06, 0};
  asparse_local_csr *a = matrix(512, 1024, 100, false);
  for (int i = 0; i < 4; i++) {
    asparse_sell *s = NULL;
    int64_t steps;
    assert_int_equal(asparse_sell_build(a, 8 << i, 256, &s), ASPARSE_OK);
    const double conflicts = (double)conflicts_of(s, &steps);
    print_message("%d columns: %.1f %% of the steps conflict, %.1f %% padding\n", 8 << i,
                  100 * conflicts / (double)steps, 100 * ((double)s->n_stored / (double)s->nnz - 1));
    assert_true(conflicts <= most[i] * (double)steps);
    asparse_sell_destroy(&s);
  }
  asparse_local_csr_destroy(&a);
}

static void test_bad_input(void **state) {
  (void)state;
  asparse_sell *s = NULL;
  asparse_local_csr *a = matrix(4, 10, 500, false), *wide = matrix(1, asparse_sell_most_k(16) + 1, 1, false);
  assert_int_equal(asparse_sell_build(a, 24, 9, &s), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  assert_int_equal(asparse_sell_build(a, 8, 0, &s), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  assert_int_equal(asparse_sell_build(wide, 16, 9, &s), ASPARSE_ERR_USAGE);
  assert_non_null(strstr(asparse_error_message(), "fewer columns"));
  asparse_error_clear();
  a->dtype = ASPARSE_FP32;
  assert_int_equal(asparse_sell_build(a, 8, 9, &s), ASPARSE_ERR_USAGE);
  asparse_error_clear();
  assert_null(s);
  asparse_local_csr_destroy(&a);
  asparse_local_csr_destroy(&wide);
}

static void test_choice_fits(void **state) {
  (void)state;
  for (int64_t k = 1; k < 70000; k = k * 2 + 1) {
    const asparse_sell_profile a = {.m = 4096, .k = k, .n_stored = 4096 * 20, .longest_row = 20};
    const asparse_sell_config c = asparse_sell_choose(&a, 256, 132);
    if (k > asparse_sell_most_k(8)) {
      assert_int_equal(c.columns, 0);
      continue;
    }
    assert_true(c.columns >= 8 && k <= asparse_sell_most_k(c.columns));
    assert_true(c.row_groups >= 1 && c.most_steps >= 1 && c.predicted_seconds > 0 && c.predicted_seconds < 1);
  }
}

/* Times measured on one H200, of 512 … 14000 columns. */
static void test_prediction(void **state) {
  (void)state;
  static const struct {
    asparse_sell_profile a;
    int64_t n;
    int32_t columns;
    double seconds;
  } measured[] = {
      {{2048, 2048, 41997, 40}, 256, 32, 6.0e-6},      {{2048, 2048, 418316, 250}, 1024, 32, 45.7e-6},
      {{4096, 4096, 168675, 70}, 1024, 16, 27.2e-6},   {{4096, 4096, 1676635, 480}, 256, 16, 47.6e-6},
      {{8192, 8192, 671909, 120}, 256, 8, 31.4e-6},    {{8192, 8192, 1342198, 210}, 1024, 8, 155.7e-6},
      {{4096, 4096, 329678, 4096}, 1024, 16, 46.7e-6},
  };
  for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
    const asparse_sell_config c = asparse_sell_configure(&measured[i].a, measured[i].n, 132, measured[i].columns);
    print_message("k %lld, n %lld: predicted %.1f us, measured %.1f\n", (long long)measured[i].a.k,
                  (long long)measured[i].n, 1e6 * c.predicted_seconds, 1e6 * measured[i].seconds);
    assert_true(fabs(c.predicted_seconds / measured[i].seconds - 1) < 0.25);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_entry_once),
      cmocka_unit_test(test_rows_without_choice_do_not_conflict),
      cmocka_unit_test(test_random_rows_rarely_conflict),
      cmocka_unit_test(test_bad_input),
      cmocka_unit_test(test_choice_fits),
      cmocka_unit_test(test_prediction),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
