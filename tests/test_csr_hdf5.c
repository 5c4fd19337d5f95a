/* Sparse matrices in HDF5: round trips, and what other programs write. */
#include "csr_fixture.h"

static void round_trip(const formula *f, asparse_dtype dtype, const char *value_type) {
  asparse_csr *a = make_slab(f, dtype), *b = NULL;
  asparse_source source;
  const asparse_provenance provenance = {"test_csr_hdf5", "a formula", "none", 1};
  bool ones = value_type && strcmp(value_type, "pattern") == 0;
  expect_ok(asparse_csr_write(comm, in_folder("round.h5"), a, value_type, &provenance));
  expect_ok(asparse_csr_read(comm, in_folder("round.h5"), &b, &source));
  check_slab(b, f, dtype, ones);
  assert_int_equal(b->dtype, ones || dtype == ASPARSE_FP64 ? ASPARSE_FP64 : ASPARSE_FP32);
  assert_string_equal(source.format, "Binsparse CSR");
  assert_string_equal(source.structure, "general");
  assert_string_equal(source.value_type, ones ? "iso[int8]" : dtype == ASPARSE_FP64 ? "float64" : "float32");
  assert_int_equal(source.stored_entries, a->nnz);
  asparse_csr_destroy(&a);
  asparse_csr_destroy(&b);
}

static void test_round_trips(void **state) {
  (void)state;
  const formula formulas[] = {{37, 23, SCATTERED}, {0, 0, NOTHING},     {0, 5, NOTHING},    {5, 0, NOTHING},
                              {1, 1, EVERYTHING},  {1, 1, NOTHING},     {6, 4, NOTHING},    {9, 31, DENSE_ROW},
                              {64, 8, EVERYTHING}, {2, 300, SCATTERED}, {300, 2, SCATTERED}};
  int64_t message_bytes = comm->message_bytes;
  for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
    for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) round_trip(&formulas[i], (asparse_dtype)dtype, NULL);
    round_trip(&formulas[i], ASPARSE_FP64, "pattern");
    comm->message_bytes = 40; /* many pieces, of unequal number on the ranks */
    round_trip(&formulas[i], ASPARSE_FP64, "float64");
    comm->message_bytes = message_bytes;
  }
}

/* A command line longer than an object header holds. */
static void test_long_provenance(void **state) {
  (void)state;
  const formula f = {9, 31, DENSE_ROW};
  char *options = malloc(200001);
  memset(options, 'x', 200000);
  options[200000] = '\0';
  const asparse_provenance provenance = {"", "source", options, 0};
  asparse_csr *a = make_slab(&f, ASPARSE_FP64), *b = NULL;
  expect_ok(asparse_csr_write(comm, in_folder("long.h5"), a, NULL, &provenance));
  expect_ok(asparse_csr_read(comm, in_folder("long.h5"), &b, NULL));
  check_slab(b, &f, ASPARSE_FP64, false);
  asparse_csr_destroy(&a);
  asparse_csr_destroy(&b);
  free(options);
}

static void test_slabs_are_near_equal(void **state) {
  (void)state;
  const formula f = {400, 50, SCATTERED};
  asparse_csr *a = make_slab(&f, ASPARSE_FP64), *b = NULL;
  expect_ok(asparse_csr_write(comm, in_folder("even.h5"), a, NULL, NULL));
  expect_ok(asparse_csr_read(comm, in_folder("even.h5"), &b, NULL));
  int64_t work = asparse_csr_nnz_local(b) + b->n_rows, mean = (b->nnz + b->m) / comm->size;
  assert_true(work >= mean - 60 && work <= mean + 60); /* a row at most */
  asparse_csr_destroy(&a);
  asparse_csr_destroy(&b);
}

static void test_all_number_types(void **state) {
  (void)state;
  const hid_t types[] = {H5T_STD_I8LE,  H5T_STD_I16LE, H5T_STD_I32LE, H5T_STD_I64LE, H5T_STD_U8LE,
                         H5T_STD_U16LE, H5T_STD_U32LE, H5T_STD_U64LE, H5T_STD_I8BE,  H5T_STD_I16BE,
                         H5T_STD_I32BE, H5T_STD_I64BE, H5T_STD_U16BE, H5T_STD_U32BE, H5T_STD_U64BE};
  const int64_t message_bytes = comm->message_bytes;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    by_hand h = small();
    h.index_type = types[i];
    h.value_type = types[sizeof types / sizeof *types - 1 - i];
    make("types.h5", &h);
    check_dense("types.h5", small_dense, 12);
    comm->message_bytes = 8; /* many pieces */
    check_dense("types.h5", small_dense, 12);
    comm->message_bytes = message_bytes;
  }
  const hid_t floats[] = {H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE};
  for (size_t i = 0; i < 4; i++) {
    by_hand h = small();
    h.value_type = floats[i];
    make("types.h5", &h);
    check_dense("types.h5", small_dense, 12);
    comm->message_bytes = 8;
    check_dense("types.h5", small_dense, 12);
    comm->message_bytes = message_bytes;
    asparse_csr *a = read_ok("types.h5");
    assert_int_equal(a->dtype, i < 2 ? ASPARSE_FP32 : ASPARSE_FP64);
    asparse_csr_destroy(&a);
  }
}

