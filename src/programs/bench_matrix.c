#include "programs/bench_matrix.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "generate/generate.h"
#include "io/io.h"
#include "partition/partition.h"
#include "plan/profile.h"
#include "programs/bench_timing.h"

enum { MOST_SHARDS = 16 };

/* What stays of a kernel while one matrix is timed. */
typedef struct bench_item {
  void *prepared;
  bench_row row; /* outcome, note and plan_seconds; the rest is per number of columns */
} bench_item;

/* Host shards, each built once, and the matrix with like rows brought together. */
typedef struct shard_list {
  asparse_clustered clustered;
  double cluster_seconds;
  asparse_shard *shards[MOST_SHARDS];
  double seconds[MOST_SHARDS]; /* to build it */
  int count;
} shard_list;

/* ---- reading ------------------------------------------------------------------------------------- */

asparse_status bench_matrix_read(asparse_comm *comm, const char *path, asparse_csr **slab) {
  return asparse_csr_read(comm, path, slab, NULL);
}

asparse_status bench_matrix_generate(const bench_options *options, const char *description, asparse_csr **slab) {
  asparse_generator generator;
  PASS(asparse_generator_parse(description, (uint64_t)options->seed, ASPARSE_FP64, &generator));
  return asparse_generate_slab(&generator, 0, generator.m, slab);
}

asparse_status bench_matrix_convert(const bench_options *options, const bench_engine *engine, const asparse_csr *slab,
                                    asparse_local_csr **out) {
  asparse_status status = ASPARSE_OK;
  asparse_local_csr *a = NULL;
  int32_t m, k;
  const asparse_dtype dtype = !options->own_precision ? options->precision
                              : engine->own_precision ? slab->dtype
                                                      : engine->precision;
  const int64_t nnz = asparse_csr_nnz_local(slab);
  TRY(asparse_int32_from(slab->n_rows, "number of rows", &m));
  TRY(asparse_int32_from(slab->k, "number of columns", &k));
  TRY(asparse_local_csr_create(&a, m, k, nnz, dtype));
  memcpy(a->row_ptr, slab->row_ptr, ((size_t)m + 1) * sizeof *a->row_ptr);
#pragma omp parallel for schedule(static)
  for (int64_t e = 0; e < nnz; e++) a->col_idx[e] = (int32_t)slab->col_idx[e];
  asparse_convert_values(dtype, a->values, slab->dtype, slab->values, nnz);
  *out = a;
  a = NULL;
cleanup:
  asparse_local_csr_destroy(&a);
  return status;
}

/* ---- preparing ----------------------------------------------------------------------------------- */

static int window_slot(int32_t height) { return height == 8 ? 0 : height == 16 ? 1 : height == 32 ? 2 : 3; }
static int block_slot(int32_t size) { return size == 16 ? 0 : size == 32 ? 1 : 2; }

/* Bytes of A's elements in this form, padding and all. */
static double stored_bytes(const asparse_profile *p, asparse_format format, int32_t unit) {
  const double size = (double)asparse_dtype_size(p->dtype);
  if (format == ASPARSE_FORMAT_CSR) return size * (double)p->nnz;
  if (format == ASPARSE_FORMAT_WCSR) return size * (double)p->windows[window_slot(unit)].padded * unit;
  return size * (double)p->blocks[block_slot(unit)] * unit * unit;
}

static asparse_status find_shard(asparse_local_csr *a, const asparse_profile *profile, const bench_options *options,
                                 const bench_kernel *kernel, shard_list *list, int *found) {
  for (int i = 0; i < list->count; i++) {
    const asparse_shard *shard = list->shards[i];
    if (shard->format == kernel->format && asparse_shard_row_unit(shard) == kernel->unit &&
        kernel->clustered == (shard->wcsr && shard->wcsr->row_map)) {
      *found = i;
      return ASPARSE_OK;
    }
  }
  const double bytes = stored_bytes(profile, kernel->format, kernel->unit), start = asparse_seconds();
  if (bytes > (double)options->max_bytes)
    return ASPARSE_FAIL(ASPARSE_ERR_MEMORY, "%.3g GB of stored elements, more than --max-bytes", bytes * 1e-9);
  if (list->count == MOST_SHARDS) return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "more than %d kinds of shards", MOST_SHARDS);
  asparse_shard **out = &list->shards[list->count];
  if (kernel->clustered) PASS(asparse_shard_build_clustered(&list->clustered, kernel->unit, out));
  else PASS(asparse_shard_build(a, kernel->format, kernel->unit, out));
  list->seconds[list->count] = asparse_seconds() - start + (kernel->clustered ? list->cluster_seconds : 0);
  *found = list->count++;
  return ASPARSE_OK;
}

static asparse_status prepare(bench_engine *engine, const bench_options *options, asparse_local_csr *a,
                              const asparse_profile *profile, shard_list *list, bench_item *item) {
  int shard = 0;
  PASS(find_shard(a, profile, options, item->row.kernel, list, &shard));
  const double start = asparse_seconds();
  PASS(engine->functions->prepare(engine, item->row.kernel, list->shards[shard], profile->n, &item->prepared));
  item->row.plan_seconds = list->seconds[shard] + asparse_seconds() - start;
  return ASPARSE_OK;
}

static void free_shards(shard_list *list) {
  asparse_clustered_free(&list->clustered);
  for (int i = 0; i < list->count; i++) asparse_shard_destroy(&list->shards[i]);
  list->count = 0;
}

/* ---- timing -------------------------------------------------------------------------------------- */

static const char *config_name(const asparse_kernel_config *config) {
  return config->kernel ? config->kernel : asparse_format_name(config->format);
}

