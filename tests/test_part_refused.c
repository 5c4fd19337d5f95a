/* Partition files: what a damaged one must give, and failures on the way. */
#include <signal.h>
#include <sys/resource.h>

#include "part_fixture.h"

static const kind damaged_kinds[] = {{ASPARSE_FORMAT_CSR, 1, ASPARSE_FP64, true, true, ROWS, COLS, HALO},
                                     {ASPARSE_FORMAT_WCSR, 8, ASPARSE_FP32, true, true, ROWS, COLS, HALO},
                                     {ASPARSE_FORMAT_BCSR, 16, ASPARSE_BF16, true, true, ROWS, COLS, HALO}};

/* Any flipped bit, anywhere in the file: found out, or without consequence; never a crash. */
static void test_flipped_bits_anywhere(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    kind k = for_ranks(damaged_kinds[i]);
    asparse_part expected = make_part(&k, comm->rank, comm->size);
    expect_ok(write_file("flip.h5", &k));
    barrier();
    struct stat info;
    assert_int_equal(stat(in_folder("flip.h5"), &info), 0);
    int refused = 0, tries = 0;
    for (long offset = 5; offset < info.st_size; offset += 1 + info.st_size / 251, tries++) {
      asparse_part_header h;
      asparse_part p;
      barrier();
      if (comm->rank == 0) flip_byte(in_folder("flip.h5"), offset);
      barrier();
      asparse_status status = read_file("flip.h5", &h, &p);
      if (status == ASPARSE_OK) {
        check_csr(expected.diag, p.diag);
        check_csr(expected.offd, p.offd);
        check_shard(expected.diag_shard, p.diag_shard);
        check_shard(expected.offd_shard, p.offd_shard);
        asparse_part_header_free(&h);
      } else {
        assert_true(status == ASPARSE_ERR_DATA || status == ASPARSE_ERR_USAGE);
        refused++;
      }
      asparse_part_free(&p);
      asparse_error_clear();
      barrier();
      if (comm->rank == 0) flip_byte(in_folder("flip.h5"), offset);
    }
    if (comm->rank == 0)
      print_message("%d of %d flipped bytes refused, the others without consequence\n", refused, tries);
    assert_true(refused > tries / 3);
    asparse_part_free(&expected);
  }
}