static void test_truth_values_of_h5py(void **state) {
  (void)state;
  const int8_t truth[] = {1, 0, 1, 1}, no = 0, yes = 1;
  const double expected[12] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1};
  if (comm->rank == 0) {
    by_hand h = small();
    h.n_values = -1;
    hid_t file = new_file("bool.h5"), type = H5Tenum_create(H5T_NATIVE_INT8);
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    fill_group(file, &h, true);
    put(file, "values", type, type, 4, truth);
    H5Tclose(type);
    H5Fclose(file);
  }
  barrier();
  check_dense("bool.h5", expected, 12);
}

static void test_iso(void **state) {
  (void)state;
  const double expected[12] = {2.5, 0, 2.5, 0, 0, 0, 0, 0, 0, 2.5, 0, 2.5};
  by_hand h = small();
  h.json = JSON("CSR", "[3, 4]", "4", "iso[float64]", "");
  h.n_values = 1;
  h.values[0] = 2.5;
  make("iso.h5", &h);
  check_dense("iso.h5", expected, 12);
  h.n_values = 2;
  make("iso2.h5", &h);
  asparse_csr *a = NULL;
  expect_failure(asparse_csr_read(comm, in_folder("iso2.h5"), &a, NULL), ASPARSE_ERR_DATA,
                 "expected 1 for the iso type");
}

static void test_unsorted_and_duplicates(void **state) {
  (void)state;
  by_hand h = small();
  const double expected[12] = {0, 0, 3, 0, 0, 0, 0, 0, 0, 4, 0, 3};
  memcpy(h.indices, (int64_t[]){2, 2, 3, 1}, 4 * sizeof(int64_t));
  make("unsorted.h5", &h);
  check_dense("unsorted.h5", expected, 12);
  asparse_csr *a = read_ok("unsorted.h5");
  int64_t duplicates = a->n_duplicates;
  expect_ok(asparse_comm_sum(comm, &duplicates, 1));
  assert_int_equal(duplicates, 1);
  assert_int_equal(a->nnz, 3);
  asparse_csr_destroy(&a);
}

static void test_inexact_integers(void **state) {
  (void)state;
  if (comm->rank == 0) {
    by_hand h = small();
    h.n_values = -1;
    const uint64_t values[] = {UINT64_MAX, (UINT64_C(1) << 53) + 1, UINT64_C(1) << 63, 5};
    hid_t file = new_file("inexact.h5");
    fill_group(file, &h, false);
    put(file, "values", H5T_STD_U64LE, H5T_NATIVE_UINT64, 4, values);
    H5Fclose(file);
  }
  barrier();
  const double expected[12] = {0x1p64, 0, 0x1p53, 0, 0, 0, 0, 0, 0, 0x1p63, 0, 5};
  check_dense("inexact.h5", expected, 12);
  asparse_csr *a = read_ok("inexact.h5");
  int64_t inexact = a->n_inexact;
  expect_ok(asparse_comm_sum(comm, &inexact, 1));
  assert_int_equal(inexact, 2);
  asparse_csr_destroy(&a);
}

static void test_slack_is_ignored(void **state) {
  (void)state;
  by_hand h = small();
  h.n_indices = h.n_values = 7;
  h.indices[5] = 99; /* behind the last pointer */
  make("slack.h5", &h);
  check_dense("slack.h5", small_dense, 12);
}

static void test_structures(void **state) {
  (void)state;
  const struct {
    const char *json;
    bool lower;
    double sign;
  } cases[] = {{JSON("CSR", "[4, 4]", "5", "float64", ", \"structure\": \"symmetric_lower\""), true, 1},
               {JSON("CSR", "[4, 4]", "5", "float64", ", \"structure\": \"symmetric_upper\""), false, 1},
               {JSON("CSR", "[4, 4]", "5", "float64", ", \"structure\": \"skew_symmetric_lower\""), true, -1},
               {JSON("CSR", "[4, 4]", "5", "float64", ", \"structure\": \"skew_symmetric_upper\""), false, -1},
               {JSON("CSR", "[4, 4]", "5", "float64", ", \"structure\": \"hermitian_lower\""), true, 1},
               {JSON("CSR", "[4, 4]", "5", "float64", ", \"structure\": \"hermitian_upper\""), false, 1}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    by_hand lower = {cases[c].json, {0, 0, 1, 3, 5}, {0, 0, 2, 0, 2}, {2, 3, 7, 4, 5}, 5, 5, 5, 0, 0};
    by_hand upper = {cases[c].json, {0, 3, 3, 5, 5}, {1, 2, 3, 2, 3}, {2, 3, 4, 7, 5}, 5, 5, 5, 0, 0};
    double s = cases[c].sign;
    const double from_lower[16] = {0, s * 2, s * 3, s * 4, 2, 0, 0, 0, 3, 0, 7, s * 5, 4, 0, 5, 0};
    const double from_upper[16] = {0, 2, 3, 4, s * 2, 0, 0, 0, s * 3, 0, 7, 5, s * 4, 0, s * 5, 0};
    make("structure.h5", cases[c].lower ? &lower : &upper);
    check_dense("structure.h5", cases[c].lower ? from_lower : from_upper, 16);
    make("structure.h5", cases[c].lower ? &upper : &lower);
    asparse_csr *a = NULL;
    expect_failure(asparse_csr_read(comm, in_folder("structure.h5"), &a, NULL), ASPARSE_ERR_DATA, "other triangle");
  }
}

