/* Partition files: round trips in every format. */
#include "part_fixture.h"

static void round_trip(const kind *k) {
  asparse_part_header h, expected_header = make_header(k);
  asparse_part p, expected = make_part(k, comm->rank, comm->size);
  bool detected = false;
  expect_ok(write_file("part.h5", k));
  expect_ok(asparse_part_file_detect(comm, in_folder("part.h5"), &detected));
  assert_true(detected);
  expect_ok(read_file("part.h5", &h, &p));
  assert_true(h.parts == comm->size && h.m == expected_header.m && h.k == expected_header.k && h.nnz == 123);
  assert_true(h.dtype == k->dtype && h.diag.format == k->format && h.offd.unit == k->unit &&
              h.method == expected_header.method);
  assert_true(h.matrix_hash == UINT64_C(0xfedcba9876543210) && h.build_seconds == 1.5 && h.imbalance == 1.0625);
  assert_memory_equal(h.row_starts, expected_header.row_starts, (size_t)(h.parts + 1) * 8);
  assert_memory_equal(h.col_starts, expected_header.col_starts, (size_t)(h.parts + 1) * 8);
  assert_true(p.m_local == k->rows && p.k_local == k->cols && p.n_halo == k->halo);
  check_csr(expected.diag, p.diag);
  check_csr(expected.offd, p.offd);
  check_shard(expected.diag_shard, p.diag_shard);
  check_shard(expected.offd_shard, p.offd_shard);
  assert_memory_equal(p.col_map_offd, expected.col_map_offd, (size_t)k->halo * 8);
  assert_int_equal(p.row_map != NULL, k->permuted);
  if (k->permuted) assert_memory_equal(p.row_map, expected.row_map, (size_t)k->rows * 8);
  asparse_part_header_free(&h);
  asparse_part_header_free(&expected_header);
  asparse_part_free(&p);
  asparse_part_free(&expected);
}

static void test_round_trips(void **state) {
  (void)state;
  const kind formats[] = {{.format = ASPARSE_FORMAT_CSR, .unit = 1},
                          {.format = ASPARSE_FORMAT_WCSR, .unit = 8},
                          {.format = ASPARSE_FORMAT_WCSR, .unit = 64},
                          {.format = ASPARSE_FORMAT_BCSR, .unit = 16},
                          {.format = ASPARSE_FORMAT_BCSR, .unit = 64}};
  const int32_t shapes[][3] = {{ROWS, COLS, HALO}, {0, 0, 0}, {1, 1, 0}, {0, 7, 0}, {9, 0, 0}, {64, 64, 0}};
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
      kind k = formats[f];
      k.rows = shapes[s][0];
      k.cols = shapes[s][1];
      k.halo = shapes[s][2];
      for (int dtype = ASPARSE_FP64; dtype <= ASPARSE_BF16; dtype++) {
        k.dtype = (asparse_dtype)dtype;
        k.permuted = dtype == ASPARSE_FP32;
        k.with_csr = dtype != ASPARSE_BF16 || k.format == ASPARSE_FORMAT_CSR;
        k = for_ranks(k);
        round_trip(&k);
      }
    }
  }
}

/* More parts than ranks: rounds in which some ranks have none, in any order. */
static void test_more_parts_than_ranks(void **state) {
  (void)state;
  kind k = {ASPARSE_FORMAT_WCSR, 16, ASPARSE_FP32, false, true, ROWS, COLS, HALO};
  asparse_part_writer *writer = NULL;
  int parts = comm->size + 2;
  asparse_part_header h = make_header(&k), found;
  asparse_part_header_free(&h);
  h.parts = parts;
  h.m = (int64_t)k.rows * parts;
  h.k = (int64_t)k.cols * parts;
  h.row_starts = asparse_malloc(parts + 1, 8, "starts");
  h.col_starts = asparse_malloc(parts + 1, 8, "starts");
  for (int r = 0; r <= parts; r++) {
    h.row_starts[r] = (int64_t)r * k.rows;
    h.col_starts[r] = (int64_t)r * k.cols;
  }
  expect_ok(asparse_part_writer_begin(comm, in_folder("more.h5"), &h, NULL, &writer));
  for (int first = 0; first < parts; first += comm->size) {
    int part = first + comm->size - 1 - comm->rank;
    asparse_part p = {0};
    if (part < parts) p = make_part(&k, part, parts);
    expect_ok(asparse_part_writer_add(writer, part < parts ? part : -1, &p));
    asparse_part_free(&p);
  }
  expect_ok(asparse_part_writer_end(&writer, ASPARSE_OK));
  for (int part = 0; part < parts; part++) {
    asparse_part p, expected = make_part(&k, part, parts);
    expect_ok(asparse_part_read(comm, in_folder("more.h5"), &h, part, &p));
    check_csr(expected.diag, p.diag);
    check_shard(expected.offd_shard, p.offd_shard);
    asparse_part_free(&p);
    asparse_part_free(&expected);
  }
  expect_failure(asparse_part_header_read(comm, in_folder("more.h5"), &found), ASPARSE_ERR_USAGE, "parts, but");
  asparse_part_header_free(&h);
}

static void test_detection(void **state) {
  (void)state;
  bool found = true;
  if (comm->rank == 0) H5Fclose(new_file("plain.h5"));
  barrier();
  expect_ok(asparse_part_file_detect(comm, in_folder("plain.h5"), &found));
  assert_false(found);
  expect_failure(asparse_part_file_detect(comm, in_folder("none.h5"), &found), ASPARSE_ERR_NO_INPUT, "none.h5");
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trips), cmocka_unit_test(test_more_parts_than_ranks),
                                     cmocka_unit_test(test_detection)};
  io_fixture_begin(&argc, &argv);
  return io_fixture_end(cmocka_run_group_tests(tests, NULL, NULL));
}
