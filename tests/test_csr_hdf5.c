/* Sparse matrices in HDF5: round trips, what other programs write, and every check of the reader. */
#include "io_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/dense.h"

/* ---- a matrix given by formula --------------------------------------------------------------- */

typedef enum pattern { SCATTERED, NOTHING, DENSE_ROW, EVERYTHING } pattern;
typedef struct formula {
  int64_t m, k;
  pattern pattern;
} formula;

static bool has_entry(const formula *f, int64_t i, int64_t j) {
  if (f->pattern == SCATTERED) return i % 5 != 2 && asparse_mix64((uint64_t)(i * 1000 + j)) % 4 == 0;
  return f->pattern == EVERYTHING || (f->pattern == DENSE_ROW && i == f->m / 2);
}

static double value_of(int64_t i, int64_t j) { return asparse_random_element(7, i, j); }

static int64_t count_entries(const formula *f, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (int64_t i = begin; i < end; i++)
    for (int64_t j = 0; j < f->k; j++) count += has_entry(f, i, j);
  return count;
}

/* The even slab of this rank. */
static asparse_csr *make_slab(const formula *f, asparse_dtype dtype) {
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
static void check_cover(const asparse_csr *a, int64_t m) {
  int64_t *begins = malloc((size_t)(comm->size + 1) * sizeof *begins);
  MPI_Allgather(&a->row_begin, 1, MPI_INT64_T, begins, 1, MPI_INT64_T, comm->mpi);
  begins[comm->size] = m;
  assert_int_equal(begins[0], 0);
  assert_int_equal(a->row_begin + a->n_rows, begins[comm->rank + 1]);
  free(begins);
}

static void check_slab(const asparse_csr *a, const formula *f, asparse_dtype written, bool ones) {
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

static void round_trip(const formula *f, asparse_dtype dtype, const char *value_type) {
  asparse_csr *a = make_slab(f, dtype), *b = NULL;
  asparse_source source;
  const asparse_provenance provenance = {"test_csr_hdf5", "a formula", "none"};
  bool ones = value_type && strcmp(value_type, "pattern") == 0;
  expect_ok(asparse_csr_write(comm, in_folder("round.h5"), a, value_type, &provenance));
  expect_ok(asparse_csr_read(comm, in_folder("round.h5"), &b, &source));
  check_slab(b, f, dtype, ones);
  assert_int_equal(b->dtype, ones || dtype != ASPARSE_FP64 ? ASPARSE_FP32 : ASPARSE_FP64);
  assert_string_equal(source.format, "Binsparse CSR");
  assert_string_equal(source.structure, "general");
  assert_string_equal(source.value_type, ones ? "iso[float32]" : dtype == ASPARSE_FP64 ? "float64" : "float32");
  assert_int_equal(source.stored_entries, a->nnz);
  asparse_csr_destroy(&a);
  asparse_csr_destroy(&b);
}

static void test_round_trips(void **state) {
  (void)state;
  const formula formulas[] = {{37, 23, SCATTERED}, {0, 0, NOTHING},  {0, 5, NOTHING},    {5, 0, NOTHING},
                              {1, 1, EVERYTHING},  {1, 1, NOTHING},  {6, 4, NOTHING},    {9, 31, DENSE_ROW},
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
  const asparse_provenance provenance = {"", "source", options};
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

/* ---- files made by hand ----------------------------------------------------------------------- */

/* 3 × 4:  [1 . 2 .]  [. . . .]  [. 3 . 4] */
typedef struct by_hand {
  const char *json;
  int64_t pointers[8], indices[8];
  double values[8];
  int64_t n_pointers, n_indices, n_values;
  hid_t index_type, value_type; /* 0: int64, float64 */
} by_hand;

#define JSON(format, shape, stored, type, more)                                                    \
  "{\"binsparse\": {\"version\": \"0.1\", \"format\": \"" format "\", \"shape\": " shape                         \
  ", \"number_of_stored_values\": " stored ", \"data_types\": {\"values\": \"" type "\"}" more "}}"

static by_hand small(void) {
  return (by_hand){JSON("CSR", "[3, 4]", "4", "float64", ""), {0, 2, 2, 4}, {0, 2, 1, 3}, {1, 2, 3, 4}, 4, 4, 4, 0, 0};
}

static void fill_group(hid_t where, const by_hand *h, bool fixed_text) {
  hid_t index_type = h->index_type ? h->index_type : H5T_NATIVE_INT64;
  put_text(where, "binsparse", h->json, fixed_text);
  if (h->n_pointers >= 0) put(where, "pointers_to_1", index_type, H5T_NATIVE_INT64, h->n_pointers, h->pointers);
  if (h->n_indices >= 0) put(where, "indices_1", index_type, H5T_NATIVE_INT64, h->n_indices, h->indices);
  if (h->n_values >= 0)
    put(where, "values", h->value_type ? h->value_type : H5T_NATIVE_DOUBLE, H5T_NATIVE_DOUBLE, h->n_values, h->values);
}

static void make(const char *name, const by_hand *h) {
  barrier(); /* nobody has the older one open any more */
  if (comm->rank == 0) {
    hid_t file = new_file(name);
    fill_group(file, h, false);
    H5Fclose(file);
  }
  barrier();
}

/* The slabs of all ranks as one dense array [m · k], on every rank. */
static double *dense_of(const asparse_csr *a) {
  double *dense = calloc((size_t)(a->m * a->k), sizeof *dense);
  for (int64_t i = 0; i < a->n_rows; i++)
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++)
      dense[(a->row_begin + i) * a->k + a->col_idx[e]] += asparse_load(a->dtype, a->values, e);
  MPI_Allreduce(MPI_IN_PLACE, dense, (int)(a->m * a->k), MPI_DOUBLE, MPI_SUM, comm->mpi);
  return dense;
}

static asparse_csr *read_ok(const char *name) {
  asparse_csr *a = NULL;
  expect_ok(asparse_csr_read(comm, in_folder(name), &a, NULL));
  return a;
}

static void check_dense(const char *name, const double *expected, int64_t count) {
  asparse_csr *a = read_ok(name);
  double *dense = dense_of(a);
  assert_int_equal(a->m * a->k, count);
  for (int64_t i = 0; i < count; i++) assert_true(dense[i] == expected[i]);
  free(dense);
  asparse_csr_destroy(&a);
}

static const double small_dense[12] = {1, 0, 2, 0, 0, 0, 0, 0, 0, 3, 0, 4};

static void test_all_number_types(void **state) {
  (void)state;
  const hid_t types[] = {H5T_STD_I8LE,  H5T_STD_I16LE, H5T_STD_I32LE, H5T_STD_I64LE, H5T_STD_U8LE,  H5T_STD_U16LE,
                         H5T_STD_U32LE, H5T_STD_U64LE, H5T_STD_I8BE,  H5T_STD_I16BE, H5T_STD_I32BE, H5T_STD_I64BE,
                         H5T_STD_U16BE, H5T_STD_U32BE, H5T_STD_U64BE};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    by_hand h = small();
    h.index_type = types[i];
    h.value_type = types[sizeof types / sizeof *types - 1 - i];
    make("types.h5", &h);
    check_dense("types.h5", small_dense, 12);
  }
  const hid_t floats[] = {H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE};
  for (size_t i = 0; i < 4; i++) {
    by_hand h = small();
    h.value_type = floats[i];
    make("types.h5", &h);
    check_dense("types.h5", small_dense, 12);
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
  expect_failure(asparse_csr_read(comm, in_folder("iso2.h5"), &a, NULL), ASPARSE_ERR_DATA, "expected 1 for the iso type");
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

/* ---- structure -------------------------------------------------------------------------------- */

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

static void test_structure_must_be_square(void **state) {
  (void)state;
  by_hand h = small();
  asparse_csr *a = NULL;
  h.json = JSON("CSR", "[3, 4]", "4", "float64", ", \"structure\": \"symmetric_lower\"");
  make("oblong.h5", &h);
  expect_failure(asparse_csr_read(comm, in_folder("oblong.h5"), &a, NULL), ASPARSE_ERR_DATA, "3 × 4");
}

/* ---- refusals --------------------------------------------------------------------------------- */

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
  } cases[] = {
      {"{", "not JSON"},
      {"[1]", "no object"},
      {"{\"binsparse\": {}}", "version"},
      {"{\"binsparse\": {\"version\": \"2.0\"}}", "2.0"},
      {"{\"binsparse\": {\"version\": \"0.1\", \"format\": {\"level\": 1}}}", "format"},
      {JSON("COO", "[3, 4]", "4", "float64", ""), "COO"},
      {JSON("DMATR", "[3, 4]", "4", "float64", ""), "no sparse matrix"},
      {JSON("CSR", "[3]", "4", "float64", ""), "two dimensions"},
      {JSON("CSR", "[3, 4, 5]", "4", "float64", ""), "shape"},
      {JSON("CSR", "[3, -4]", "4", "float64", ""), "out of range"},
      {JSON("CSR", "[3, 9223372036854775807]", "4", "float64", ""), "out of range"},
      {JSON("CSR", "[3, 99999999999999999999]", "4", "float64", ""), "not JSON"},
      {JSON("CSR", "[3, \"4\"]", "4", "float64", ""), "no integers"},
      {JSON("CSR", "[3, 4]", "-1", "float64", ""), "no count"},
      {JSON("CSR", "[3, 4]", "3", "float64", ""), "number_of_stored_values is 3"},
      {JSON("CSR", "[3, 4]", "5", "float64", ""), "number_of_stored_values is 5"},
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
  expect_failure(asparse_csr_read(comm, in_folder("groups.h5"), &a, NULL), ASPARSE_ERR_USAGE, "/first, /second");
  check_dense("groups.h5::/second", small_dense, 12);
  expect_failure(asparse_csr_read(comm, in_folder("groups.h5::/third"), &a, NULL), ASPARSE_ERR_USAGE, "/third");
  expect_failure(asparse_csr_read(comm, in_folder("groups.h5::/second/values"), &a, NULL), ASPARSE_ERR_USAGE, "dataset");
}

/* ---- damage and failures ------------------------------------------------------------------------ */

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
               {0, 0, 1, 3, 5}, {0, 2, 0, 0, 2}, {2, 3, 7, 4, 5}, 5, 5, 5, 0, 0};
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

/* ---- real files ---------------------------------------------------------------------------------- */

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

static void test_files_in_other_conventions(void **state) {
  (void)state;
  const char *const refused[][2] = {
      {"binsparse/farm_COO__farm_COO.bsp.h5", "COOR"},
      {"binsparse/farm_CSC__farm_CSC.bsp.h5", "CSC"},
      {"binsparse/farm_DCSR__farm_DCSR.bsp.h5", "DCSR"},
      {"binsparse/bar_VEC__bar_VEC.bsp.h5", "CVEC"},
      {"binsparse-c/hermitian.coor.bsp.h5", "real matrices"},
      {"10x/scanpy__filtered_feature_bc_matrix.h5", "10x"},
      {"h5ad/BPCells__mini_mat.anndata-v0.7.h5ad", "AnnData"},
      {"biom/biom-format__rich_sparse_otu_table_hdf5.biom", "BIOM"},
      {"cooler/cooler__toy.asymm.2.cool", "cooler"}};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    asparse_csr *a = NULL;
    const char *path = in_data(refused[i][0]);
    if (path) expect_failure(asparse_csr_read(comm, path, &a, NULL), ASPARSE_ERR_DATA, refused[i][1]);
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_path_split),
                                     cmocka_unit_test(test_round_trips),
                                     cmocka_unit_test(test_long_provenance),
                                     cmocka_unit_test(test_slabs_are_near_equal),
                                     cmocka_unit_test(test_all_number_types),
                                     cmocka_unit_test(test_truth_values_of_h5py),
                                     cmocka_unit_test(test_iso),
                                     cmocka_unit_test(test_unsorted_and_duplicates),
                                     cmocka_unit_test(test_inexact_integers),
                                     cmocka_unit_test(test_slack_is_ignored),
                                     cmocka_unit_test(test_structures),
                                     cmocka_unit_test(test_structure_must_be_square),
                                     cmocka_unit_test(test_damaged_descriptors),
                                     cmocka_unit_test(test_damaged_arrays),
                                     cmocka_unit_test(test_fill_value_other_than_zero),
                                     cmocka_unit_test(test_files_that_are_no_hdf5),
                                     cmocka_unit_test(test_truncated_file),
                                     cmocka_unit_test(test_declared_sizes_beyond_memory),
                                     cmocka_unit_test(test_contents_in_other_files),
                                     cmocka_unit_test(test_several_matrices),
                                     cmocka_unit_test(test_flipped_bits),
                                     cmocka_unit_test(test_unwritable_places),
                                     cmocka_unit_test(test_failed_writes_leave_the_older_file),
                                     cmocka_unit_test(test_stale_temporaries),
                                     cmocka_unit_test(test_allocation_failures),
                                     cmocka_unit_test(test_files_of_other_programs),
                                     cmocka_unit_test(test_files_in_other_conventions)};
  io_fixture_begin(&argc, &argv);
  return io_fixture_end(cmocka_run_group_tests(tests, NULL, NULL));
}
