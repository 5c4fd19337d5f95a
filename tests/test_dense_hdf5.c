/* Dense matrices in HDF5: round trips, datasets as other programs write them, refusals. */
#include "io_fixture.h"

#include <signal.h>
#include <sys/resource.h>

static double value_of(int64_t i, int64_t j) { return asparse_random_element(3, i, j); }

/* Rows of this rank of an m × n matrix, at distance n + gap. */
static asparse_dense *make_slab(int64_t m, int64_t n, int64_t gap, asparse_dtype dtype, int64_t *row_begin) {
  asparse_dense *a = NULL;
  *row_begin = asparse_even_start(m, comm->size, comm->rank);
  int64_t rows = asparse_even_start(m, comm->size, comm->rank + 1) - *row_begin;
  expect_ok(asparse_dense_create(&a, rows, n + gap, dtype));
  a->n = n;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < n; j++) asparse_store(dtype, a->values, i * a->ld + j, value_of(*row_begin + i, j));
  return a;
}

static void check_rows(const asparse_dense *a, int64_t row_begin, asparse_dtype written) {
  for (int64_t i = 0; i < a->m; i++) {
    for (int64_t j = 0; j < a->n; j++) {
      double once[1], twice[1];
      asparse_store(written, once, 0, value_of(row_begin + i, j));
      asparse_store(a->dtype, twice, 0, asparse_load(written, once, 0));
      assert_true(asparse_load(a->dtype, a->values, i * a->ld + j) == asparse_load(a->dtype, twice, 0));
    }
  }
}

static void round_trip(int64_t m, int64_t n, int64_t gap, asparse_dtype written, asparse_dtype read) {
  int64_t row_begin = 0, found_m = -1, found_n = -1;
  asparse_dtype found = ASPARSE_BF16;
  const asparse_provenance provenance = {"test_dense_hdf5", "a formula", NULL, 0};
  asparse_dense *a = make_slab(m, n, gap, written, &row_begin), *b = make_slab(m, n, gap, read, &row_begin);
  memset(b->values, 0xff, (size_t)(b->m * b->ld) * asparse_dtype_size(read));
  expect_ok(asparse_dense_write(comm, in_folder("dense.h5"), m, row_begin, a, &provenance));
  expect_ok(asparse_dense_shape(comm, in_folder("dense.h5"), &found_m, &found_n, &found));
  assert_int_equal(found_m, m);
  assert_int_equal(found_n, n);
  assert_int_equal(found, written == ASPARSE_FP64 ? ASPARSE_FP64 : ASPARSE_FP32);
  expect_ok(asparse_dense_read(comm, in_folder("dense.h5"), row_begin, b));
  check_rows(b, row_begin, written);
  asparse_dense_destroy(&a);
  asparse_dense_destroy(&b);
}

static void test_round_trips(void **state) {
  (void)state;
  const int64_t shapes[][2] = {{13, 7}, {1, 1}, {0, 4}, {4, 0}, {0, 0}, {100, 1}, {2, 50}, {64, 16}};
  int64_t message_bytes = comm->message_bytes;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    for (int written = ASPARSE_FP64; written <= ASPARSE_BF16; written++) {
      for (int read = ASPARSE_FP64; read <= ASPARSE_BF16; read++) {
        comm->message_bytes = read == ASPARSE_FP64 ? message_bytes : 48; /* many pieces */
        round_trip(shapes[s][0], shapes[s][1], written == read ? 3 : 0, (asparse_dtype)written, (asparse_dtype)read);
      }
    }
  }
  comm->message_bytes = message_bytes;
}

/* Every rank reads all of it, and rows from the middle: ranges that overlap. */
static void test_overlapping_reads(void **state) {
  (void)state;
  int64_t row_begin = 0, m = 37, n = 5;
  asparse_dense *a = make_slab(m, n, 0, ASPARSE_FP64, &row_begin), *b = NULL;
  expect_ok(asparse_dense_write(comm, in_folder("overlap.h5"), m, row_begin, a, NULL));
  for (int64_t first = 0; first < 30; first += 7) {
    int64_t begin = comm->rank == 1 ? first + 2 : first;
    expect_ok(asparse_dense_create(&b, comm->rank == 1 ? 1 : m - begin, n, ASPARSE_FP64));
    expect_ok(asparse_dense_read(comm, in_folder("overlap.h5"), begin, b));
    check_rows(b, begin, ASPARSE_FP64);
    asparse_dense_destroy(&b);
  }
  asparse_dense_destroy(&a);
}

