#include "plan/cover.h"

#include "plan/choice.h"

/* Chooses, builds and prepares. Collective. */
static asparse_status factor_create(asparse_comm *comm, asparse_engine *engine, const asparse_options *options,
                                    asparse_local_csr *a, int64_t n, int64_t most, asparse_factor *factor) {
  asparse_status status = ASPARSE_OK;
  asparse_clustered clustered = {0};
  asparse_kernel_config config = {0};
  const bool on_device = engine->backend->space == ASPARSE_SPACE_DEVICE;
  factor->a = a;
  const asparse_choice_problem problem = {.a = a, .n = most, .space = engine->backend->space};
  TRY(asparse_choice_make(comm, &problem, options, on_device ? &clustered : NULL, &config));
  status = config.clustered ? asparse_shard_build_clustered(&clustered, config.unit, &factor->shard)
                            : asparse_shard_build(a, config.format, config.unit, &factor->shard);
  if (status == ASPARSE_OK && a->row_ptr[a->m] > 0)
    status = engine->backend->prepare(engine, factor->shard, config.kernel, n, asparse_dtype_result(a->dtype),
                                      &factor->operator);
  TRY(asparse_comm_agree(comm, status));
cleanup:
  asparse_clustered_free(&clustered);
  return status;
}

static void factor_free(asparse_engine *engine, asparse_factor *factor) {
  if (factor->operator.shard || factor->operator.on_device) engine->backend->discard(&factor->operator);
  asparse_shard_destroy(&factor->shard);
}

static asparse_status factor_multiply(asparse_cover *cover, const asparse_factor *factor, const void *b, int64_t ldb,
                                      void *c, int64_t ldc, bool accumulate) {
  if (factor->a->row_ptr[factor->a->m] == 0) return ASPARSE_OK;
  return cover->engine->backend->multiply(cover->engine, &factor->operator, 0, asparse_shard_units(factor->shard),
                                          cover->n, b, ldb, c, ldc, accumulate);
}

/* Partial row j of the halo belongs to row received_row[j] of C; ascending in every row of C. Local. */
static asparse_status create_ones(asparse_cover *cover, int32_t m, asparse_dtype dtype) {
  asparse_status status = ASPARSE_OK;
  const asparse_cover_parts *parts = &cover->parts;
  int32_t k = 0;
  TRY(asparse_int32_from(parts->n_received, "the number of partial rows of C", &k));
  TRY(asparse_local_csr_create(&cover->ones, m, k, k, dtype));
  int64_t *row_ptr = cover->ones->row_ptr;
  for (int32_t j = 0; j < k; j++) row_ptr[parts->received_row[j] + 1]++;
  for (int32_t i = 0; i < m; i++) row_ptr[i + 1] += row_ptr[i];
  for (int32_t j = 0; j < k; j++) {
    const int64_t e = row_ptr[parts->received_row[j]]++;
    cover->ones->col_idx[e] = j;
    asparse_store(dtype, cover->ones->values, e, 1.0);
  }
  for (int32_t i = m; i > 0; i--) row_ptr[i] = row_ptr[i - 1]; /* they had moved up by one row */
  row_ptr[0] = 0;
cleanup:
  return status;
}

/* Both factors and what they work on. Collective. */
static asparse_status prepare(asparse_cover *cover, const asparse_matrix *a, const asparse_options *options,
                              int64_t most) {
  asparse_status status = ASPARSE_OK;
  const asparse_dtype sum = asparse_dtype_result(a->dtype);
  const asparse_options in_order = {.format = ASPARSE_FORMAT_CSR, .keep_order = true};
  asparse_cover_parts *parts = &cover->parts;
  TRY(factor_create(a->comm, cover->engine, options, parts->sent, cover->n, most, &cover->partial));
  TRY(factor_create(a->comm, cover->engine, &in_order, cover->ones, cover->n, most, &cover->add));
  TRY(asparse_comm_agree(a->comm, cover->engine->backend->allocate(cover->engine, parts->sent->m,
                                                                   (size_t)cover->n * asparse_dtype_size(sum),
                                                                   "partial rows of C", &cover->partial_rows)));
  TRY(asparse_comm_agree(a->comm,
                         asparse_halo_create(cover->comm, cover->engine, parts->sent_starts, parts->received_from,
                                             parts->n_received, (asparse_halo_shape){cover->n, 1, sum}, &cover->halo)));
cleanup:
  return status;
}