static bool is_config(const bench_kernel *kernel, const asparse_kernel_config *config) {
  return !kernel->peer && kernel->format == config->format && kernel->unit == config->unit &&
         strcmp(kernel->name, config_name(config)) == 0;
}

static void add_prediction(const bench_prediction *prediction, bench_row *row) {
  row->predicted = NAN;
  row->chosen = isfinite(prediction->chosen.predicted_seconds) && is_config(row->kernel, &prediction->chosen);
  for (int i = 0; i < prediction->n_candidates; i++) {
    if (is_config(row->kernel, &prediction->candidates[i]) && isfinite(prediction->candidates[i].predicted_seconds))
      row->predicted = prediction->candidates[i].predicted_seconds;
  }
}

static asparse_status begin_case(bench_engine *engine, const bench_matrix *matrix, const asparse_profile *profile,
                                 const bench_options *options, const bench_item *items, int n_items, bench_case *c) {
  asparse_status status = ASPARSE_OK;
  bench_prediction prediction = {0};
  const int64_t length = (int64_t)strlen(matrix->name) + 1;
  *c = (bench_case){.profile = *profile, .n_rows = n_items};
  c->c_dtype = options->bf16_result ? ASPARSE_BF16 : asparse_dtype_result(profile->dtype);
  ALLOC(c->matrix, length);
  memcpy(c->matrix, matrix->name, (size_t)length);
  ALLOC_ZERO(c->rows, n_items);
  TRY(engine->functions->predict(engine, profile, &prediction));
  c->least_seconds = prediction.least_seconds;
  for (int i = 0; i < n_items; i++) {
    c->rows[i] = items[i].row;
    add_prediction(&prediction, &c->rows[i]);
  }
cleanup:
  return status;
}

static asparse_status time_case(bench_engine *engine, const bench_options *options, const bench_matrix *matrix,
                                const asparse_profile *profile, const bench_item *items, int n_items, bench_case *c) {
  asparse_status status = ASPARSE_OK;
  void **prepared = NULL;
  TRY(begin_case(engine, matrix, profile, options, items, n_items, c));
  ALLOC_ZERO(prepared, n_items);
  for (int i = 0; i < n_items; i++) prepared[i] = items[i].prepared;
  TRY(engine->functions->operands(engine, profile->n));
  TRY(bench_time(engine, options, prepared, c));
  bench_case_finish(c);
cleanup:
  asparse_free(prepared);
  if (status != ASPARSE_OK) {
    FREE(c->matrix);
    FREE(c->rows);
  }
  return status;
}

static void count_wrong(const bench_case *c, bench_record *record) {
  for (int i = 0; i < c->n_rows; i++) {
    if (c->rows[i].outcome != BENCH_WRONG) continue;
    if (c->rows[i].kernel->peer) record->n_wrong_peers++;
    else record->n_wrong++;
  }
}

/* Rows brought together and counted, where a kernel takes them so. */
static asparse_status cluster(const bench_item *items, int n_items, const asparse_local_csr *a, shard_list *shards,
                              asparse_profile *profile) {
  bool wanted = false;
  for (int i = 0; i < n_items; i++) wanted = wanted || items[i].row.kernel->clustered;
  if (!wanted) return ASPARSE_OK;
  const double start = asparse_seconds();
  PASS(asparse_rows_cluster(a, &shards->clustered));
  shards->cluster_seconds = asparse_seconds() - start;
  return asparse_profile_add_clustered(shards->clustered.rows, profile);
}

static void release_items(bench_engine *engine, bench_item *items, int n_items, bool peers) {
  for (int i = 0; i < n_items; i++) {
    if (items[i].row.kernel->peer && !peers) continue;
    if (items[i].prepared) engine->functions->release(engine, items[i].prepared);
    items[i].prepared = NULL;
  }
}

asparse_status bench_matrix_time(bench_engine *engine, const bench_options *options, const bench_matrix *matrix,
                                 const bench_kernel *const *kernels, int n_kernels, bench_record *record) {
  asparse_status status = ASPARSE_OK;
  asparse_profile profile;
  shard_list shards = {.count = 0};
  bench_item *items = NULL;
  int n_items = 0;
  ALLOC_ZERO(items, n_kernels);
  for (int i = 0; i < n_kernels; i++) {
    if (!kernels[i]->bf16_only || matrix->a->dtype == ASPARSE_BF16) items[n_items++].row.kernel = kernels[i];
  }
  TRY(asparse_profile_create(matrix->a, options->cols[0], false, &profile));
  TRY(cluster(items, n_items, matrix->a, &shards, &profile));
  TRY(engine->functions->load(engine, matrix->a, options->cols[0]));
  for (int i = 0; i < options->n_cols; i++) {
    bench_case *c = &record->cases[record->n_cases];
    profile.n = options->cols[i];
    TRY(asparse_profile_add_rereads(matrix->a, &profile));
    if (options->bf16_result) profile.c_dtype = ASPARSE_BF16;
    for (int j = 0; j < n_items; j++) {
      if (i > 0 && items[j].row.kernel->peer) continue; /* a library's layout of A serves any n */
      items[j].row = (bench_row){.kernel = items[j].row.kernel};
      TRY(bench_row_settle(&items[j].row, prepare(engine, options, matrix->a, &profile, &shards, &items[j])));
    }
    TRY(time_case(engine, options, matrix, &profile, items, n_items, c));
    count_wrong(c, record);
    record->n_cases++;
    release_items(engine, items, n_items, false);
  }
cleanup:
  release_items(engine, items, n_items, true);
  asparse_free(items);
  engine->functions->unload(engine);
  free_shards(&shards);
  return status;
}
