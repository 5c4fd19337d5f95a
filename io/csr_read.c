#include "io/matrix_read.h"

/* Rank 0 looks at the metadata; all receive what it found. */
static asparse_status find_layout(asparse_comm *comm, const char *file, const char *object,
                                  const asparse_read_options *options, asparse_layout *layout) {
  asparse_status status = ASPARSE_OK;
  if (comm->rank == 0) status = asparse_layout_find(file, object, false, options, layout);
  TRY(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Bcast(layout, sizeof *layout, MPI_BYTE, 0, comm->mpi));
cleanup:
  return status;
}

static asparse_status read_entries(asparse_comm *comm, asparse_layout *layout, asparse_csr **a) {
  switch (layout->arrangement) {
  case ASPARSE_BY_ROWS:
  case ASPARSE_BY_COLUMNS: return asparse_compressed_read(comm, layout, a);
  case ASPARSE_BY_ENTRY: return asparse_coordinates_read(comm, layout, a);
  default: return asparse_elements_read(comm, layout, a);
  }
}

static asparse_status finish(asparse_comm *comm, asparse_structure structure, asparse_csr **a) {
  PASS(asparse_structure_expand(comm, structure, a));
  PASS(asparse_comm_agree(comm, asparse_csr_sort_rows(*a)));
  (*a)->nnz = asparse_csr_nnz_local(*a);
  return asparse_comm_sum(comm, &(*a)->nnz, 1);
}

asparse_status asparse_csr_read_with(asparse_comm *comm, const char *path, const asparse_read_options *options,
                                     asparse_csr **out, asparse_source *source) {
  asparse_status status = ASPARSE_OK;
  char *file = NULL, *object = NULL;
  hid_t id = -1;
  asparse_csr *a = NULL;
  asparse_layout layout;
  asparse_layout_init(&layout);
  TRY(asparse_comm_agree(comm, asparse_path_split(path, &file, &object)));
  TRY(find_layout(comm, file, object, options, &layout));
  TRY(asparse_hdf5_open_all(comm, file, &id));
  TRY(asparse_layout_open(comm, id, &layout));
  TRY(read_entries(comm, &layout, &a));
  asparse_layout_close(&layout);
  CLOSE_HDF5(H5Fclose, id);
  TRY(finish(comm, layout.structure, &a));
  if (source) *source = layout.source;
  *out = a;
  a = NULL;
cleanup:
  asparse_layout_close(&layout);
  CLOSE_HDF5(H5Fclose, id);
  asparse_csr_destroy(&a);
  asparse_free(file);
  asparse_free(object);
  return status;
}

asparse_status asparse_csr_read(asparse_comm *comm, const char *path, asparse_csr **a, asparse_source *source) {
  return asparse_csr_read_with(comm, path, NULL, a, source);
}