static void test_several_matrices(void **state) {
  (void)state;
  asparse_csr *a = NULL;
  if (comm->rank == 0) {
    by_hand h = small(), dense = small();
    dense.json = JSON("DMATR", "[2, 2]", "4", "float64", "");
    hid_t file = new_file("groups.h5");
    hid_t first = H5Gcreate2(file, "first", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t b = H5Gcreate2(file, "B", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    fill_group(first, &h, true);
    fill_group(b, &dense, true);
    H5Gclose(first);
    H5Gclose(b);
    H5Fclose(file);
  }
  barrier();
  check_dense("groups.h5", small_dense, 12); /* the dense one is no candidate */
  check_dense("groups.h5::/first", small_dense, 12);
  barrier();
  if (comm->rank == 0) {
    by_hand h = small();
    hid_t file = H5Fopen(in_folder("groups.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t second = H5Gcreate2(file, "second", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    fill_group(second, &h, false);
    H5Gclose(second);
    H5Fclose(file);
  }
  barrier();
  expect_failure(asparse_csr_read(comm, in_folder("groups.h5"), &a, NULL), ASPARSE_ERR_USAGE,
                 "/first (Binsparse), /second (Binsparse)");
  check_dense("groups.h5::/second", small_dense, 12);
  expect_failure(asparse_csr_read(comm, in_folder("groups.h5::/third"), &a, NULL), ASPARSE_ERR_USAGE, "/third");
  check_dense("groups.h5::/second/values", (const double[4]){1, 2, 3, 4}, 4); /* a dataset, read as a dense matrix */
}

static void test_files_of_other_programs(void **state) {
  (void)state;
  const struct {
    const char *name;
    int64_t m, k, nnz;
    const char *value_type;
  } readable[] = {{"binsparse/farm_CSR__farm_CSR.bsp.h5", 7, 17, 41, "int64"},
                  {"binsparse-c/1138_bus.csr.bsp.h5", 1138, 1138, 2 * 2596 - 1138, "float64"},
                  {"binsparse-c/bcsstk13.csr.bsp.h5", 2003, 2003, 2 * 42943 - 2003, "float64"},
                  {"binsparse-c/jagmesh7_pattern.csr.bsp.h5", 1138, 1138, 2 * 4294 - 1138, "iso[bint8]"},
                  {"binsparse-c/grp2.bsp.h5", 2500, 2500, 12349, "float64"},
                  {"binsparse-c/skew.csr.bsp.h5", 3, 3, 5, "float32"}};
  for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
    asparse_csr *a = NULL;
    asparse_source source;
    const char *path = in_data(readable[i].name);
    if (!path) continue;
    expect_ok(asparse_csr_read(comm, path, &a, &source));
    assert_int_equal(a->m, readable[i].m);
    assert_int_equal(a->k, readable[i].k);
    assert_int_equal(a->nnz, readable[i].nnz);
    assert_string_equal(source.value_type, readable[i].value_type);
    check_cover(a, a->m);
    asparse_csr_destroy(&a);
  }
}

static void test_path_split(void **state) {
  (void)state;
  char *file = NULL, *object = NULL;
  expect_ok(asparse_path_split("a/b.h5", &file, &object));
  assert_string_equal(file, "a/b.h5");
  assert_string_equal(object, "");
  asparse_free(file);
  asparse_free(object);
  expect_ok(asparse_path_split("b.h5::/x/y", &file, &object));
  assert_string_equal(file, "b.h5");
  assert_string_equal(object, "/x/y");
  asparse_free(file);
  asparse_free(object);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trips),
                                     cmocka_unit_test(test_long_provenance),
                                     cmocka_unit_test(test_slabs_are_near_equal),
                                     cmocka_unit_test(test_all_number_types),
                                     cmocka_unit_test(test_truth_values_of_h5py),
                                     cmocka_unit_test(test_iso),
                                     cmocka_unit_test(test_unsorted_and_duplicates),
                                     cmocka_unit_test(test_inexact_integers),
                                     cmocka_unit_test(test_slack_is_ignored),
                                     cmocka_unit_test(test_structures),
                                     cmocka_unit_test(test_several_matrices),
                                     cmocka_unit_test(test_files_of_other_programs),
                                     cmocka_unit_test(test_path_split)};
  io_fixture_begin(&argc, &argv);
  return io_fixture_end(cmocka_run_group_tests(tests, NULL, NULL));
}
