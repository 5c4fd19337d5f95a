/* The first error is kept, with its place; exit codes are those of the manual. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

static void first_error_is_kept(void **unused) {
  (void)unused;
  assert_string_equal(asparse_error_message(), "");
  assert_int_equal(ASPARSE_FAIL(ASPARSE_ERR_DATA, "row %d is damaged", 7), ASPARSE_ERR_DATA);
  assert_int_equal(ASPARSE_FAIL(ASPARSE_ERR_IO, "a later error"), ASPARSE_ERR_IO);
  assert_string_equal(asparse_error_message(), "row 7 is damaged");
  assert_memory_equal(asparse_error_source(), "tests/test_status.c:", 20);
  asparse_error_prefix("file %s", "a.h5");
  assert_string_equal(asparse_error_message(), "file a.h5: row 7 is damaged");
  asparse_error_clear();
  assert_string_equal(asparse_error_message(), "");
}

static void long_messages_are_cut(void **unused) {
  (void)unused;
  char text[5000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s", text);
  asparse_error_prefix("%s", text);
  assert_in_range(strlen(asparse_error_message()), 100, sizeof text - 1);
  asparse_error_clear();
}

static void exit_codes(void **unused) {
  (void)unused;
  static const int codes[] = {[ASPARSE_OK] = 0,         [ASPARSE_INTERRUPTED] = 85,  [ASPARSE_ERR_VERIFY] = 3,
                              [ASPARSE_ERR_USAGE] = 2,  [ASPARSE_ERR_NO_INPUT] = 66, [ASPARSE_ERR_DATA] = 65,
                              [ASPARSE_ERR_MEMORY] = 1, [ASPARSE_ERR_IO] = 1,        [ASPARSE_ERR_MPI] = 1,
                              [ASPARSE_ERR_DEVICE] = 1, [ASPARSE_ERR_RUNTIME] = 1};
  for (int status = ASPARSE_OK; status <= ASPARSE_ERR_RUNTIME; status++) {
    assert_int_equal(asparse_exit_code((asparse_status)status), codes[status]);
    assert_true(strlen(asparse_status_name((asparse_status)status)) > 1);
  }
}

static void memory_is_counted(void **unused) {
  (void)unused;
  int64_t blocks = asparse_memory_live_blocks(), bytes = asparse_memory_live_bytes();
  char *small = asparse_malloc(100, 1, "small"), *large = asparse_calloc(1 << 20, 8, "large");
  assert_int_equal((uintptr_t)small % 64, 0);
  assert_int_equal((uintptr_t)large % 64, 0);
  assert_int_equal(large[(8 << 20) - 1], 0);
  assert_int_equal(asparse_memory_live_blocks(), blocks + 2);
  assert_int_equal(asparse_memory_live_bytes(), bytes + 100 + (8 << 20));
  assert_true(asparse_memory_peak_bytes() >= bytes + 100 + (8 << 20));
  asparse_free(small);
  asparse_free(large);
  asparse_free(NULL);
  assert_int_equal(asparse_memory_live_blocks(), blocks);
  asparse_memory_fail_at(2);
  char *first = asparse_malloc(1, 1, "first");
  assert_non_null(first);
  assert_null(asparse_malloc(1, 1, "second"));
  assert_non_null(strstr(asparse_error_message(), "second"));
  asparse_memory_fail_at(0);
  asparse_free(first);
  asparse_error_clear();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(first_error_is_kept), cmocka_unit_test(long_messages_are_cut),
                                     cmocka_unit_test(exit_codes), cmocka_unit_test(memory_is_counted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
