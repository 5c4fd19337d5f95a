/* Partition files: round trips in every format, and what a damaged one must give. */
#include "io_fixture.h"

#include <signal.h>
#include <sys/resource.h>

/* ---- a part given by formula ------------------------------------------------------------------- */

enum { ROWS = 21, COLS = 37, HALO = 5 };

static bool has_entry(int64_t i, int64_t j) { return i % 4 != 1 && asparse_mix64((uint64_t)(i * 100 + j)) % 5 == 0; }

static asparse_local_csr *make_csr(int32_t m, int32_t k, asparse_dtype dtype) {
  asparse_local_csr *a = NULL;
  int64_t nnz = 0;
  for (int32_t i = 0; i < m; i++)
    for (int32_t j = 0; j < k; j++) nnz += has_entry(i, j);
  expect_ok(asparse_local_csr_create(&a, m, k, nnz, dtype));
  nnz = 0;
  for (int32_t i = 0; i < m; i++) {
    for (int32_t j = 0; j < k; j++) {
      if (!has_entry(i, j)) continue;
      a->col_idx[nnz] = j;
      asparse_store(dtype, a->values, nnz++, asparse_random_element(1, i, j));
    }
    a->row_ptr[i + 1] = nnz;
  }
  return a;
}

/* One window and tile column after the other, every column of A listed; a shard as partition/ may build it. */
static asparse_shard *make_wcsr(const asparse_local_csr *csr, int32_t h) {
  asparse_shard *shard = asparse_calloc(1, sizeof *shard, "shard");
  int32_t n_windows = (csr->m + h - 1) / h, padded = (csr->k + 15) / 16 * 16;
  shard->format = ASPARSE_FORMAT_WCSR;
  expect_ok(asparse_wcsr_create(&shard->wcsr, csr->m, csr->k, h, (int64_t)n_windows * padded, csr->dtype));
  asparse_wcsr *a = shard->wcsr;
  a->nnz = csr->row_ptr[csr->m];
  memset(a->row_mask, 0, (size_t)n_windows * (size_t)padded * 8);
  memset(a->values, 0, (size_t)n_windows * (size_t)padded * (size_t)h * asparse_dtype_size(a->dtype));
  for (int32_t w = 0; w < n_windows; w++) {
    a->window_row_ptr[w + 1] = (int64_t)(w + 1) * padded;
    for (int32_t c = 0; c < padded; c++) a->window_col_idx[w * padded + c] = c < csr->k ? c : -1;
  }
  for (int32_t i = 0; i < csr->m; i++) {
    for (int64_t e = csr->row_ptr[i]; e < csr->row_ptr[i + 1]; e++) {
      int64_t c = (int64_t)(i / h) * padded + csr->col_idx[e];
      a->row_mask[c] |= UINT64_C(1) << (i % h);
      asparse_store(a->dtype, a->values, c / 16 * 16 * h + (i % h) * 16 + c % 16, asparse_load(csr->dtype, csr->values, e));
    }
  }
  return shard;
}

static asparse_shard *make_bcsr(const asparse_local_csr *csr, int32_t r) {
  asparse_shard *shard = asparse_calloc(1, sizeof *shard, "shard");
  int32_t rows = (csr->m + r - 1) / r, cols = (csr->k + r - 1) / r;
  shard->format = ASPARSE_FORMAT_BCSR;
  expect_ok(asparse_bcsr_create(&shard->bcsr, csr->m, csr->k, r, (int64_t)rows * cols, csr->dtype));
  asparse_bcsr *a = shard->bcsr;
  a->nnz = csr->row_ptr[csr->m];
  memset(a->entry_mask, 0, (size_t)rows * (size_t)cols * (size_t)r * 8);
  memset(a->blocks, 0, (size_t)rows * (size_t)cols * (size_t)(r * r) * asparse_dtype_size(a->dtype));
  for (int32_t i = 0; i < rows; i++) {
    a->block_row_ptr[i + 1] = (int64_t)(i + 1) * cols;
    for (int32_t j = 0; j < cols; j++) a->block_col_idx[i * cols + j] = j;
  }
  for (int32_t i = 0; i < csr->m; i++) {
    for (int64_t e = csr->row_ptr[i]; e < csr->row_ptr[i + 1]; e++) {
      int32_t j = csr->col_idx[e];
      int64_t row = ((int64_t)(i / r) * cols + j / r) * r + i % r;
      a->entry_mask[row] |= UINT64_C(1) << (j % r);
      asparse_store(a->dtype, a->blocks, row * r + j % r, asparse_load(csr->dtype, csr->values, e));
    }
  }
  return shard;
}

