#include <stdio.h>
#include <string.h>

#include "io/binsparse.h"
#include "io/checksum.h"
#include "io/hdf5_write.h"

/* A slab on its way to the file. */
typedef struct outgoing {
  const asparse_csr *a;
  asparse_element index_element, value_element;
  int64_t nnz, entry_begin; /* entries of all ranks; of the ranks before this one */
  bool pattern, last;       /* last: this rank also writes the closing pointer */
} outgoing;

static void give_pointers(void *context, int64_t first, int64_t count, void *elements) {
  const outgoing *o = context;
  uint32_t *narrow = elements;
  uint64_t *wide = elements;
  for (int64_t i = 0; i < count; i++) {
    uint64_t pointer = (uint64_t)(o->a->row_ptr[first + i] + o->entry_begin);
    if (o->index_element == ASPARSE_UINT32) narrow[i] = (uint32_t)pointer;
    else wide[i] = pointer;
  }
}

static void give_indices(void *context, int64_t first, int64_t count, void *elements) {
  const outgoing *o = context;
  asparse_element_from_int64(o->index_element, o->a->col_idx + first, count, elements);
}

static void give_values(void *context, int64_t first, int64_t count, void *elements) {
  const outgoing *o = context;
  size_t size = asparse_dtype_size(o->a->dtype);
  asparse_dtype stored = o->value_element == ASPARSE_FLOAT32 ? ASPARSE_FP32 : ASPARSE_FP64;
  asparse_convert_values(stored, elements, o->a->dtype, (const char *)o->a->values + (size_t)first * size, count);
}

static void give_one(void *context, int64_t first, int64_t count, void *elements) {
  (void)context, (void)first;
  for (int64_t i = 0; i < count; i++) ((int8_t *)elements)[i] = 1;
}

/* Where this slab stands among all, which must follow each other in rank order and cover the matrix. */
static asparse_status place(asparse_comm *comm, outgoing *o) {
  asparse_status status = ASPARSE_OK;
  const asparse_csr *a = o->a;
  int64_t own[2] = {a->n_rows, asparse_csr_nnz_local(a)}, before[2] = {0, 0}, all[2] = {own[0], own[1]};
  TRY_MPI(MPI_Exscan(own, before, 2, MPI_INT64_T, MPI_SUM, comm->mpi));
  if (comm->rank == 0) before[0] = before[1] = 0;
  TRY(asparse_comm_sum(comm, all, 2));
  o->entry_begin = before[1];
  o->nnz = all[1];
  o->last = comm->rank == comm->size - 1;
  /* The narrowest of the two types that hold every column and every pointer. */
  o->index_element = a->k <= UINT32_MAX && o->nnz <= UINT32_MAX ? ASPARSE_UINT32 : ASPARSE_UINT64;
  o->value_element = o->pattern ? ASPARSE_INT8 : asparse_element_of_dtype(a->dtype);
  if (a->row_begin != before[0] || all[0] != a->m)
    status = ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "slabs of rows must follow each other in rank order");
  status = asparse_comm_agree(comm, status);
cleanup:
  return status;
}

static asparse_status write_descriptor(asparse_writer *writer, const outgoing *o) {
  asparse_status status = ASPARSE_OK;
  char text[ASPARSE_BINSPARSE_LENGTH];
  asparse_binsparse d = {.format = "CSR", .n_dims = 2, .shape = {o->a->m, o->a->k}, .stored = o->nnz};
  const char *index_type = asparse_element_name(o->index_element);
  const asparse_binsparse_array arrays[] = {{"pointers_to_1", index_type}, {"indices_1", index_type}, {NULL, NULL}};
  snprintf(d.value_type, sizeof d.value_type, o->pattern ? "iso[%s]" : "%s", asparse_element_name(o->value_element));
  status = asparse_binsparse_text(&d, arrays, text);
  TRY(asparse_comm_agree(writer->comm, status));
  TRY(asparse_writer_text(writer, ASPARSE_BINSPARSE_ATTRIBUTE, text));
cleanup:
  return status;
}

static asparse_status write_checksum(asparse_writer *writer, const outgoing *o) {
  const asparse_csr *a = o->a;
  const int64_t shape[2] = {a->m, a->k}, nnz = asparse_csr_nnz_local(a);
  const double one = 1.0;
  char text[ASPARSE_CHECKSUM_LENGTH];
  uint64_t sum = asparse_checksum_int64(ASPARSE_SUM_INDICES, o->entry_begin, a->col_idx, 0, nnz);
  sum += asparse_checksum_int64(ASPARSE_SUM_POINTERS, a->row_begin, a->row_ptr, o->entry_begin, a->n_rows + o->last);
  if (!o->pattern) sum += asparse_checksum_values(ASPARSE_SUM_VALUES, o->entry_begin, a->dtype, a->values, 0, nnz);
  else if (o->last) sum += asparse_checksum_values(ASPARSE_SUM_VALUES, 0, ASPARSE_FP64, &one, 0, 1);
  if (o->last) sum += asparse_checksum_int64(ASPARSE_SUM_SHAPE, 0, shape, 0, 2);
  PASS(asparse_checksum_sum(writer->comm, &sum));
  asparse_checksum_text(sum, text);
  return asparse_writer_text(writer, ASPARSE_CHECKSUM_ATTRIBUTE, text);
}

static asparse_status write_all(asparse_writer *writer, outgoing *o, const asparse_provenance *provenance) {
  const asparse_csr *a = o->a;
  int64_t nnz = asparse_csr_nnz_local(a);
  PASS(write_descriptor(writer, o));
  PASS(asparse_writer_provenance(writer, provenance));
  PASS(write_checksum(writer, o));
  PASS(asparse_writer_declare(writer, "pointers_to_1", o->index_element, a->m + 1));
  PASS(asparse_writer_declare(writer, "indices_1", o->index_element, o->nnz));
  PASS(asparse_writer_declare(writer, "values", o->value_element, o->pattern ? 1 : o->nnz));
  PASS(asparse_writer_reserve(writer));
  PASS(asparse_writer_fill(writer, "pointers_to_1", o->index_element, a->row_begin, a->n_rows + o->last, give_pointers,
                           o));
  PASS(asparse_writer_fill(writer, "indices_1", o->index_element, o->entry_begin, nnz, give_indices, o));
  if (o->pattern) return asparse_writer_fill(writer, "values", o->value_element, 0, o->last, give_one, o);
  return asparse_writer_fill(writer, "values", o->value_element, o->entry_begin, nnz, give_values, o);
}

asparse_status asparse_csr_write(asparse_comm *comm, const char *path, const asparse_csr *a, const char *value_type,
                                 const asparse_provenance *provenance) {
  asparse_writer writer;
  outgoing o = {.a = a, .pattern = value_type && strcmp(value_type, "pattern") == 0};
  PASS(place(comm, &o));
  PASS(asparse_writer_begin(comm, path, &writer));
  return asparse_writer_end(&writer, write_all(&writer, &o, provenance));
}
