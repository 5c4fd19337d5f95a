#include <math.h>

#include "asparse_config.h"
#include "programs/info_report.h"
#include "programs/json_record.h"
#include "programs/option_values.h"

/* Raised when a key changes its name or meaning. */
enum { SCHEMA_VERSION = 2 };

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
    int64_t columns = s->windows[i].columns;
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
  return json_pack("{s:s, s:s, s:i, s:f}", "format", asparse_format_name(c->format), "kernel",
                   c->kernel ? c->kernel : asparse_format_name(c->format), "unit", c->unit, "predicted_seconds",
                   c->predicted_seconds);
}

static json_t *advice_json(const info_record *r) {
  char reason[256];
  json_t *candidates = json_array();
  info_reason(r, reason, sizeof reason);
  for (int i = 0; i < r->n_candidates; i++) {
    if (isfinite(r->candidates[i].predicted_seconds)) json_array_append_new(candidates, config_json(&r->candidates[i]));
  }
  return json_pack("{s:I, s:s, s:s, s:i, s:o, s:s, s:o}", "columns", (json_int_t)r->options->cols, "precision",
                   asparse_dtype_name(r->dtype), "device", r->options->device ? "H200" : "host", "threads",
                   r->rates.threads, "best", config_json(&r->chosen), "reason", reason, "candidates", candidates);
}

static json_t *way_json(const info_record *r, const exchange_table *t, int i) {
  const asparse_mode_candidate *c = &t->candidates[i];
  const asparse_volume *most = &t->ways[i].largest, *all = &t->ways[i].total;
  json_t *volume = json_pack(
      "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I}", "rows_max", (json_int_t)most->rows, "rows_total",
      (json_int_t)all->rows, "bytes_received_max", (json_int_t)most->bytes_received, "bytes_received_total",
      (json_int_t)all->bytes_received, "bytes_sent_max", (json_int_t)most->bytes_sent, "messages_max",
      (json_int_t)most->messages, "messages_total", (json_int_t)all->messages, "fraction_of_all_gather",
      info_fraction_of_all_gather(r, t, &t->ways[i]), "layout_bytes_max", (json_int_t)most->layout_bytes,
      "layout_bytes_total", (json_int_t)all->layout_bytes, "layout_messages_max", (json_int_t)most->layout_messages,
      "layout_messages_total", (json_int_t)all->layout_messages);
  json_t *seconds =
      json_pack("{s:f, s:f, s:f, s:f}", "compute_seconds", c->compute_seconds, "exchange_seconds", c->exchange_seconds,
                "layout_seconds", c->layout_seconds, "predicted_seconds", c->predicted_seconds);
  json_t *way = json_pack("{s:s, s:i, s:i, s:i, s:b, s:b}", "mode", option_name(option_exchanges, (int)c->mode),
                          "grid_rows", c->volumes->parts, "grid_columns", c->pn, "chunks", c->chunks, "exact",
                          t->ways[i].exact, "chosen", i == t->best);
  json_object_update_new(way, volume);
  json_object_update_new(way, seconds);
  return way;
}

static json_t *table_json(const info_record *r, const exchange_table *t) {
  const asparse_volumes *v = t->counts->volumes;
  int64_t rows = 0, nnz = 0;
  json_t *ways = json_array();
  for (int q = 0; q < v->parts; q++) {
    rows = v->part[q].rows > rows ? v->part[q].rows : rows;
    nnz = v->part[q].nnz > nnz ? v->part[q].nnz : nnz;
  }
  for (int i = 0; i < t->n_ways; i++) json_array_append_new(ways, way_json(r, t, i));
  return json_pack("{s:i, s:s, s:f, s:f, s:f, s:I, s:I, s:f, s:f, s:o}", "ranks", t->ranks, "partition",
                   v->method == ASPARSE_PARTITION_METIS ? "metis" : "contiguous", "partition_seconds",
                   t->counts->seconds, "nnz_imbalance", info_nnz_imbalance(v), "cost_imbalance", v->imbalance,
                   "rows_max", (json_int_t)rows, "nnz_max", (json_int_t)nnz, "link_bytes_per_second",
                   t->link.bytes_per_second, "link_latency_seconds", t->link.latency_seconds, "modes", ways);
}

static json_t *record_json(const info_record *r) {
  const structure *s = &r->s;
  json_t *tables = json_array();
  for (int i = 0; i < r->exchange.n_tables; i++) json_array_append_new(tables, table_json(r, &r->exchange.tables[i]));
  return json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:s, s:s, s:o}", "schema",
                   SCHEMA_VERSION, "program", "asparse_info", "version", ASPARSE_VERSION, "matrix", matrix_json(r),
                   "row_degrees", degrees_json(&s->rows), "column_degrees", degrees_json(&s->columns),
                   "diagonal_entries", (json_int_t)s->diagonal, "bandwidth", (json_int_t)s->bandwidth, "mean_distance",
                   s->mean_distance, "symmetry", symmetry_json(s), "windows", windows_json(s), "blocks", blocks_json(s),
                   "advice", advice_json(r), "placement", r->options->row_operands ? "rows" : "planner",
                   "metis_skipped", r->exchange.metis_skipped, "exchange", tables);
}

asparse_status info_report_json(asparse_comm *comm, const info_record *r) {
  return json_record_write(comm, r->options->json, comm->rank == 0 ? record_json(r) : NULL);
}