typedef struct kind {
  asparse_format format;
  int32_t unit;
  asparse_dtype dtype;
  bool permuted, with_csr;
  int32_t rows, cols, halo;
} kind;

static asparse_shard *make_shard(const asparse_local_csr *csr, const kind *k) {
  if (k->format == ASPARSE_FORMAT_WCSR) return make_wcsr(csr, k->unit);
  if (k->format == ASPARSE_FORMAT_BCSR) return make_bcsr(csr, k->unit);
  return NULL;
}

static asparse_part make_part(const kind *k, int part, int parts) {
  asparse_part p = {.m_local = k->rows, .k_local = k->cols, .n_halo = k->halo};
  p.diag = make_csr(k->rows, k->cols, k->dtype);
  p.offd = make_csr(k->rows, k->halo, k->dtype);
  p.diag_shard = make_shard(p.diag, k);
  p.offd_shard = make_shard(p.offd, k);
  if (!k->with_csr) {
    asparse_local_csr_destroy(&p.diag);
    asparse_local_csr_destroy(&p.offd);
  }
  p.col_map_offd = asparse_malloc(k->halo, sizeof(int64_t), "map");
  for (int i = 0; i < k->halo; i++) p.col_map_offd[i] = ((part + 1) % parts) * (int64_t)k->cols + i;
  if (k->permuted) p.row_map = asparse_malloc(k->rows, sizeof(int64_t), "map");
  for (int i = 0; k->permuted && i < k->rows; i++) p.row_map[i] = (int64_t)part * k->rows + k->rows - 1 - i;
  return p;
}

static asparse_part_header make_header(const kind *k) {
  asparse_part_header h = {.parts = comm->size, .m = (int64_t)k->rows * comm->size, .k = (int64_t)k->cols * comm->size,
                           .nnz = 123, .dtype = k->dtype, .method = k->permuted ? ASPARSE_PARTITION_METIS : 0,
                           .format = k->format, .unit = k->unit, .matrix_hash = UINT64_C(0xfedcba9876543210),
                           .build_seconds = 1.5, .imbalance = 1.0625};
  h.row_starts = asparse_malloc(h.parts + 1, sizeof(int64_t), "starts");
  h.col_starts = asparse_malloc(h.parts + 1, sizeof(int64_t), "starts");
  for (int r = 0; r <= h.parts; r++) {
    h.row_starts[r] = (int64_t)r * k->rows;
    h.col_starts[r] = (int64_t)r * k->cols;
  }
  return h;
}

/* One rank has a halo of other ranks' columns only where there are others. */
static kind for_ranks(kind k) {
  if (comm->size == 1) k.halo = 0;
  return k;
}

static asparse_status write_file(const char *name, const kind *k) {
  asparse_status status = ASPARSE_OK;
  asparse_part_writer *writer = NULL;
  asparse_part_header h = make_header(k);
  asparse_part p = make_part(k, comm->rank, comm->size);
  const asparse_provenance provenance = {"test_part_hdf5", "a formula", ""};
  TRY(asparse_part_writer_begin(comm, in_folder(name), &h, &provenance, &writer));
  status = asparse_part_writer_add(writer, comm->rank, &p);
  status = asparse_part_writer_end(&writer, status);
cleanup:
  asparse_part_header_free(&h);
  asparse_part_free(&p);
  return status;
}

static asparse_status read_file(const char *name, asparse_part_header *h, asparse_part *p) {
  memset(p, 0, sizeof *p);
  PASS(asparse_part_header_read(comm, in_folder(name), h));
  asparse_status status = asparse_part_read(comm, in_folder(name), h, comm->rank, p);
  if (status != ASPARSE_OK) asparse_part_header_free(h);
  return status;
}

static void check_csr(const asparse_local_csr *a, const asparse_local_csr *b) {
  assert_int_equal(a != NULL, b != NULL);
  if (!a) return;
  assert_true(a->m == b->m && a->k == b->k && a->dtype == b->dtype);
  assert_memory_equal(a->row_ptr, b->row_ptr, (size_t)(a->m + 1) * 8);
  assert_memory_equal(a->col_idx, b->col_idx, (size_t)a->row_ptr[a->m] * 4);
  assert_memory_equal(a->values, b->values, (size_t)a->row_ptr[a->m] * asparse_dtype_size(a->dtype));
}

