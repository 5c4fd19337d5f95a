/* Sparse matrices in HDF5: what must be refused, and failures on the way. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "csr_fixture.h"

static void test_structure_must_be_square(void **state) {
  (void)state;
  by_hand h = small();
  asparse_csr *a = NULL;
  h.json = JSON("CSR", "[3, 4]", "4", "float64", ", \"structure\": \"symmetric_lower\"");
  make("oblong.h5", &h);
  expect_failure(asparse_csr_read(comm, in_folder("oblong.h5"), &a, NULL), ASPARSE_ERR_DATA, "3 × 4");
}

static void refuse(const by_hand *h, asparse_status status, const char *words) {
  asparse_csr *a = NULL;
  int64_t before = asparse_memory_live_blocks();
  make("refuse.h5", h);
  expect_failure(asparse_csr_read(comm, in_folder("refuse.h5"), &a, NULL), status, words);
  assert_null(a);
  assert_int_equal(asparse_memory_live_blocks(), before);
}

static void test_damaged_descriptors(void **state) {
  (void)state;
  const struct {
    const char *json, *words;
  } cases[] = {{"{", "not JSON"},
               {"[1]", "no object"},
               {"{\"binsparse\": {}}", "version"},
               {"{\"binsparse\": {\"version\": \"2.0\"}}", "2.0"},
               {"{\"binsparse\": {\"version\": \"0.1\", \"format\": {\"level\": 1}}}", "format"},
               {JSON("CSF", "[3, 4]", "4", "float64", ""), "CSF"},
               {JSON("DMATR", "[3, 4]", "4", "float64", ""), "no sparse matrix"},
               {JSON("CSR", "[3]", "4", "float64", ""), "two dimensions"},
               {JSON("CSR", "[3, 4, 5]", "4", "float64", ""), "shape"},
               {JSON("CSR", "[3, -4]", "4", "float64", ""), "out of range"},
               {JSON("CSR", "[3, 9223372036854775807]", "4", "float64", ""), "out of range"},
               {JSON("CSR", "[3, 99999999999999999999]", "4", "float64", ""), "not JSON"},
               {JSON("CSR", "[3, \"4\"]", "4", "float64", ""), "no integers"},
               {JSON("CSR", "[3, 4]", "-1", "float64", ""), "no count"},
               {JSON("CSR", "[3, 4]", "3", "float64", ""), "3 stored values are declared"},
               {JSON("CSR", "[3, 4]", "5", "float64", ""), "5 stored values are declared"},
               {JSON("CSR", "[4, 4]", "4", "float64", ""), "expected rows + 1 = 5"},
               {JSON("CSR", "[3, 3]", "4", "float64", ""), "element 3 is 3, expected 0 … 2"},
               {JSON("CSR", "[3, 4]", "4", "complex[float64]", ""), "real"},
               {JSON("CSR", "[3, 4]", "4", "float64", ", \"structure\": \"banded\""), "banded"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    by_hand h = small();
    h.json = cases[i].json;
    refuse(&h, ASPARSE_ERR_DATA, cases[i].words);
  }
}

static void test_damaged_arrays(void **state) {
  (void)state;
  by_hand h = small();
  h.n_values = -1;
  refuse(&h, ASPARSE_ERR_DATA, "values is missing");
  h = small();
  h.n_indices = -1;
  refuse(&h, ASPARSE_ERR_DATA, "indices_1 is missing");
  h = small();
  h.pointers[0] = 1;
  refuse(&h, ASPARSE_ERR_DATA, "expected 0");
  h = small();
  h.pointers[1] = 3;
  refuse(&h, ASPARSE_ERR_DATA, "decreases from 3 to 2");
  h = small();
  h.pointers[1] = -3;
  refuse(&h, ASPARSE_ERR_DATA, "-3");
  h = small();
  h.json = "{\"binsparse\": {\"version\": \"0.1\", \"format\": \"CSR\", \"shape\": [3, 4]}}";
  h.pointers[3] = 5;
  refuse(&h, ASPARSE_ERR_DATA, "reaches 5");
  h = small();
  h.n_values = 3;
  refuse(&h, ASPARSE_ERR_DATA, "values has 3");
  h = small();
  h.indices[2] = -1;
  refuse(&h, ASPARSE_ERR_DATA, "element 2 is -1");
  h = small();
  h.indices[3] = INT64_MAX;
  refuse(&h, ASPARSE_ERR_DATA, "element 3");
  h = small();
  h.index_type = H5T_NATIVE_DOUBLE;
  refuse(&h, ASPARSE_ERR_DATA, "expected integers");
}

static void test_fill_value_other_than_zero(void **state) {
  (void)state;
  asparse_csr *a = NULL;
  for (int fill = 0; fill < 2; fill++) {
    barrier();
    if (comm->rank == 0) {
      by_hand h = small();
      const double value = fill;
      h.json = JSON("CSR", "[3, 4]", "4", "float64", ", \"fill\": true");
      hid_t file = new_file("fill.h5");
      fill_group(file, &h, false);
      put(file, "fill_value", H5T_NATIVE_DOUBLE, H5T_NATIVE_DOUBLE, 1, &value);
      H5Fclose(file);
    }
    barrier();
    if (fill == 0) check_dense("fill.h5", small_dense, 12);
    else expect_failure(asparse_csr_read(comm, in_folder("fill.h5"), &a, NULL), ASPARSE_ERR_DATA, "only 0 is read");
  }
}

static void write_text_file(const char *name, const char *text) {
  if (comm->rank == 0) {
    FILE *file = fopen(in_folder(name), "wb");
    fputs(text, file);
    fclose(file);
  }
  barrier();
}

static void test_files_that_are_no_hdf5(void **state) {
  (void)state;
  asparse_csr *a = NULL;
  write_text_file("empty.h5", "");
  write_text_file("text.h5", "1 2 3\n");
  write_text_file("matrix.h5", "%%MatrixMarket matrix coordinate real general\n");
  write_text_file("zip.h5", "PK\003\004 \001");
  write_text_file("binary.h5", "\001\002\003");
  expect_failure(asparse_csr_read(comm, in_folder("none.h5"), &a, NULL), ASPARSE_ERR_NO_INPUT, "No such file");
  expect_failure(asparse_csr_read(comm, folder, &a, NULL), ASPARSE_ERR_NO_INPUT, "folder");
  expect_failure(asparse_csr_read(comm, "/dev/null", &a, NULL), ASPARSE_ERR_NO_INPUT, "regular");
  expect_failure(asparse_csr_read(comm, "", &a, NULL), ASPARSE_ERR_USAGE, "names no file");
  expect_failure(asparse_csr_read(comm, in_folder("empty.h5"), &a, NULL), ASPARSE_ERR_DATA, "empty");
  expect_failure(asparse_csr_read(comm, in_folder("text.h5"), &a, NULL), ASPARSE_ERR_DATA, "text");
  expect_failure(asparse_csr_read(comm, in_folder("matrix.h5"), &a, NULL), ASPARSE_ERR_DATA, "asparse_convert");
  expect_failure(asparse_csr_read(comm, in_folder("zip.h5"), &a, NULL), ASPARSE_ERR_DATA, "zip");
  expect_failure(asparse_csr_read(comm, in_folder("binary.h5"), &a, NULL), ASPARSE_ERR_DATA, "not an HDF5 file");
}

static void test_truncated_file(void **state) {
  (void)state;
  const formula f = {37, 23, SCATTERED};
  asparse_csr *a = make_slab(&f, ASPARSE_FP64), *b = NULL;
  expect_ok(asparse_csr_write(comm, in_folder("short.h5"), a, NULL, NULL));
  struct stat info;
  barrier();
  assert_int_equal(stat(in_folder("short.h5"), &info), 0);
  barrier();
  for (off_t length = info.st_size - 1; length > 0; length = length * 3 / 4) {
    barrier();
    if (comm->rank == 0) assert_int_equal(truncate(in_folder("short.h5"), length), 0);
    barrier();
    expect_failure(asparse_csr_read(comm, in_folder("short.h5"), &b, NULL), ASPARSE_ERR_DATA, "short.h5");
  }
  asparse_csr_destroy(&a);
}

static void test_declared_sizes_beyond_memory(void **state) {
  (void)state;
  const int64_t pointers[] = {0, INT64_C(1) << 40};
  asparse_csr *a = NULL;
  if (comm->rank == 0) {
    hid_t file = new_file("entries.h5");
    put_text(file, "binsparse", JSON("CSR", "[1, 9]", "1099511627776", "float64", ""), false);
    put(file, "pointers_to_1", H5T_NATIVE_INT64, H5T_NATIVE_INT64, 2, pointers);
    put_unwritten(file, "indices_1", H5T_NATIVE_INT64, (hsize_t)1 << 40);
    put_unwritten(file, "values", H5T_NATIVE_DOUBLE, (hsize_t)1 << 40);
    H5Fclose(file);
    file = new_file("rows.h5");
    put_text(file, "binsparse", JSON("CSR", "[1099511627775, 9]", "0", "float64", ""), false);
    put_unwritten(file, "pointers_to_1", H5T_NATIVE_INT64, (hsize_t)1 << 40);
    put_unwritten(file, "indices_1", H5T_NATIVE_INT64, 0);
    put_unwritten(file, "values", H5T_NATIVE_DOUBLE, 0);
    H5Fclose(file);
  }
  barrier();
  expect_failure(asparse_csr_read(comm, in_folder("entries.h5"), &a, NULL), ASPARSE_ERR_MEMORY, "GiB");
  expect_failure(asparse_csr_read(comm, in_folder("rows.h5"), &a, NULL), ASPARSE_ERR_MEMORY, "GiB");
}

static void test_contents_in_other_files(void **state) {
  (void)state;
  asparse_csr *a = NULL;
  by_hand h = small();
  make("target.h5", &h);
  if (comm->rank == 0) {
    char target[256];
    hsize_t four = 4;
    hid_t space = H5Screate_simple(1, &four, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
    snprintf(target, sizeof target, "%s/target.h5", folder);
    hid_t file = new_file("link.h5");
    H5Lcreate_external(target, "/", file, "elsewhere", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/elsewhere", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    h.n_values = -1;
    file = new_file("external.h5");
    fill_group(file, &h, false);
    H5Pset_external(creation, "/etc/passwd", 0, 32);
    H5Dclose(H5Dcreate2(file, "values", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    H5Pclose(creation);
    H5Fclose(file);
    creation = H5Pcreate(H5P_DATASET_CREATE);
    file = new_file("virtual.h5");
    fill_group(file, &h, false);
    H5Pset_virtual(creation, space, target, "values", space);
    H5Dclose(H5Dcreate2(file, "values", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    H5Pclose(creation);
    H5Sclose(space);
    H5Fclose(file);
  }
  barrier();
  expect_failure(asparse_csr_read(comm, in_folder("link.h5::/elsewhere"), &a, NULL), ASPARSE_ERR_DATA, "another file");
  expect_failure(asparse_csr_read(comm, in_folder("link.h5::/soft"), &a, NULL), ASPARSE_ERR_DATA, "another file");
  expect_failure(asparse_csr_read(comm, in_folder("link.h5"), &a, NULL), ASPARSE_ERR_DATA, "no sparse matrix");
  expect_failure(asparse_csr_read(comm, in_folder("external.h5"), &a, NULL), ASPARSE_ERR_DATA, "other files");
  expect_failure(asparse_csr_read(comm, in_folder("virtual.h5"), &a, NULL), ASPARSE_ERR_DATA, "other files");
}

static void test_flipped_bits(void **state) {
  (void)state;
  const formula f = {64, 8, EVERYTHING};
  asparse_csr *a = make_slab(&f, ASPARSE_FP64), *b = NULL;
  expect_ok(asparse_csr_write(comm, in_folder("flip.h5"), a, NULL, NULL));
  haddr_t offsets[3] = {0};
  barrier();
  const char *const names[3] = {"pointers_to_1", "indices_1", "values"};
  if (comm->rank == 0) {
    hid_t file = H5Fopen(in_folder("flip.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    for (int i = 0; i < 3; i++) {
      hid_t id = H5Dopen2(file, names[i], H5P_DEFAULT);
      offsets[i] = H5Dget_offset(id);
      H5Dclose(id);
    }
    H5Fclose(file);
  }
  for (int i = 0; i < 3; i++) {
    for (int byte = 32; byte < 40; byte++) {
      if (comm->rank == 0) flip_byte(in_folder("flip.h5"), (long)offsets[i] + byte);
      barrier();
      asparse_status status = asparse_csr_read(comm, in_folder("flip.h5"), &b, NULL);
      expect_failure(status, ASPARSE_ERR_DATA, "flip.h5");
      barrier();
      if (comm->rank == 0) flip_byte(in_folder("flip.h5"), (long)offsets[i] + byte);
    }
  }
  barrier();
  expect_ok(asparse_csr_read(comm, in_folder("flip.h5"), &b, NULL));
  check_slab(b, &f, ASPARSE_FP64, false);
  asparse_csr_destroy(&a);
  asparse_csr_destroy(&b);
}

static void test_unwritable_places(void **state) {
  (void)state;
  const formula f = {37, 23, SCATTERED};
  asparse_csr *a = make_slab(&f, ASPARSE_FP64);
  write_text_file("file", "x");
  expect_failure(asparse_csr_write(comm, in_folder("none/out.h5"), a, NULL, NULL), ASPARSE_ERR_IO, "No such file");
  expect_failure(asparse_csr_write(comm, in_folder("file/out.h5"), a, NULL, NULL), ASPARSE_ERR_IO, "Not a directory");
  expect_failure(asparse_csr_write(comm, folder, a, NULL, NULL), ASPARSE_ERR_IO, "not a file");
  asparse_csr_destroy(&a);
}

/* A file-size limit stands for a full disk; whatever the limit, the older file stays and nothing else. */
static void test_failed_writes_leave_the_older_file(void **state) {
  (void)state;
  const formula old = {9, 31, DENSE_ROW}, new = {400, 50, EVERYTHING};
  asparse_csr *a = make_slab(&old, ASPARSE_FP64), *b = make_slab(&new, ASPARSE_FP64), *c = NULL;
  struct rlimit before, limit;
  signal(SIGXFSZ, SIG_IGN);
  expect_ok(asparse_csr_write(comm, in_folder("limit.h5"), a, NULL, NULL));
  getrlimit(RLIMIT_FSIZE, &before);
  for (rlim_t bytes = 64; bytes < 250000; bytes = bytes * 3 + 17) {
    limit = before;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
    asparse_status status = asparse_csr_write(comm, in_folder("limit.h5"), b, NULL, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    expect_failure(status, ASPARSE_ERR_IO, "");
    barrier();
    assert_int_equal(count_hidden_files(), 0);
    expect_ok(asparse_csr_read(comm, in_folder("limit.h5"), &c, NULL));
    check_slab(c, &old, ASPARSE_FP64, false);
    asparse_csr_destroy(&c);
  }
  expect_ok(asparse_csr_write(comm, in_folder("limit.h5"), b, NULL, NULL));
  asparse_csr_destroy(&a);
  asparse_csr_destroy(&b);
}

static void test_stale_temporaries(void **state) {
  (void)state;
  const formula f = {9, 31, DENSE_ROW};
  asparse_csr *a = make_slab(&f, ASPARSE_FP64);
  if (comm->rank == 0) {
    char host[65] = "", name[256];
    gethostname(host, 63);
    snprintf(name, sizeof name, ".stale.h5.asparse-%s-999999999", host); /* beyond the largest process id */
    close(open(in_folder(name), O_CREAT | O_WRONLY, 0600));
    assert_int_equal(count_hidden_files(), 1);
  }
  expect_ok(asparse_csr_write(comm, in_folder("stale.h5"), a, NULL, NULL));
  if (comm->rank == 0) assert_int_equal(count_hidden_files(), 0);
  asparse_csr_destroy(&a);
  barrier();
}

/* Every allocation fails once: on all ranks, then on the last only. */
static void test_allocation_failures(void **state) {
  (void)state;
  by_hand h = {JSON("CSR", "[4, 4]", "5", "float64", ", \"structure\": \"symmetric_lower\""),
               {0, 0, 1, 3, 5},
               {0, 2, 0, 0, 2},
               {2, 3, 7, 4, 5},
               5,
               5,
               5,
               0,
               0};
  make("memory.h5", &h);
  int64_t live = asparse_memory_live_blocks();
  for (int only_last = 0; only_last < 2; only_last++) {
    bool here = !only_last || comm->rank == comm->size - 1;
    int failures = 0;
    for (int n = 1; n <= 60; n++) {
      asparse_csr *a = NULL;
      if (here) asparse_memory_fail_at(n);
      asparse_status status = asparse_csr_read(comm, in_folder("memory.h5"), &a, NULL);
      if (status == ASPARSE_OK) status = asparse_csr_write(comm, in_folder("memory-out.h5"), a, NULL, NULL);
      asparse_memory_fail_at(0);
      int64_t same = status;
      expect_ok(asparse_comm_max(comm, &same, 1));
      assert_int_equal(same, status);
      if (status != ASPARSE_OK) assert_int_equal(status, ASPARSE_ERR_MEMORY);
      failures += status != ASPARSE_OK;
      asparse_csr_destroy(&a);
      asparse_error_clear();
      assert_int_equal(asparse_memory_live_blocks(), live);
    }
    assert_true(failures > 10 && failures < 60);
  }
  barrier();
  assert_int_equal(count_hidden_files(), 0);
}

static void test_complex_file_of_another_program(void **state) {
  (void)state;
  asparse_csr *a = NULL;
  const char *path = in_data("binsparse-c/hermitian.coor.bsp.h5");
  if (path) expect_failure(asparse_csr_read(comm, path, &a, NULL), ASPARSE_ERR_DATA, "real matrices");
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_structure_must_be_square),
                                     cmocka_unit_test(test_damaged_descriptors),
                                     cmocka_unit_test(test_damaged_arrays),
                                     cmocka_unit_test(test_fill_value_other_than_zero),
                                     cmocka_unit_test(test_files_that_are_no_hdf5),
                                     cmocka_unit_test(test_truncated_file),
                                     cmocka_unit_test(test_declared_sizes_beyond_memory),
                                     cmocka_unit_test(test_contents_in_other_files),
                                     cmocka_unit_test(test_flipped_bits),
                                     cmocka_unit_test(test_unwritable_places),
                                     cmocka_unit_test(test_failed_writes_leave_the_older_file),
                                     cmocka_unit_test(test_stale_temporaries),
                                     cmocka_unit_test(test_allocation_failures),
                                     cmocka_unit_test(test_complex_file_of_another_program)};
  io_fixture_begin(&argc, &argv);
  return io_fixture_end(cmocka_run_group_tests(tests, NULL, NULL));
}
