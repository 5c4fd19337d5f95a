#include <string.h>

#include "io/hdf5_write.h"
#include "io/part_file.h"

struct asparse_part_writer {
  asparse_writer base; /* nobody holds the file between calls */
  int parts;
  asparse_dtype dtype;
  asparse_shard_kind diag, offd;
};

/* ---- header --------------------------------------------------------------------------------- */

static void give_starts(void *context, int64_t first, int64_t count, void *elements) {
  const int64_t *starts = context;
  memcpy(elements, starts + first, (size_t)count * sizeof *starts);
}

static asparse_status write_header(asparse_writer *writer, const asparse_part_header *header,
                                   const asparse_provenance *provenance) {
  char text[ASPARSE_PART_JSON];
  int64_t n_starts = header->parts + (int64_t)1, own = writer->comm->rank == 0 ? n_starts : 0;
  PASS(asparse_comm_agree(writer->comm, asparse_part_header_json(header, text)));
  PASS(asparse_writer_text(writer, ASPARSE_PARTITION_ATTRIBUTE, text));
  PASS(asparse_writer_provenance(writer, provenance));
  PASS(asparse_writer_declare(writer, "row_starts", ASPARSE_INT64, n_starts));
  PASS(asparse_writer_declare(writer, "col_starts", ASPARSE_INT64, n_starts));
  PASS(asparse_writer_reserve(writer));
  PASS(asparse_writer_fill(writer, "row_starts", ASPARSE_INT64, 0, own, give_starts, header->row_starts));
  PASS(asparse_writer_fill(writer, "col_starts", ASPARSE_INT64, 0, own, give_starts, header->col_starts));
  return asparse_writer_agree(writer, asparse_hdf5_close_written(&writer->file));
}

