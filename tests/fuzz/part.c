/* Partition files, described like those of convention.c: what is accepted is used as a multiplication would, since
 * kernels check nothing. */
#include "fuzz/container.h"
#include "fuzz/harness.h"
#include "io/io.h"

/* Entry (i, j) has a place among the values, which a sanitizer knows. */
static double use_entry(asparse_dtype dtype, const void *values, int64_t place, int64_t i, int64_t j, int32_t m,
                        int32_t k) {
  FUZZ_THAT(i >= 0 && i < m && j >= 0 && j < k);
  return asparse_load(dtype, values, place);
}

static double use_csr(const asparse_local_csr *a) {
  double sum = 0;
  for (int32_t i = 0; i < a->m; i++) {
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++)
      sum += use_entry(a->dtype, a->values, e, i, a->col_idx[e], a->m, a->k);
  }
  return sum;
}

static double use_wcsr(const asparse_wcsr *a) {
  const int32_t h = a->window_height, tile = ASPARSE_TILE_COLUMNS;
  double sum = 0;
  for (int64_t w = 0; w < a->n_windows; w++) {
    for (int64_t c = a->window_row_ptr[w]; c < a->window_row_ptr[w + 1]; c++) {
      for (int32_t row = 0; row < h; row++) {
        if (a->row_mask[c] >> row & 1)
          sum += use_entry(a->dtype, a->values, c / tile * tile * h + row * tile + c % tile, w * h + row,
                           a->window_col_idx[c], a->m, a->k);
      }
    }
  }
  return sum;
}

static double use_bcsr(const asparse_bcsr *a) {
  const int32_t r = a->block_size;
  double sum = 0;
  for (int64_t i = 0; i < a->n_block_rows; i++) {
    for (int64_t b = a->block_row_ptr[i]; b < a->block_row_ptr[i + 1]; b++) {
      for (int32_t at = 0; at < r * r; at++) {
        if (a->entry_mask[b * r + at / r] >> at % r & 1)
          sum += use_entry(a->dtype, a->blocks, b * r * r + at, i * r + at / r,
                           (int64_t)a->block_col_idx[b] * r + at % r, a->m, a->k);
      }
    }
  }
  return sum;
}

volatile double fuzz_sum; /* so that every value is read */

static void use(const asparse_part *part) {
  const asparse_local_csr *const locals[] = {part->diag, part->offd};
  const asparse_shard *const shards[] = {part->diag_shard, part->offd_shard};
  for (int i = 0; i < 2; i++) {
    if (locals[i]) fuzz_sum = use_csr(locals[i]);
    if (shards[i]) fuzz_sum = shards[i]->wcsr ? use_wcsr(shards[i]->wcsr) : use_bcsr(shards[i]->bcsr);
  }
}

/* The header of a file of one or two parts, read as rank 0 of so many would. */
static asparse_status read_header(const char *path, asparse_part_header *header) {
  asparse_status status = ASPARSE_ERR_USAGE; /* the number of parts is another one */
  asparse_comm comm = *fuzz_comm;
  for (comm.size = 1; comm.size <= 2 && status == ASPARSE_ERR_USAGE; comm.size++) {
    asparse_error_clear();
    status = asparse_part_header_read(&comm, path, header);
    fuzz_check_status(status);
  }
  return status;
}

void fuzz_one(const uint8_t *data, size_t size) {
  const char *path = fuzz_file("", 0);
  asparse_part_header header;
  asparse_part part;
  bool is_part_file = false;
  fuzz_container_write(path, data, size);
  asparse_status status = asparse_part_file_detect(fuzz_comm, path, &is_part_file);
  fuzz_check_status(status);
  if (status != ASPARSE_OK || !is_part_file || read_header(path, &header) != ASPARSE_OK) return;
  for (int i = 0; i < header.parts; i++) {
    asparse_error_clear();
    status = asparse_part_read(fuzz_comm, path, &header, i, &part);
    fuzz_check_status(status);
    if (status != ASPARSE_OK) continue;
    use(&part);
    asparse_part_free(&part);
  }
  asparse_part_header_free(&header);
}
