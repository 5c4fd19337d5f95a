/* A sparse matrix as Binsparse CSR. */
#include <stdio.h>
#include <string.h>

#include "io/binsparse.h"
#include "io/checksum.h"
#include "io/csr_arrays.h"

static asparse_status write_descriptor(asparse_writer *writer, const asparse_csr_arrays *s) {
  asparse_status status = ASPARSE_OK;
  char text[ASPARSE_BINSPARSE_LENGTH];
  asparse_binsparse d = {.format = "CSR", .n_dims = 2, .shape = {s->a->m, s->a->k}, .stored = s->nnz};
  const char *index_type = asparse_element_name(s->pointer_element);
  const asparse_binsparse_array arrays[] = {{s->pointers, index_type}, {s->indices, index_type}, {NULL, NULL}};
  snprintf(d.value_type, sizeof d.value_type, s->iso ? "iso[%s]" : "%s", asparse_element_name(s->value_element));
  status = asparse_binsparse_text(&d, arrays, text);
  TRY(asparse_comm_agree(writer->comm, status));
  TRY(asparse_writer_text(writer, ASPARSE_BINSPARSE_ATTRIBUTE, text));
cleanup:
  return status;
}

static asparse_status write_checksum(asparse_writer *writer, const asparse_csr_arrays *s) {
  const asparse_csr *a = s->a;
  const int64_t shape[2] = {a->m, a->k}, nnz = asparse_csr_nnz_local(a);
  const double one = 1.0;
  char text[ASPARSE_CHECKSUM_LENGTH];
  uint64_t sum = asparse_checksum_int64(ASPARSE_SUM_INDICES, s->entry_begin, a->col_idx, 0, nnz);
  sum += asparse_checksum_int64(ASPARSE_SUM_POINTERS, a->row_begin, a->row_ptr, s->entry_begin, a->n_rows + s->last);
  if (!s->iso) sum += asparse_checksum_values(ASPARSE_SUM_VALUES, s->entry_begin, a->dtype, a->values, 0, nnz);
  else if (s->last) sum += asparse_checksum_values(ASPARSE_SUM_VALUES, 0, ASPARSE_FP64, &one, 0, 1);
  if (s->last) sum += asparse_checksum_int64(ASPARSE_SUM_SHAPE, 0, shape, 0, 2);
  PASS(asparse_checksum_sum(writer->comm, &sum));
  asparse_checksum_text(sum, text);
  return asparse_writer_text(writer, ASPARSE_CHECKSUM_ATTRIBUTE, text);
}

static asparse_status write_all(asparse_writer *writer, const asparse_csr_arrays *s,
                                const asparse_provenance *provenance) {
  PASS(write_descriptor(writer, s));
  PASS(asparse_writer_provenance(writer, provenance));
  PASS(write_checksum(writer, s));
  return asparse_csr_arrays_write(writer, s);
}

asparse_status asparse_csr_write(asparse_comm *comm, const char *path, const asparse_csr *a, const char *value_type,
                                 const asparse_provenance *provenance) {
  asparse_writer writer;
  asparse_csr_arrays s = {.pointers = "pointers_to_1", .indices = "indices_1", .values = "values"};
  PASS(asparse_csr_arrays_place(comm, a, &s));
  s.iso = value_type && strcmp(value_type, "pattern") == 0;
  /* The narrowest of the two types that hold every column and every pointer. */
  s.pointer_element = a->k <= UINT32_MAX && s.nnz <= UINT32_MAX ? ASPARSE_UINT32 : ASPARSE_UINT64;
  s.value_element = s.iso ? ASPARSE_INT8 : asparse_element_of_dtype(a->dtype);
  PASS(asparse_writer_begin(comm, path, &writer));
  return asparse_writer_end(&writer, write_all(&writer, &s, provenance));
}
