#include "plan/volumes.h"

#include "plan/grid.h"

#include <string.h>

#include "plan/cover_volume.h"
#include "plan/rows.h"

/* ---- counting -------------------------------------------------------------------------------- */

/* Collective. Columns in new numbers, the part of each row, foreign entries of each part. *renumbered is the caller's.
 */
static asparse_status number_slab(asparse_comm *comm, const asparse_csr *slab, const asparse_partition *p,
                                  asparse_numbered_slab *a, int64_t **renumbered) {
  asparse_status status = ASPARSE_OK;
  const int64_t nnz = asparse_csr_nnz_local(slab);
  const bool permuted = p->new_row != NULL;
  *a = (asparse_numbered_slab){.slab = slab, .partition = p, .col_idx = slab->col_idx};
  a->part_of_row = asparse_malloc(slab->n_rows, sizeof *a->part_of_row, "part of each row");
  a->foreign = asparse_calloc(p->parts, sizeof *a->foreign, "foreign entries of each part");
  if (permuted) *renumbered = asparse_malloc(nnz, sizeof **renumbered, "renumbered columns");
  const bool allocated = a->part_of_row && a->foreign && (!permuted || *renumbered);
  TRY(asparse_comm_agree(comm, allocated ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  if (permuted) {
    TRY(asparse_rows_renumber(comm, slab, p, slab->col_idx, nnz, *renumbered));
    a->col_idx = *renumbered;
  }
  for (int64_t i = 0; i < slab->n_rows; i++) {
    const int q = asparse_owner(p->row_starts, p->parts, permuted ? p->new_row[i] : slab->row_begin + i);
    a->part_of_row[i] = q;
    for (int64_t e = slab->row_ptr[i]; e < slab->row_ptr[i + 1]; e++)
      a->foreign[q] += a->col_idx[e] < p->col_starts[q] || a->col_idx[e] >= p->col_starts[q + 1];
  }
  TRY(asparse_comm_sum(comm, a->foreign, p->parts));
cleanup:
  return status;
}

static asparse_status volumes_create(const asparse_csr *slab, const asparse_partition *p, asparse_volumes **out) {
  asparse_status status = ASPARSE_OK;
  asparse_volumes *v = NULL;
  ALLOC_ZERO(v, 1);
  *v = (asparse_volumes){.parts = p->parts, .m = slab->m, .k = slab->k, .nnz = slab->nnz, .method = p->method};
  v->imbalance = p->total_cost > 0 ? (double)p->largest_cost * p->parts / (double)p->total_cost : 1;
  ALLOC_ZERO(v->part, p->parts);
  *out = v;
  v = NULL;
cleanup:
  asparse_volumes_destroy(&v);
  return status;
}

static void fill_parts(const asparse_partition *p, const asparse_part_traffic *traffic, const int64_t *foreign,
                       const int64_t *cover_received, const int64_t *cover_sent, asparse_volumes *v) {
  int with_rows = 0;
  for (int q = 0; q < p->parts; q++) with_rows += p->col_starts[q + 1] > p->col_starts[q];
  for (int q = 0; q < p->parts; q++) {
    const int64_t b_rows = p->col_starts[q + 1] - p->col_starts[q];
    v->part[q] = (asparse_part_volume){
        .rows = p->row_starts[q + 1] - p->row_starts[q],
        .b_rows = b_rows,
        .nnz = traffic[q].nnz,
        .own_nnz = traffic[q].nnz - foreign[q],
        .received = traffic[q].received,
        .sent = traffic[q].sent,
        .sources = traffic[q].sources,
        .destinations = traffic[q].destinations,
        .cover_received = v->cover_is_exact ? cover_received[q] : traffic[q].received,
        .cover_sent = v->cover_is_exact ? cover_sent[q] : traffic[q].sent,
        .all_sources = with_rows - (b_rows > 0),
        .all_destinations = b_rows > 0 ? p->parts - 1 : 0,
    };
  }
}

asparse_status asparse_volumes_count(asparse_comm *comm, const asparse_csr *slab, const asparse_partition *p,
                                     int c_weight, asparse_volumes **out) {
  asparse_status status = ASPARSE_OK;
  asparse_volumes *v = NULL;
  asparse_part_traffic *traffic = NULL;
  asparse_numbered_slab numbered = {0};
  int64_t *renumbered = NULL, *cover = NULL;
  status = volumes_create(slab, p, &v);
  if (status == ASPARSE_OK && (!(traffic = asparse_malloc(p->parts, sizeof *traffic, "traffic of each part")) ||
                               !(cover = asparse_calloc(2 * (int64_t)p->parts, sizeof *cover, "volumes of covers"))))
    status = ASPARSE_ERR_MEMORY;
  TRY(asparse_comm_agree(comm, status));
  TRY(asparse_partition_traffic(comm, slab, p, traffic));
  TRY(number_slab(comm, slab, p, &numbered, &renumbered));
  TRY(asparse_cover_volume(comm, &numbered, c_weight, cover, cover + p->parts, &v->cover_is_exact));
  fill_parts(p, traffic, numbered.foreign, cover, cover + p->parts, v);
  *out = v;
  v = NULL;
cleanup:
  asparse_volumes_destroy(&v);
  asparse_free(traffic);
  asparse_free(numbered.part_of_row);
  asparse_free(numbered.foreign);
  asparse_free(renumbered);
  asparse_free(cover);
  return status;
}

void asparse_volumes_destroy(asparse_volumes **volumes) {
  if (!volumes || !*volumes) return;
  asparse_free((*volumes)->part);
  FREE(*volumes);
}

/* ---- volumes of ranks ------------------------------------------------------------------------ */

/* B to blocks: the rank has its slice of the part's rows in all columns and receives the others' rows in its own. C
 * back: it has all rows in its columns and receives its slice in the others'. */
static void add_layout(const asparse_part_volume *part, int pn, const asparse_volume_shape *shape, int64_t width, int j,
                       asparse_volume *v) {
  const int64_t b_slice = asparse_even_start(part->b_rows, pn, j + 1) - asparse_even_start(part->b_rows, pn, j);
  const int64_t c_slice = asparse_even_start(part->rows, pn, j + 1) - asparse_even_start(part->rows, pn, j);
  const int64_t b_slices = part->b_rows < pn ? part->b_rows : pn, blocks = shape->n < pn ? shape->n : pn;
  v->layout_bytes = (part->b_rows - b_slice) * width * shape->b_bytes + c_slice * (shape->n - width) * shape->c_bytes;
  if (width > 0) v->layout_messages += b_slices - (b_slice > 0);
  if (c_slice > 0) v->layout_messages += blocks - (width > 0);
}

asparse_volume asparse_volumes_rank(const asparse_volumes *volumes, asparse_exchange_mode mode, int pn,
                                    const asparse_volume_shape *shape, int i, int j) {
  const asparse_part_volume *part = &volumes->part[i];
  const int64_t width = asparse_grid_column_start(shape->n, pn, j + 1) - asparse_grid_column_start(shape->n, pn, j);
  asparse_volume v = {.rows = part->received, .messages = part->sources};
  int64_t sent = part->sent;
  if (mode == ASPARSE_EXCHANGE_REPLICATE) {
    v.rows = volumes->k - part->b_rows;
    v.messages = part->all_sources;
    sent = part->b_rows * part->all_destinations;
  } else if (mode == ASPARSE_EXCHANGE_COVER) {
    v.rows = part->cover_received;
    sent = part->cover_sent;
  }
  if (width == 0) v = (asparse_volume){0};
  v.bytes_received = v.rows * width * shape->b_bytes;
  v.bytes_sent = sent * width * shape->b_bytes;
  if (pn > 1) add_layout(part, pn, shape, width, j, &v);
  return v;
}

static int64_t larger(int64_t x, int64_t y) { return x > y ? x : y; }

void asparse_volumes_summarise(const asparse_volumes *volumes, asparse_exchange_mode mode, int pn,
                               const asparse_volume_shape *shape, asparse_volume *largest, asparse_volume *total) {
  *largest = *total = (asparse_volume){0};
  for (int i = 0; i < volumes->parts; i++) {
    for (int j = 0; j < pn; j++) {
      const asparse_volume v = asparse_volumes_rank(volumes, mode, pn, shape, i, j);
      *largest = (asparse_volume){larger(largest->rows, v.rows),
                                  larger(largest->bytes_received, v.bytes_received),
                                  larger(largest->bytes_sent, v.bytes_sent),
                                  larger(largest->messages, v.messages),
                                  larger(largest->layout_bytes, v.layout_bytes),
                                  larger(largest->layout_messages, v.layout_messages)};
      *total = (asparse_volume){total->rows + v.rows,
                                total->bytes_received + v.bytes_received,
                                total->bytes_sent + v.bytes_sent,
                                total->messages + v.messages,
                                total->layout_bytes + v.layout_bytes,
                                total->layout_messages + v.layout_messages};
    }
  }
}