static void check_shard(const asparse_shard *s, const asparse_shard *t) {
  assert_int_equal(s != NULL, t != NULL);
  if (!s) return;
  assert_int_equal(s->format, t->format);
  size_t size = asparse_dtype_size(asparse_shard_dtype(s));
  if (s->wcsr) {
    const asparse_wcsr *a = s->wcsr, *b = t->wcsr;
    size_t n = (size_t)a->window_row_ptr[a->n_windows];
    assert_true(a->m == b->m && a->k == b->k && a->nnz == b->nnz && a->window_height == b->window_height);
    assert_memory_equal(a->window_row_ptr, b->window_row_ptr, (size_t)(a->n_windows + 1) * 8);
    assert_memory_equal(a->window_col_idx, b->window_col_idx, n * 4);
    assert_memory_equal(a->row_mask, b->row_mask, n * 8);
    assert_memory_equal(a->values, b->values, n * (size_t)a->window_height * size);
  } else {
    const asparse_bcsr *a = s->bcsr, *b = t->bcsr;
    size_t n = (size_t)a->block_row_ptr[a->n_block_rows], r = (size_t)a->block_size;
    assert_true(a->m == b->m && a->k == b->k && a->nnz == b->nnz && a->block_size == b->block_size);
    assert_memory_equal(a->block_row_ptr, b->block_row_ptr, (size_t)(a->n_block_rows + 1) * 8);
    assert_memory_equal(a->block_col_idx, b->block_col_idx, n * 4);
    assert_memory_equal(a->entry_mask, b->entry_mask, n * r * 8);
    assert_memory_equal(a->blocks, b->blocks, n * r * r * size);
  }
}

static void round_trip(const kind *k) {
  asparse_part_header h, expected_header = make_header(k);
  asparse_part p, expected = make_part(k, comm->rank, comm->size);
  bool detected = false;
  expect_ok(write_file("part.h5", k));
  expect_ok(asparse_part_file_detect(comm, in_folder("part.h5"), &detected));
  assert_true(detected);
  expect_ok(read_file("part.h5", &h, &p));
  assert_true(h.parts == comm->size && h.m == expected_header.m && h.k == expected_header.k && h.nnz == 123);
  assert_true(h.dtype == k->dtype && h.format == k->format && h.unit == k->unit && h.method == expected_header.method);
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
  const kind formats[] = {{.format = ASPARSE_FORMAT_CSR, .unit = 1},   {.format = ASPARSE_FORMAT_WCSR, .unit = 8},
                          {.format = ASPARSE_FORMAT_WCSR, .unit = 64}, {.format = ASPARSE_FORMAT_BCSR, .unit = 16},
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

/* ---- damage ------------------------------------------------------------------------------------- */

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
    if (comm->rank == 0) print_message("%d of %d flipped bytes refused, the others without consequence\n", refused, tries);
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
  const char *const names[] = {"/part_00000/diag/row_ptr",  "/part_00000/diag/values",
                               "/part_00000/diag_shard/row_mask", "/part_00000/diag_shard/window_row_ptr",
                               "/row_starts", "/part_00000/col_map_offd"};
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
  } changes[] = {{"/part_00000/diag/row_ptr", 3, 1 << 30},       {"/part_00000/diag/row_ptr", ROWS, INT64_MAX},
                 {"/part_00000/diag/col_idx", 0, COLS},          {"/part_00000/diag/col_idx", 0, -1},
                 {"/part_00000/diag_shard/window_col_idx", 0, 99}, {"/part_00000/diag_shard/row_mask", 0, -1},
                 {"/part_00000/diag_shard/window_row_ptr", 1, 15}, {"/part_00000/row_map", 0, -5},
                 {"/row_starts", 0, 1},                          {"/col_starts", 0, -1}};
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

/* ---- what checksums do not see: contents that were wrong before they were written ----------------- */

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

/* ---- failures -------------------------------------------------------------------------------------- */

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
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trips),
                                     cmocka_unit_test(test_more_parts_than_ranks),
                                     cmocka_unit_test(test_detection),
                                     cmocka_unit_test(test_flipped_bits_anywhere),
                                     cmocka_unit_test(test_missing_and_resized_datasets),
                                     cmocka_unit_test(test_changed_elements),
                                     cmocka_unit_test(test_wrong_contents_with_right_checksums),
                                     cmocka_unit_test(test_failed_writes),
                                     cmocka_unit_test(test_allocation_failures)};
  io_fixture_begin(&argc, &argv);
  return io_fixture_end(cmocka_run_group_tests(tests, NULL, NULL));
}
