#include "asparse_config.h"
#include "programs/info_report.h"
#include "programs/json_record.h"

/* Raised when a key changes its name or meaning. */
enum { SCHEMA_VERSION = 1 };

static json_t *degrees_json(const degrees *d) {
  return json_pack("{s:I, s:I, s:I, s:I, s:f}", "least", (json_int_t)d->least, "median", (json_int_t)d->median,
                   "largest", (json_int_t)d->largest, "empty", (json_int_t)d->empty, "mean", d->mean);
}

static json_t *matrix_json(const info_record *r) {
  const structure *s = &r->s;
  double cells = (double)s->m * (double)s->k;
  return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:I, s:I}", "path", r->options->matrix, "file_format",
                   r->source.format, "value_type", r->source.value_type, "structure", r->source.structure,
                   "stored_entries", (json_int_t)r->source.stored_entries, "rows", (json_int_t)s->m, "columns",
                   (json_int_t)s->k, "nnz", (json_int_t)s->nnz, "density", cells > 0 ? (double)s->nnz / cells : 0.0,
                   "duplicates_summed", (json_int_t)r->n_duplicates, "integers_rounded", (json_int_t)r->n_inexact);
}

static json_t *symmetry_json(const structure *s) {
  int64_t off_diagonal = s->nnz - s->diagonal;
  bool square = s->m == s->k;
  return json_pack("{s:b, s:b, s:b, s:I, s:I, s:I, s:I}", "pattern", structure_pattern_symmetric(s), "numeric",
                   square && s->equal == off_diagonal, "skew",
                   square && s->opposite == off_diagonal && off_diagonal > 0, "off_diagonal", (json_int_t)off_diagonal,
                   "mirrored", (json_int_t)s->mirrored, "equal", (json_int_t)s->equal, "opposite",
                   (json_int_t)s->opposite);
}

static json_t *windows_json(const structure *s) {
  json_t *list = json_array();
  for (int i = 0; i < STRUCTURE_HEIGHTS; i++) {
    int64_t columns = s->window_columns[i];
    json_array_append_new(list, json_pack("{s:i, s:I, s:f, s:f}", "height", structure_heights[i], "columns",
                                          (json_int_t)columns, "entries_per_column",
                                          columns > 0 ? (double)s->nnz / (double)columns : 0.0, "fill",
                                          structure_window_fill(s, i)));
  }
  return list;
}

static json_t *blocks_json(const structure *s) {
  json_t *list = json_array();
  for (int i = 0; i < STRUCTURE_SIZES; i++)
    json_array_append_new(list, json_pack("{s:i, s:I, s:f}", "size", structure_sizes[i], "blocks",
                                          (json_int_t)s->blocks[i], "fill", structure_block_fill(s, i)));
  return list;
}

static json_t *config_json(const asparse_kernel_config *c) {
  return json_pack("{s:s, s:i, s:f}", "format", asparse_format_name(c->format), "unit", c->unit, "predicted_seconds",
                   c->predicted_seconds);
}

static json_t *advice_json(const info_record *r) {
  char reason[256];
  json_t *candidates = json_array();
  info_reason(r, reason, sizeof reason);
  for (int i = 0; i < r->n_candidates; i++) json_array_append_new(candidates, config_json(&r->candidates[i]));
  return json_pack("{s:I, s:s, s:i, s:o, s:s, s:o}", "columns", (json_int_t)r->options->cols, "precision",
                   asparse_dtype_name(r->dtype), "threads", r->rates.threads, "best", config_json(&r->chosen), "reason",
                   reason, "candidates", candidates);
}

static json_t *volume_json(const info_record *r, const exchange_volume *v) {
  const asparse_partition_quality *q = &v->quality;
  return json_pack(
      "{s:i, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:f}", "ranks", v->ranks, "partition",
      v->method == ASPARSE_PARTITION_METIS ? "metis" : "contiguous", "halo_rows_total", (json_int_t)q->halo_total,
      "halo_rows_max", (json_int_t)q->halo_max, "megabytes_max", info_megabytes(r, (double)q->halo_max),
      "all_gather_megabytes", info_megabytes(r, info_all_gather_rows(r, v->ranks) / v->ranks), "fraction_of_all_gather",
      info_fraction_of_all_gather(r, v), "nnz_imbalance", q->nnz_imbalance, "cost_imbalance", q->imbalance, "rows_max",
      (json_int_t)q->rows_max, "nnz_max", (json_int_t)q->nnz_max, "partition_seconds", v->seconds);
}

static json_t *record_json(const info_record *r) {
  const structure *s = &r->s;
  json_t *volumes = json_array();
  for (int i = 0; i < r->n_volumes; i++) json_array_append_new(volumes, volume_json(r, &r->volumes[i]));
  return json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:o}", "schema", SCHEMA_VERSION,
                   "program", "asparse_info", "version", ASPARSE_VERSION, "matrix", matrix_json(r), "row_degrees",
                   degrees_json(&s->rows), "column_degrees", degrees_json(&s->columns), "diagonal_entries",
                   (json_int_t)s->diagonal, "bandwidth", (json_int_t)s->bandwidth, "mean_distance", s->mean_distance,
                   "symmetry", symmetry_json(s), "windows", windows_json(s), "blocks", blocks_json(s), "advice",
                   advice_json(r), "exchange", volumes);
}

asparse_status info_report_json(asparse_comm *comm, const info_record *r) {
  return json_record_write(comm, r->options->json, comm->rank == 0 ? record_json(r) : NULL);
}
