/* Parts of a partitioned matrix, given by formula. */
#ifndef ASPARSE_PART_FIXTURE_H
#define ASPARSE_PART_FIXTURE_H

#include "io_fixture.h"

enum { ROWS = 21, COLS = 37, HALO = 5 };

static inline bool has_entry(int64_t i, int64_t j) {
  return i % 4 != 1 && asparse_mix64((uint64_t)(i * 100 + j)) % 5 == 0;
}

static inline asparse_local_csr *make_csr(int32_t m, int32_t k, asparse_dtype dtype) {
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
static inline asparse_shard *make_wcsr(const asparse_local_csr *csr, int32_t h) {
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
      asparse_store(a->dtype, a->values, c / 16 * 16 * h + (i % h) * 16 + c % 16,
                    asparse_load(csr->dtype, csr->values, e));
    }
  }
  return shard;
}

static inline asparse_shard *make_bcsr(const asparse_local_csr *csr, int32_t r) {
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

static inline asparse_shard *make_shard(const asparse_local_csr *csr, const kind *k) {
  if (k->format == ASPARSE_FORMAT_WCSR) return make_wcsr(csr, k->unit);
  if (k->format == ASPARSE_FORMAT_BCSR) return make_bcsr(csr, k->unit);
  return NULL;
}

static inline asparse_part make_part(const kind *k, int part, int parts) {
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

static inline asparse_part_header make_header(const kind *k) {
  asparse_part_header h = {.parts = comm->size,
                           .m = (int64_t)k->rows * comm->size,
                           .k = (int64_t)k->cols * comm->size,
                           .nnz = 123,
                           .dtype = k->dtype,
                           .method = k->permuted ? ASPARSE_PARTITION_METIS : 0,
                           .diag = {k->format, k->unit},
                           .offd = {k->format, k->unit},
                           .matrix_hash = UINT64_C(0xfedcba9876543210),
                           .build_seconds = 1.5,
                           .imbalance = 1.0625};
  h.row_starts = asparse_malloc(h.parts + 1, sizeof(int64_t), "starts");
  h.col_starts = asparse_malloc(h.parts + 1, sizeof(int64_t), "starts");
  for (int r = 0; r <= h.parts; r++) {
    h.row_starts[r] = (int64_t)r * k->rows;
    h.col_starts[r] = (int64_t)r * k->cols;
  }
  return h;
}

/* One rank has a halo of other ranks' columns only where there are others. */
static inline kind for_ranks(kind k) {
  if (comm->size == 1) k.halo = 0;
  return k;
}

static inline asparse_status write_file(const char *name, const kind *k) {
  asparse_status status = ASPARSE_OK;
  asparse_part_writer *writer = NULL;
  asparse_part_header h = make_header(k);
  asparse_part p = make_part(k, comm->rank, comm->size);
  const asparse_provenance provenance = {"test_part_hdf5", "a formula", "", 1};
  TRY(asparse_part_writer_begin(comm, in_folder(name), &h, &provenance, &writer));
  status = asparse_part_writer_add(writer, comm->rank, &p);
  status = asparse_part_writer_end(&writer, status);
cleanup:
  asparse_part_header_free(&h);
  asparse_part_free(&p);
  return status;
}

static inline asparse_status read_file(const char *name, asparse_part_header *h, asparse_part *p) {
  memset(p, 0, sizeof *p);
  PASS(asparse_part_header_read(comm, in_folder(name), h));
  asparse_status status = asparse_part_read(comm, in_folder(name), h, comm->rank, p);
  if (status != ASPARSE_OK) asparse_part_header_free(h);
  return status;
}

static inline void check_csr(const asparse_local_csr *a, const asparse_local_csr *b) {
  assert_int_equal(a != NULL, b != NULL);
  if (!a) return;
  assert_true(a->m == b->m && a->k == b->k && a->dtype == b->dtype);
  assert_memory_equal(a->row_ptr, b->row_ptr, (size_t)(a->m + 1) * 8);
  assert_memory_equal(a->col_idx, b->col_idx, (size_t)a->row_ptr[a->m] * 4);
  assert_memory_equal(a->values, b->values, (size_t)a->row_ptr[a->m] * asparse_dtype_size(a->dtype));
}

static inline void check_shard(const asparse_shard *s, const asparse_shard *t) {
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

#endif