asparse_status asparse_part_writer_begin(asparse_comm *comm, const char *path, const asparse_part_header *header,
                                         const asparse_provenance *provenance, asparse_part_writer **out) {
  asparse_status status = ASPARSE_OK;
  asparse_part_writer *writer = asparse_calloc(1, sizeof *writer, "partition file writer");
  TRY(asparse_comm_agree(comm, writer ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  TRY(asparse_writer_begin(comm, path, &writer->base));
  writer->parts = header->parts;
  writer->dtype = header->dtype;
  writer->diag = header->diag;
  writer->offd = header->offd;
  status = write_header(&writer->base, header, provenance);
  if (status != ASPARSE_OK) TRY(asparse_writer_end(&writer->base, status));
  *out = writer;
  writer = NULL;
cleanup:
  asparse_free(writer);
  return status;
}

/* ---- announcing ----------------------------------------------------------------------------- */

/* What rank 0 needs to know to create the datasets of a part. Plain data. */
typedef struct announcement {
  int64_t part; /* -1: none in this round */
  asparse_part_scalars scalars;
  int64_t counts[ASPARSE_PART_ARRAYS];
} announcement;

static asparse_status check_kind(const asparse_part_writer *writer, const asparse_shard *shard,
                                 const asparse_shard_kind *kind) {
  if (!shard || shard->csr) return ASPARSE_OK;
  if (shard->format == kind->format && asparse_shard_row_unit(shard) == kind->unit &&
      asparse_shard_dtype(shard) == writer->dtype)
    return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "a shard's format, unit or dtype is not that of the header");
}

static asparse_status announce(const asparse_part_writer *writer, int part, const asparse_part *data,
                               asparse_part_array *arrays, announcement *mine) {
  const asparse_part nothing = {0};
  memset(mine, 0, sizeof *mine);
  mine->part = part;
  asparse_part_arrays(part < 0 ? &nothing : data, writer->dtype, writer->diag.format, writer->offd.format, arrays);
  if (part < 0) return ASPARSE_OK;
  if (part >= writer->parts)
    return ASPARSE_FAIL(ASPARSE_ERR_RUNTIME, "part %d of a partition in %d parts", part, writer->parts);
  PASS(check_kind(writer, data->diag_shard, &writer->diag));
  PASS(check_kind(writer, data->offd_shard, &writer->offd));
  for (int i = 0; i < ASPARSE_PART_ARRAYS; i++) mine->counts[i] = arrays[i].count;
  mine->scalars = (asparse_part_scalars){data->m_local,
                                         data->k_local,
                                         data->n_halo,
                                         asparse_part_shard_nnz(data->diag_shard),
                                         asparse_part_shard_nnz(data->offd_shard),
                                         asparse_part_checksum(data, arrays)};
  return ASPARSE_OK;
}

/* ---- creating: rank 0 by itself -------------------------------------------------------------- */

static asparse_status create_part(hid_t file, const announcement *announced, const asparse_part_array *names) {
  asparse_status status = ASPARSE_OK;
  hid_t group = -1;
  char path[ASPARSE_PART_PATH], text[ASPARSE_PART_JSON];
  asparse_part_path((int)announced->part, "", path);
  TRY_HDF5(ASPARSE_ERR_IO, group = H5Gcreate2(file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  TRY(asparse_part_json(&announced->scalars, text));
  TRY(asparse_hdf5_write_text(group, ASPARSE_PART_ATTRIBUTE, text));
  for (int i = 0; i < ASPARSE_PART_ARRAYS; i++) {
    if (announced->counts[i] < 0) continue;
    asparse_part_path((int)announced->part, names[i].name, path);
    TRY(asparse_hdf5_declare(file, path, names[i].element, announced->counts[i]));
  }
cleanup:
  CLOSE_HDF5(H5Gclose, group);
  return status;
}

static asparse_status create_parts(asparse_writer *writer, const announcement *all, const asparse_part_array *names) {
  asparse_status status = ASPARSE_OK, close_status;
  TRY(asparse_hdf5_reopen(NULL, writer->output.temporary, &writer->file));
  for (int r = 0; r < writer->comm->size; r++) {
    if (all[r].part >= 0) TRY(create_part(writer->file, &all[r], names));
  }
cleanup:
  close_status = asparse_hdf5_close_written(&writer->file);
  return status != ASPARSE_OK ? status : close_status;
}

/* ---- filling: every rank its own -------------------------------------------------------------- */

/* Independent, in calls of at most 1 GiB: MPI-IO fails at 2^31 bytes. */
static asparse_status fill_array(hid_t file, int part, const asparse_part_array *array) {
  asparse_status status = ASPARSE_OK;
  hid_t id = -1, in_file = -1, in_memory = -1;
  char path[ASPARSE_PART_PATH];
  int64_t size = (int64_t)asparse_element_size(array->element), most = (INT64_C(1) << 30) / size;
  asparse_part_path(part, array->name, path);
  TRY_HDF5(ASPARSE_ERR_IO, id = H5Dopen2(file, path, H5P_DEFAULT));
  TRY_HDF5(ASPARSE_ERR_IO, in_file = H5Dget_space(id));
  for (int64_t first = 0; first < array->count; first += most) {
    int64_t count = array->count - first < most ? array->count - first : most;
    hsize_t start = (hsize_t)first, extent = (hsize_t)count;
    TRY_HDF5(ASPARSE_ERR_IO, H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &start, NULL, &extent, NULL));
    TRY_HDF5(ASPARSE_ERR_RUNTIME, in_memory = H5Screate_simple(1, &extent, NULL));
    TRY_HDF5(ASPARSE_ERR_IO, H5Dwrite(id, asparse_element_hdf5(array->element), in_memory, in_file, H5P_DEFAULT,
                                      (const char *)array->data + first * size));
    CLOSE_HDF5(H5Sclose, in_memory);
  }
cleanup:
  CLOSE_HDF5(H5Sclose, in_memory);
  CLOSE_HDF5(H5Sclose, in_file);
  CLOSE_HDF5(H5Dclose, id);
  return status;
}

static asparse_status fill_part(hid_t file, int part, const asparse_part_array *arrays) {
  for (int i = 0; part >= 0 && i < ASPARSE_PART_ARRAYS; i++) {
    if (arrays[i].count >= 0) PASS(fill_array(file, part, &arrays[i]));
  }
  return ASPARSE_OK;
}

static asparse_status fill_together(asparse_writer *writer, int part, const asparse_part_array *arrays) {
  asparse_status status = asparse_hdf5_reopen(writer->comm, writer->output.temporary, &writer->file);
  PASS(asparse_writer_agree(writer, status));
  status = asparse_writer_agree(writer, fill_part(writer->file, part, arrays));
  asparse_status close_status = asparse_hdf5_close_written(&writer->file);
  return status != ASPARSE_OK ? status : asparse_writer_agree(writer, close_status);
}

static asparse_status fill_in_turn(asparse_writer *writer, int part, const asparse_part_array *arrays) {
  for (int r = 0; r < writer->comm->size; r++) {
    asparse_status status = ASPARSE_OK;
    if (r == writer->comm->rank && part >= 0) {
      status = asparse_hdf5_reopen(NULL, writer->output.temporary, &writer->file);
      if (status == ASPARSE_OK) status = fill_part(writer->file, part, arrays);
      asparse_status close_status = asparse_hdf5_close_written(&writer->file);
      if (status == ASPARSE_OK) status = close_status;
    }
    PASS(asparse_writer_agree(writer, status));
  }
  return ASPARSE_OK;
}

asparse_status asparse_part_writer_add(asparse_part_writer *writer, int part, const asparse_part *data) {
  asparse_writer *base = &writer->base;
  asparse_comm *comm = base->comm;
  asparse_part_array arrays[ASPARSE_PART_ARRAYS];
  announcement mine, *all = NULL;
  asparse_status status = announce(writer, part, data, arrays, &mine);
  if (status == ASPARSE_OK) all = asparse_malloc(comm->size, sizeof *all, "announced parts");
  TRY(asparse_comm_agree(comm, status == ASPARSE_OK && !all ? ASPARSE_ERR_MEMORY : status));
  TRY_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, comm->mpi));
  if (comm->rank == 0) status = create_parts(base, all, arrays);
  TRY(asparse_writer_agree(base, status));
  TRY(asparse_hdf5_claim_space(comm, base->output.temporary, base->output.path));
  TRY(base->parallel ? fill_together(base, part, arrays) : fill_in_turn(base, part, arrays));
cleanup:
  asparse_free(all);
  return status;
}

asparse_status asparse_part_writer_end(asparse_part_writer **writer, asparse_status so_far) {
  if (!writer || !*writer) return so_far;
  asparse_status status = asparse_writer_end(&(*writer)->base, so_far);
  FREE(*writer);
  return status;
}
