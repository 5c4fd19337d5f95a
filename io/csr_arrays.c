#include "io/csr_arrays.h"

#include <string.h>

static void give_pointers(void *context, int64_t first, int64_t count, void *elements) {
  const asparse_csr_arrays *s = context;
  uint32_t *narrow = elements;
  uint64_t *wide = elements;
  for (int64_t i = 0; i < count; i++) {
    uint64_t pointer = (uint64_t)(s->a->row_ptr[first + i] + s->entry_begin);
    if (asparse_element_size(s->pointer_element) == sizeof *narrow) narrow[i] = (uint32_t)pointer;
    else wide[i] = pointer;
  }
}

static void give_indices(void *context, int64_t first, int64_t count, void *elements) {
  const asparse_csr_arrays *s = context;
  asparse_element_from_int64(s->pointer_element, s->a->col_idx + first, count, elements);
}

static void give_values(void *context, int64_t first, int64_t count, void *elements) {
  const asparse_csr_arrays *s = context;
  size_t size = asparse_dtype_size(s->a->dtype);
  asparse_dtype stored = asparse_element_dtype(s->value_element);
  asparse_convert_values(stored, elements, s->a->dtype, (const char *)s->a->values + (size_t)first * size, count);
}

static void give_one(void *context, int64_t first, int64_t count, void *elements) {
  (void)context, (void)first;
  for (int64_t i = 0; i < count; i++) ((int8_t *)elements)[i] = 1;
}

asparse_status asparse_csr_place(asparse_comm *comm, const asparse_csr *a, int64_t *entry_begin, int64_t *nnz) {
  asparse_status status = ASPARSE_OK;
  int64_t own[2] = {a->n_rows, asparse_csr_nnz_local(a)}, before[2] = {0, 0}, all[2] = {own[0], own[1]};
  TRY_MPI(MPI_Exscan(own, before, 2, MPI_INT64_T, MPI_SUM, comm->mpi));
  if (comm->rank == 0) before[0] = before[1] = 0;
  TRY(asparse_comm_sum(comm, all, 2));
  *entry_begin = before[1];
  *nnz = all[1];
  if (a->row_begin != before[0] || all[0] != a->m)
    status = ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "slabs of rows must follow each other in rank order");
  status = asparse_comm_agree(comm, status);
cleanup:
  return status;
}

asparse_status asparse_csr_arrays_place(asparse_comm *comm, const asparse_csr *a, asparse_csr_arrays *s) {
  s->a = a;
  s->last = comm->rank == comm->size - 1;
  return asparse_csr_place(comm, a, &s->entry_begin, &s->nnz);
}

asparse_status asparse_csr_arrays_write(asparse_writer *writer, const asparse_csr_arrays *s) {
  const asparse_csr *a = s->a;
  const int64_t nnz = asparse_csr_nnz_local(a), begin = s->iso ? 0 : s->entry_begin, count = s->iso ? s->last : nnz;
  void *context = (void *)s;
  PASS(asparse_writer_declare(writer, s->pointers, s->pointer_element, a->m + 1));
  PASS(asparse_writer_declare(writer, s->indices, s->pointer_element, s->nnz));
  PASS(asparse_writer_declare(writer, s->values, s->value_element, s->iso ? 1 : s->nnz));
  PASS(asparse_writer_reserve(writer));
  PASS(asparse_writer_fill(writer, s->pointers, s->pointer_element, a->row_begin, a->n_rows + s->last, give_pointers,
                           context));
  PASS(asparse_writer_fill(writer, s->indices, s->pointer_element, s->entry_begin, nnz, give_indices, context));
  return asparse_writer_fill(writer, s->values, s->value_element, begin, count, s->iso ? give_one : give_values,
                             context);
}
