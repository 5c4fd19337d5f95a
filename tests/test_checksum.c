/* Content checksums: what the format says of them, whichever instructions compute them. */
#include "io_fixture.h"

#include "io/checksum.h"

enum { MOST = 40000 }; /* more than one run */

/* The definition: the hash of one element (array, position, content). */
static uint64_t defined(int array, int64_t position, uint64_t content) {
  uint64_t x = content ^ ((uint64_t)position + ((uint64_t)array << 56)) * 0x9e3779b97f4a7c15u;
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static const int64_t counts[] = {0, 1, 2, 7, 8, 9, 63, 1000, 16383, 16384, 16385, MOST};

static void test_integers(void **state) {
  (void)state;
  int64_t *from = malloc(MOST * sizeof *from);
  for (int64_t i = 0; i < MOST; i++) from[i] = (int64_t)asparse_mix64((uint64_t)i) >> i % 60;
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    for (int array = 0; array < 5; array += 2) {
      int64_t first = INT64_C(1) << 40, offset = array - 2;
      uint64_t expected = 0;
      for (int64_t i = 0; i < counts[c]; i++) expected += defined(array, first + i, (uint64_t)(from[i] + offset));
      assert_true(asparse_checksum_int64(array, first, from, offset, counts[c]) == expected);
    }
  }
  free(from);
}

static void test_values(void **state) {
  (void)state;
  const asparse_dtype dtypes[] = {ASPARSE_FP64, ASPARSE_FP32, ASPARSE_BF16};
  double *values = malloc(MOST * sizeof *values);
  for (int d = 0; d < 3; d++) {
    for (int64_t i = 0; i < MOST; i++) asparse_store(dtypes[d], values, i, asparse_random_element(3, i, 0));
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
      const int64_t begin = (MOST - counts[c]) / 3;
      uint64_t expected = 0;
      for (int64_t i = 0; i < counts[c]; i++)
        expected += defined(ASPARSE_SUM_VALUES, 5 + i, bits_of(asparse_load(dtypes[d], values, begin + i)));
      assert_true(asparse_checksum_values(ASPARSE_SUM_VALUES, 5, dtypes[d], values, begin, counts[c]) == expected);
    }
  }
  free(values);
}

/* Any cut of an array gives the same sum; another order of its elements does not. */
static void test_slabs_add_up(void **state) {
  (void)state;
  int64_t from[100];
  for (int64_t i = 0; i < 100; i++) from[i] = i * i;
  const uint64_t whole = asparse_checksum_int64(ASPARSE_SUM_INDICES, 0, from, 0, 100);
  for (int64_t cut = 0; cut <= 100; cut++)
    assert_true(asparse_checksum_int64(ASPARSE_SUM_INDICES, 0, from, 0, cut) +
                    asparse_checksum_int64(ASPARSE_SUM_INDICES, cut, from + cut, 0, 100 - cut) ==
                whole);
  from[3] = 16;
  from[4] = 9;
  assert_true(asparse_checksum_int64(ASPARSE_SUM_INDICES, 0, from, 0, 100) != whole);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_integers), cmocka_unit_test(test_values),
                                     cmocka_unit_test(test_slabs_add_up)};
  io_fixture_begin(&argc, &argv);
  return io_fixture_end(cmocka_run_group_tests(tests, NULL, NULL));
}