/* Writes one element of an array of part 0, and the file's checksum stays as it was. */
static void overwrite(const char *dataset, int64_t position, int64_t value) {
  if (comm->rank == 0) {
    hid_t file = H5Fopen(in_folder("damage.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t id = H5Dopen2(file, dataset, H5P_DEFAULT), space = H5Dget_space(id);
    hsize_t start = (hsize_t)position, one = 1;
    hid_t memory = H5Screate_simple(1, &one, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &one, NULL);
    assert_true(H5Dwrite(id, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, &value) >= 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(id);
    H5Fclose(file);
  }
  barrier();
}

static void test_missing_and_resized_datasets(void **state) {
  (void)state;
  const char *const names[] = {"/part_00000/diag/row_ptr",
                               "/part_00000/diag/values",
                               "/part_00000/diag_shard/row_mask",
                               "/part_00000/diag_shard/window_row_ptr",
                               "/row_starts",
                               "/part_00000/col_map_offd"};
  kind k = for_ranks(damaged_kinds[1]);
  const int64_t data[3] = {0, 0, 0};
  for (int resize = 0; resize < 2; resize++) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      asparse_part_header h;
      asparse_part p;
      if (k.halo == 0 && i == 5) continue; /* no halo, no map */
      expect_ok(write_file("damage.h5", &k));
      barrier();
      if (comm->rank == 0) {
        hid_t file = H5Fopen(in_folder("damage.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
        assert_true(H5Ldelete(file, names[i], H5P_DEFAULT) >= 0);
        if (resize) put(file, names[i], H5T_NATIVE_INT64, H5T_NATIVE_INT64, 3, data);
        H5Fclose(file);
      }
      barrier();
      if (resize && comm->size == 2 && i == 4) continue; /* three starts are right for two parts */
      expect_failure(read_file("damage.h5", &h, &p), ASPARSE_ERR_DATA, "damage.h5");
    }
  }
}

static void test_changed_elements(void **state) {
  (void)state;
  const struct {
    const char *dataset;
    int64_t position, value;
  } changes[] = {{"/part_00000/diag/row_ptr", 3, 1 << 30},
                 {"/part_00000/diag/row_ptr", ROWS, INT64_MAX},
                 {"/part_00000/diag/col_idx", 0, COLS},
                 {"/part_00000/diag/col_idx", 0, -1},
                 {"/part_00000/diag_shard/window_col_idx", 0, 99},
                 {"/part_00000/diag_shard/row_mask", 0, -1},
                 {"/part_00000/diag_shard/window_row_ptr", 1, 15},
                 {"/part_00000/row_map", 0, -5},
                 {"/row_starts", 0, 1},
                 {"/col_starts", 0, -1}};
  kind k = for_ranks(damaged_kinds[1]);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    asparse_part_header h;
    asparse_part p;
    expect_ok(write_file("damage.h5", &k));
    barrier();
    overwrite(changes[i].dataset, changes[i].position, changes[i].value);
    expect_failure(read_file("damage.h5", &h, &p), ASPARSE_ERR_DATA, "damage.h5");
  }
}

static void expect_wrong(const kind *k, void (*spoil)(asparse_part *), const char *words) {
  asparse_part_writer *writer = NULL;
  asparse_part_header h = make_header(k), found;
  asparse_part p = make_part(k, comm->rank, comm->size), read;
  if (comm->rank == 0) spoil(&p);
  expect_ok(asparse_part_writer_begin(comm, in_folder("wrong.h5"), &h, NULL, &writer));
  expect_ok(asparse_part_writer_add(writer, comm->rank, &p));
  expect_ok(asparse_part_writer_end(&writer, ASPARSE_OK));
  expect_failure(read_file("wrong.h5", &found, &read), ASPARSE_ERR_DATA, words);
  asparse_part_header_free(&h);
  asparse_part_free(&p);
}

static void spoil_row_ptr(asparse_part *p) { p->diag->row_ptr[2] = p->diag->row_ptr[p->diag->m] + 1; }
static void spoil_map(asparse_part *p) { FREE(p->col_map_offd); }
static void spoil_diag(asparse_part *p) { asparse_local_csr_destroy(&p->diag); }
static void spoil_order(asparse_part *p) { p->diag->col_idx[1] = p->diag->col_idx[0]; }
static void spoil_column(asparse_part *p) { p->diag->col_idx[0] = (int32_t)p->k_local + 3; }
static void spoil_row_map(asparse_part *p) { p->row_map[0] = INT64_MAX; }
static void spoil_window_ptr(asparse_part *p) { p->diag_shard->wcsr->window_row_ptr[1] += 3; }
static void spoil_window_column(asparse_part *p) { p->diag_shard->wcsr->window_col_idx[0] = 5; }
static void spoil_padding(asparse_part *p) { p->diag_shard->wcsr->row_mask[COLS] = 1; }
static void spoil_last_window(asparse_part *p) {
  asparse_wcsr *a = p->diag_shard->wcsr;
  a->row_mask[a->window_row_ptr[a->n_windows] - 16] |= UINT64_C(1) << (ROWS % 8); /* a row that does not exist */
}
static void spoil_window_nnz(asparse_part *p) { p->diag_shard->wcsr->row_mask[0] ^= 1; }
static void spoil_block_column(asparse_part *p) { p->diag_shard->bcsr->block_col_idx[2] = 7; }
static void spoil_block_mask(asparse_part *p) { p->diag_shard->bcsr->entry_mask[0] ^= UINT64_C(1) << 40; }
static void spoil_block_nnz(asparse_part *p) { p->diag_shard->bcsr->entry_mask[0] ^= 1; }

static void test_wrong_contents_with_right_checksums(void **state) {
  (void)state;
  kind csr = for_ranks(damaged_kinds[0]), wcsr = for_ranks(damaged_kinds[1]), bcsr = for_ranks(damaged_kinds[2]);
  expect_wrong(&csr, spoil_row_ptr, "diag");
  if (csr.halo > 0) expect_wrong(&csr, spoil_map, "missing");
  expect_wrong(&csr, spoil_diag, "missing");
  expect_wrong(&csr, spoil_order, "diag");
  expect_wrong(&csr, spoil_column, "diag");
  expect_wrong(&csr, spoil_row_map, "row_map");
  expect_wrong(&wcsr, spoil_window_ptr, "diag_shard");
  expect_wrong(&wcsr, spoil_window_column, "diag_shard");
  expect_wrong(&wcsr, spoil_padding, "diag_shard");
  expect_wrong(&wcsr, spoil_last_window, "diag_shard");
  expect_wrong(&wcsr, spoil_window_nnz, "diag_shard");
  expect_wrong(&bcsr, spoil_block_column, "diag_shard");
  expect_wrong(&bcsr, spoil_block_mask, "diag_shard");
  expect_wrong(&bcsr, spoil_block_nnz, "diag_shard");
}

static void test_failed_writes(void **state) {
  (void)state;
  kind k = for_ranks(damaged_kinds[1]);
  struct rlimit before, limit;
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &before);
  for (rlim_t bytes = 100; bytes < 9000; bytes = bytes * 2 + 1) {
    limit = before;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
    asparse_status status = write_file("limit.h5", &k);
    setrlimit(RLIMIT_FSIZE, &before);
    expect_failure(status, ASPARSE_ERR_IO, "limit.h5");
    barrier();
    assert_int_equal(count_hidden_files(), 0);
  }
  expect_ok(write_file("limit.h5", &k));
}

static void test_allocation_failures(void **state) {
  (void)state;
  kind k = for_ranks(damaged_kinds[1]);
  expect_ok(write_file("memory.h5", &k));
  int64_t live = asparse_memory_live_blocks();
  for (int only_last = 0; only_last < 2; only_last++) {
    bool here = !only_last || comm->rank == comm->size - 1;
    int failures = 0;
    for (int n = 1; n <= 80; n++) {
      asparse_part_header h;
      asparse_part p;
      if (here) asparse_memory_fail_at(n);
      asparse_status status = read_file("memory.h5", &h, &p);
      asparse_memory_fail_at(0);
      if (status == ASPARSE_OK) asparse_part_header_free(&h);
      else assert_int_equal(status, ASPARSE_ERR_MEMORY);
      failures += status != ASPARSE_OK;
      asparse_part_free(&p);
      asparse_error_clear();
      assert_int_equal(asparse_memory_live_blocks(), live);
    }
    assert_true(failures > 10 && failures < 80);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_flipped_bits_anywhere), cmocka_unit_test(test_missing_and_resized_datasets),
      cmocka_unit_test(test_changed_elements),      cmocka_unit_test(test_wrong_contents_with_right_checksums),
      cmocka_unit_test(test_failed_writes),         cmocka_unit_test(test_allocation_failures)};
  io_fixture_begin(&argc, &argv);
  return io_fixture_end(cmocka_run_group_tests(tests, NULL, NULL));
}