/* ---- files made by hand ----------------------------------------------------------------------- */

static void put_2d(hid_t where, const char *name, hid_t type, hsize_t m, hsize_t n, hsize_t chunk, const double *data) {
  hsize_t shape[2] = {m, n}, chunks[2] = {chunk, chunk};
  hid_t space = H5Screate_simple(2, shape, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
  if (chunk) H5Pset_chunk(creation, 2, chunks);
  if (chunk) H5Pset_deflate(creation, 1);
  hid_t id = H5Dcreate2(where, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  assert_true(id >= 0);
  assert_true(H5Dwrite(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  H5Dclose(id);
  H5Pclose(creation);
  H5Sclose(space);
}

/* Reads this rank's rows and compares with i · n + j. */
static void check_counting(const char *name, int64_t m, int64_t n, asparse_dtype dtype) {
  int64_t found_m = -1, found_n = -1, row_begin = 0;
  asparse_dtype found;
  expect_ok(asparse_dense_shape(comm, in_folder(name), &found_m, &found_n, &found));
  assert_int_equal(found_m, m);
  assert_int_equal(found_n, n);
  asparse_dense *a = make_slab(m, n, 2, dtype, &row_begin);
  expect_ok(asparse_dense_read(comm, in_folder(name), row_begin, a));
  for (int64_t i = 0; i < a->m; i++)
    for (int64_t j = 0; j < n; j++)
      assert_true(asparse_load(dtype, a->values, i * a->ld + j) == (double)((row_begin + i) * n + j));
  asparse_dense_destroy(&a);
}

#define DENSE_JSON(format, shape)                                                                                      \
  "{\"binsparse\": {\"version\": \"0.1\", \"format\": \"" format "\", \"shape\": " shape                               \
  ", \"number_of_stored_values\": 12, \"data_types\": {\"values\": \"float64\"}}}"
#define DENSE_SYMMETRIC                                                                                                \
  "{\"binsparse\": {\"version\": \"0.1\", \"format\": \"DMATR\", \"shape\": [3, 4], \"structure\": \"symmetric_lower\"}}"

static void test_datasets_of_other_programs(void **state) {
  (void)state;
  double counting[120];
  for (int i = 0; i < 120; i++) counting[i] = i;
  if (comm->rank == 0) {
    hid_t file = new_file("kinds.h5");
    put_2d(file, "plain", H5T_IEEE_F64LE, 10, 12, 0, counting);
    put_2d(file, "single", H5T_IEEE_F32LE, 10, 12, 0, counting);
    put_2d(file, "big_endian", H5T_IEEE_F64BE, 10, 12, 0, counting);
    put_2d(file, "integers", H5T_STD_U16BE, 10, 12, 0, counting);
    put_2d(file, "compressed", H5T_IEEE_F64LE, 10, 12, 4, counting);
    put(file, "column", H5T_IEEE_F32LE, H5T_NATIVE_DOUBLE, 20, counting);
    hid_t group = H5Gcreate2(file, "matrix", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    put_text(group, "binsparse", DENSE_JSON("DMATR", "[3, 4]"), true);
    put(group, "values", H5T_NATIVE_DOUBLE, H5T_NATIVE_DOUBLE, 12, counting);
    H5Gclose(group);
    group = H5Gcreate2(file, "vector", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    put_text(group, "binsparse", DENSE_JSON("DVEC", "[12]"), false);
    put(group, "values", H5T_NATIVE_DOUBLE, H5T_NATIVE_DOUBLE, 12, counting);
    H5Gclose(group);
    H5Fclose(file);
    file = new_file("single.h5");
    put_2d(file, "B", H5T_IEEE_F64LE, 10, 12, 0, counting);
    H5Fclose(file);
  }
  barrier();
  for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) {
    check_counting("kinds.h5::/plain", 10, 12, (asparse_dtype)dtype);
    check_counting("kinds.h5::/single", 10, 12, (asparse_dtype)dtype);
    check_counting("kinds.h5::/big_endian", 10, 12, (asparse_dtype)dtype);
    check_counting("kinds.h5::/integers", 10, 12, (asparse_dtype)dtype);
    check_counting("kinds.h5::/compressed", 10, 12, (asparse_dtype)dtype);
    check_counting("kinds.h5::/column", 20, 1, (asparse_dtype)dtype);
    check_counting("kinds.h5::/matrix", 3, 4, (asparse_dtype)dtype);
    check_counting("kinds.h5::/vector", 12, 1, (asparse_dtype)dtype);
  }
  check_counting("single.h5", 10, 12, ASPARSE_FP64); /* the only one */
}

/* Binsparse DMATC in one dimension, and a MATLAB array, whose dimensions HDF5 sees in reverse: 10i + j at (i, j). */
static void test_matrices_by_columns(void **state) {
  (void)state;
  const char *const names[] = {"columns.h5::/binsparse", "columns.h5::/matlab"};
  const int64_t message_bytes = comm->message_bytes;
  enum { M = 7, N = 5, LD = 6 };
  double by_columns[N * M];
  for (int j = 0; j < N; j++)
    for (int i = 0; i < M; i++) by_columns[j * M + i] = 10 * i + j;
  if (comm->rank == 0) {
    hsize_t shape[2] = {N, M};
    hid_t file = new_file("columns.h5"), space = H5Screate_simple(2, shape, NULL);
    hid_t group = H5Gcreate2(file, "binsparse", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    put_text(group, "binsparse", DENSE_JSON("DMATC", "[7, 5]"), false);
    put(group, "values", H5T_STD_I32BE, H5T_NATIVE_DOUBLE, N * M, by_columns);
    hid_t matlab = H5Dcreate2(file, "matlab", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    put_text(matlab, "MATLAB_class", "single", true);
    assert_true(H5Dwrite(matlab, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, by_columns) >= 0);
    H5Dclose(matlab);
    H5Gclose(group);
    H5Sclose(space);
    H5Fclose(file);
  }
  barrier();
  for (int which = 0; which < 4; which++) {
    const char *path = in_folder(names[which % 2]);
    int64_t m = 0, n = 0, begin = asparse_even_start(M, comm->size, comm->rank);
    int64_t count = asparse_even_start(M, comm->size, comm->rank + 1) - begin;
    double values[M * LD];
    asparse_dtype dtype;
    asparse_dense a = {.m = count, .n = N, .ld = LD, .dtype = ASPARSE_FP64, .values = values};
    comm->message_bytes = which < 2 ? message_bytes : 16; /* many pieces */
    expect_ok(asparse_dense_shape(comm, path, &m, &n, &dtype));
    assert_true(m == M && n == N && dtype == (which % 2 ? ASPARSE_FP32 : ASPARSE_FP64));
    expect_ok(asparse_dense_read(comm, path, begin, &a));
    for (int64_t i = 0; i < count; i++)
      for (int64_t j = 0; j < N; j++) assert_true(values[i * LD + j] == (double)(10 * (begin + i) + j));
  }
  comm->message_bytes = message_bytes;
}

static void refuse(const char *name, asparse_status status, const char *words) {
  int64_t m = 0, n = 0;
  asparse_dtype dtype;
  expect_failure(asparse_dense_shape(comm, in_folder(name), &m, &n, &dtype), status, words);
}

static void test_refusals(void **state) {
  (void)state;
  const double values[12] = {0};
  if (comm->rank == 0) {
    const char *const groups[][2] = {{"symmetric", DENSE_SYMMETRIC},
                                     {"other_shape", DENSE_JSON("DMATR", "[3, 5]")},
                                     {"overflow", DENSE_JSON("DMATR", "[4611686018427387904, 4]")},
                                     {"sparse", DENSE_JSON("CSR", "[3, 4]")}};
    hsize_t shape[3] = {2, 2, 2};
    hid_t file = new_file("refuse.h5"), space = H5Screate_simple(3, shape, NULL);
    for (int i = 0; i < 4; i++) {
      hid_t group = H5Gcreate2(file, groups[i][0], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      put_text(group, "binsparse", groups[i][1], false);
      put(group, "values", H5T_NATIVE_DOUBLE, H5T_NATIVE_DOUBLE, 12, values);
      H5Gclose(group);
    }
    H5Gclose(H5Gcreate2(file, "empty", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "cube", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Fclose(file);
  }
  barrier();
  refuse("refuse.h5::/symmetric", ASPARSE_ERR_DATA, "symmetric_lower");
  refuse("refuse.h5::/other_shape", ASPARSE_ERR_DATA, "3 × 5");
  refuse("refuse.h5::/overflow", ASPARSE_ERR_DATA, "expected those of");
  refuse("refuse.h5::/sparse", ASPARSE_ERR_DATA, "no dense matrix");
  refuse("refuse.h5::/empty", ASPARSE_ERR_DATA, "no dense matrix");
  refuse("refuse.h5::/cube", ASPARSE_ERR_DATA, "3 dimensions");
  refuse("refuse.h5::/none", ASPARSE_ERR_USAGE, "/none");
  refuse("refuse.h5", ASPARSE_ERR_USAGE, "name it");
  refuse("none.h5", ASPARSE_ERR_NO_INPUT, "No such file");
}

static void test_rows_out_of_range(void **state) {
  (void)state;
  int64_t row_begin = 0;
  asparse_dense *a = make_slab(9, 4, 0, ASPARSE_FP64, &row_begin);
  expect_ok(asparse_dense_write(comm, in_folder("range.h5"), 9, row_begin, a, NULL));
  expect_failure(asparse_dense_read(comm, in_folder("range.h5"), row_begin + 1, a), ASPARSE_ERR_USAGE, "9 × 4");
  expect_failure(asparse_dense_read(comm, in_folder("range.h5"), -1, a), ASPARSE_ERR_USAGE, "9 × 4");
  a->n = 3;
  expect_failure(asparse_dense_read(comm, in_folder("range.h5"), row_begin, a), ASPARSE_ERR_USAGE, "3 columns");
  a->n = 4;
  expect_failure(asparse_dense_write(comm, in_folder("range.h5"), 10, row_begin, a, NULL), ASPARSE_ERR_RUNTIME,
                 "slabs");
  asparse_dense_destroy(&a);
}

static void test_existence(void **state) {
  (void)state;
  bool exists = false;
  if (comm->rank == 0) {
    hid_t file = new_file("exists.h5");
    H5Gclose(H5Gcreate2(file, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Lcreate_soft("/nowhere", file, "dangling", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/", file, "outside", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
  }
  barrier();
  expect_ok(asparse_object_exists(comm, in_folder("exists.h5"), "/x", &exists));
  assert_true(exists);
  expect_ok(asparse_object_exists(comm, in_folder("exists.h5"), "/y/z", &exists));
  assert_false(exists);
  expect_ok(asparse_object_exists(comm, in_folder("exists.h5"), "/dangling", &exists));
  assert_false(exists);
  expect_failure(asparse_object_exists(comm, in_folder("exists.h5"), "/outside", &exists), ASPARSE_ERR_DATA,
                 "another file");
  expect_failure(asparse_object_exists(comm, in_folder("none.h5"), "/x", &exists), ASPARSE_ERR_NO_INPUT, "none.h5");
}

static void test_flipped_bit(void **state) {
  (void)state;
  int64_t row_begin = 0;
  asparse_dense *a = make_slab(9, 4, 0, ASPARSE_FP64, &row_begin);
  expect_ok(asparse_dense_write(comm, in_folder("flip.h5"), 9, row_begin, a, NULL));
  barrier();
  if (comm->rank == 0) {
    hid_t file = H5Fopen(in_folder("flip.h5"), H5F_ACC_RDONLY, H5P_DEFAULT), id = H5Dopen2(file, "values", H5P_DEFAULT);
    long offset = (long)H5Dget_offset(id);
    H5Dclose(id);
    H5Fclose(file);
    flip_byte(in_folder("flip.h5"), offset + 35 * 8 + 2); /* in the last row */
  }
  barrier();
  expect_failure(asparse_dense_read(comm, in_folder("flip.h5"), row_begin, a), ASPARSE_ERR_DATA, "checksum");
  asparse_dense_destroy(&a);
}

static void test_failed_writes(void **state) {
  (void)state;
  int64_t row_begin = 0;
  asparse_dense *a = make_slab(200, 16, 0, ASPARSE_FP64, &row_begin);
  struct rlimit before, limit;
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &before);
  for (rlim_t bytes = 100; bytes < 26000; bytes = bytes * 3 + 1) {
    limit = before;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
    asparse_status status = asparse_dense_write(comm, in_folder("limit.h5"), 200, row_begin, a, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    expect_failure(status, ASPARSE_ERR_IO, "limit.h5");
    barrier();
    assert_int_equal(count_hidden_files(), 0);
    assert_int_equal(access(in_folder("limit.h5"), F_OK), -1);
  }
  expect_failure(asparse_dense_write(comm, in_folder("none/x.h5"), 200, row_begin, a, NULL), ASPARSE_ERR_IO,
                 "none/x.h5");
  asparse_dense_destroy(&a);
}

/* Every allocation fails once: on all ranks, then on the last only. */
static void test_allocation_failures(void **state) {
  (void)state;
  int64_t row_begin = 0;
  asparse_dense *a = make_slab(9, 4, 0, ASPARSE_FP32, &row_begin);
  expect_ok(asparse_dense_write(comm, in_folder("memory.h5"), 9, row_begin, a, NULL));
  int64_t live = asparse_memory_live_blocks();
  for (int only_last = 0; only_last < 2; only_last++) {
    bool here = !only_last || comm->rank == comm->size - 1;
    int failures = 0;
    for (int n = 1; n <= 25; n++) {
      if (here) asparse_memory_fail_at(n);
      asparse_status status = asparse_dense_read(comm, in_folder("memory.h5"), row_begin, a);
      if (status == ASPARSE_OK) status = asparse_dense_write(comm, in_folder("memory.h5"), 9, row_begin, a, NULL);
      asparse_memory_fail_at(0);
      int64_t same = status;
      expect_ok(asparse_comm_max(comm, &same, 1));
      assert_int_equal(same, status);
      failures += status != ASPARSE_OK;
      asparse_error_clear();
      assert_int_equal(asparse_memory_live_blocks(), live);
    }
    assert_true(failures > 2 && failures < 25);
  }
  asparse_dense_destroy(&a);
}

static void test_binsparse_files_of_other_programs(void **state) {
  (void)state;
  int64_t m = 0, n = 0;
  asparse_dtype dtype;
  asparse_dense *a = NULL;
  const char *path = in_data("binsparse/bar_DVEC__bar_DVEC.bsp.h5");
  if (path) {
    expect_ok(asparse_dense_shape(comm, path, &m, &n, &dtype));
    assert_int_equal(m, 9);
    assert_int_equal(n, 1);
    expect_ok(asparse_dense_create(&a, 9, 1, ASPARSE_FP64));
    expect_ok(asparse_dense_read(comm, path, 0, a));
    assert_true(((double *)a->values)[2] == 13 && ((double *)a->values)[8] == 19);
    asparse_dense_destroy(&a);
  }
  path = in_data("binsparse/b1_ss_DMAT__b1_ss_DMAT.bsp.h5");
  if (path) {
    expect_ok(asparse_dense_shape(comm, path, &m, &n, &dtype));
    assert_int_equal(m * n, 49);
  }
  path = in_data("binsparse/farm_DMATR__farm_DMATR.bsp.h5"); /* by columns, whatever its name */
  if (path) {
    expect_ok(asparse_dense_shape(comm, path, &m, &n, &dtype));
    assert_int_equal(m, 7);
    assert_int_equal(n, 17);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trips),
                                     cmocka_unit_test(test_overlapping_reads),
                                     cmocka_unit_test(test_datasets_of_other_programs),
                                     cmocka_unit_test(test_matrices_by_columns),
                                     cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_rows_out_of_range),
                                     cmocka_unit_test(test_existence),
                                     cmocka_unit_test(test_flipped_bit),
                                     cmocka_unit_test(test_failed_writes),
                                     cmocka_unit_test(test_allocation_failures),
                                     cmocka_unit_test(test_binsparse_files_of_other_programs)};
  io_fixture_begin(&argc, &argv);
  return io_fixture_end(cmocka_run_group_tests(tests, NULL, NULL));
}