asparse_status asparse_cover_create(const asparse_matrix *a, asparse_engine *engine, const asparse_options *options,
                                    int64_t n, int64_t most, asparse_cover **out) {
  asparse_status status = ASPARSE_OK;
  const asparse_dtype sum = asparse_dtype_result(a->dtype);
  const int row_weight = (int)(asparse_dtype_size(sum) / asparse_dtype_size(a->dtype));
  asparse_cover *cover = NULL;
  TRY_THAT(!options->bf16_result, ASPARSE_ERR_USAGE,
           "partial rows of C are added in fp32: exchange cover does not go with C in bf16");
  cover = asparse_calloc(1, sizeof *cover, "cover");
  TRY(asparse_comm_agree(a->comm, cover ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  cover->engine = engine;
  cover->n = n;
  status = asparse_cover_split(a, row_weight, &cover->parts);
  if (status == ASPARSE_OK) status = create_ones(cover, a->part.diag->m, sum);
  TRY(asparse_comm_agree(a->comm, status));
  TRY(asparse_comm_agree(a->comm, asparse_comm_split(a->grid.column_comm, 0, a->grid.column_comm->rank, &cover->comm)));
  TRY(prepare(cover, a, options, most));
  *out = cover;
  cover = NULL;
cleanup:
  asparse_cover_destroy(&cover);
  return status;
}

void asparse_cover_destroy(asparse_cover **cover) {
  if (!cover || !*cover) return;
  asparse_cover *c = *cover;
  factor_free(c->engine, &c->partial);
  factor_free(c->engine, &c->add);
  if (c->partial_rows) c->engine->backend->release(c->partial_rows);
  asparse_halo_destroy(&c->halo);
  asparse_comm_destroy(&c->comm);
  asparse_local_csr_destroy(&c->ones);
  asparse_cover_parts_free(&c->parts);
  FREE(*cover);
}

void asparse_cover_add_stats(const asparse_cover *c, asparse_stats *stats) {
  const asparse_backend *backend = c->engine->backend;
  const int64_t partial_bytes = c->parts.sent->m * c->n * (int64_t)asparse_dtype_size(c->halo->shape.dtype);
  stats->nnz += asparse_shard_nnz(c->partial.shard);
  stats->stored += asparse_shard_stored(c->partial.shard);
  stats->shard_bytes += asparse_shard_bytes(c->partial.shard);
  stats->csr_bytes += asparse_local_csr_bytes(c->parts.kept) + asparse_local_csr_bytes(c->parts.sent) +
                      asparse_local_csr_bytes(c->ones);
  stats->device_bytes += backend->operator_bytes(&c->partial.operator) + backend->operator_bytes(&c->add.operator);
  stats->halo_bytes += asparse_halo_bytes(c->halo) + partial_bytes;
  stats->partial_rows = c->halo->n_rows;
  stats->bytes_sent += c->halo->bytes_sent;
  stats->bytes_received += c->halo->bytes_received;
}

asparse_status asparse_cover_begin(asparse_cover *cover, const void *b, int64_t ldb) {
  PASS(factor_multiply(cover, &cover->partial, b, ldb, cover->partial_rows, cover->n, false));
  return asparse_halo_exchange_begin(cover->halo, cover->partial_rows, cover->n);
}

asparse_status asparse_cover_end(asparse_cover *cover, void *c, int64_t ldc) {
  PASS(asparse_halo_exchange_end(cover->halo));
  return factor_multiply(cover, &cover->add, cover->halo->buffer, cover->n, c, ldc, true);
}
