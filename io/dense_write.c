#include <stdio.h>

#include "io/binsparse.h"
#include "io/checksum.h"
#include "io/hdf5_write.h"

static asparse_dtype stored_dtype(const asparse_dense *a) {
  return asparse_element_dtype(asparse_element_of_dtype(a->dtype));
}

static void give(void *context, int64_t first, int64_t count, void *elements) {
  const asparse_dense *a = context;
  asparse_dtype stored = stored_dtype(a);
  if (a->ld == a->n) {
    size_t size = asparse_dtype_size(a->dtype);
    asparse_convert_values(stored, elements, a->dtype, (const char *)a->values + (size_t)first * size, count);
    return;
  }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i++) {
    int64_t row = (first + i) / a->n, col = (first + i) % a->n;
    asparse_store(stored, elements, i, asparse_load(a->dtype, a->values, row * a->ld + col));
  }
}

static uint64_t checksum_rows(const asparse_dense *a, int64_t row_begin) {
  uint64_t sum = 0;
  if (a->ld == a->n)
    return asparse_checksum_values(ASPARSE_SUM_VALUES, row_begin * a->n, a->dtype, a->values, 0, a->m * a->n);
  for (int64_t i = 0; i < a->m; i++)
    sum += asparse_checksum_values(ASPARSE_SUM_VALUES, (row_begin + i) * a->n, a->dtype, a->values, i * a->ld, a->n);
  return sum;
}

/* Slabs must follow each other in rank order and cover the matrix. */
static asparse_status check_slabs(asparse_comm *comm, int64_t m_global, int64_t row_begin, const asparse_dense *a) {
  asparse_status status = ASPARSE_OK;
  int64_t before = 0, total = a->m, count = 0;
  TRY_MPI(MPI_Exscan(&a->m, &before, 1, MPI_INT64_T, MPI_SUM, comm->mpi));
  if (comm->rank == 0) before = 0;
  TRY(asparse_comm_sum(comm, &total, 1));
  if (row_begin != before || total != m_global || __builtin_mul_overflow(m_global, a->n, &count))
    status = ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "slabs of rows must follow each other in rank order");
  status = asparse_comm_agree(comm, status);
cleanup:
  return status;
}

static asparse_status write_all(asparse_writer *writer, int64_t m_global, int64_t row_begin, const asparse_dense *a,
                                const asparse_provenance *provenance) {
  char text[ASPARSE_BINSPARSE_LENGTH], sum_text[ASPARSE_CHECKSUM_LENGTH];
  asparse_element element = asparse_element_of_dtype(a->dtype);
  asparse_binsparse d = {.format = "DMATR", .n_dims = 2, .shape = {m_global, a->n}, .stored = m_global * a->n};
  snprintf(d.value_type, sizeof d.value_type, "%s", asparse_element_name(element));
  PASS(asparse_comm_agree(writer->comm, asparse_binsparse_text(&d, NULL, text)));
  PASS(asparse_writer_text(writer, ASPARSE_BINSPARSE_ATTRIBUTE, text));
  PASS(asparse_writer_provenance(writer, provenance));
  uint64_t sum = checksum_rows(a, row_begin);
  if (writer->comm->rank == 0) sum += asparse_checksum_int64(ASPARSE_SUM_SHAPE, 0, d.shape, 0, 2);
  PASS(asparse_checksum_sum(writer->comm, &sum));
  asparse_checksum_text(sum, sum_text);
  PASS(asparse_writer_text(writer, ASPARSE_CHECKSUM_ATTRIBUTE, sum_text));
  PASS(asparse_writer_declare(writer, "values", element, m_global * a->n));
  PASS(asparse_writer_reserve(writer));
  return asparse_writer_fill(writer, "values", element, row_begin * a->n, a->m * a->n, give, (void *)a);
}

asparse_status asparse_dense_write(asparse_comm *comm, const char *path, int64_t m_global, int64_t row_begin,
                                   const asparse_dense *a, const asparse_provenance *provenance) {
  asparse_writer writer;
  PASS(check_slabs(comm, m_global, row_begin, a));
  PASS(asparse_writer_begin(comm, path, &writer));
  return asparse_writer_end(&writer, write_all(&writer, m_global, row_begin, a, provenance));
}
