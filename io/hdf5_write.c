#include "io/hdf5_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "asparse_config.h"
#include "io/checksum.h"

/* ---- opening and closing -------------------------------------------------------------------- */

static asparse_status create_access(asparse_comm *comm, hid_t *access) {
  asparse_status status = ASPARSE_OK;
  TRY_HDF5(ASPARSE_ERR_RUNTIME, *access = H5Pcreate(H5P_FILE_ACCESS));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_fclose_degree(*access, H5F_CLOSE_STRONG));
  /* Metadata with checksums, readable since HDF5 1.8. */
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_libver_bounds(*access, H5F_LIBVER_V18, H5F_LIBVER_LATEST));
#if ASPARSE_HDF5_PARALLEL
  if (comm) TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_fapl_mpio(*access, comm->mpi, MPI_INFO_NULL));
#else
  (void)comm;
#endif
cleanup:
  return status;
}

static asparse_status create_file(const char *path, hid_t *file) {
  asparse_status status = ASPARSE_OK;
  hid_t access = -1, creation = -1;
  TRY(create_access(NULL, &access));
  TRY(asparse_hdf5_creation(H5P_FILE_CREATE, &creation)); /* of the file, hence of its root group */
  TRY_HDF5(ASPARSE_ERR_IO, *file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access));
cleanup:
  CLOSE_HDF5(H5Pclose, creation);
  CLOSE_HDF5(H5Pclose, access);
  return status;
}

asparse_status asparse_hdf5_reopen(asparse_comm *comm, const char *path, hid_t *file) {
  hid_t access = -1;
  asparse_status status = create_access(comm, &access);
  if (comm) TRY(asparse_comm_agree(comm, status));
  else TRY(status);
  TRY_HDF5(ASPARSE_ERR_IO, *file = H5Fopen(path, H5F_ACC_RDWR, access));
cleanup:
  CLOSE_HDF5(H5Pclose, access);
  return status;
}

asparse_status asparse_hdf5_close_written(hid_t *file) {
  asparse_status status = ASPARSE_OK;
  if (*file < 0) return ASPARSE_OK;
  if (H5Fclose(*file) < 0) status = asparse_hdf5_fail(ASPARSE_ERR_IO, "H5Fclose", __FILE__, __LINE__);
  *file = -1;
  return status;
}

/* ---- metadata ------------------------------------------------------------------------------- */

asparse_status asparse_hdf5_text_type(size_t length, hid_t *type) {
  asparse_status status = ASPARSE_OK;
  TRY_HDF5(ASPARSE_ERR_RUNTIME, *type = H5Tcopy(H5T_C_S1));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Tset_size(*type, length));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Tset_strpad(*type, H5T_STR_NULLPAD));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Tset_cset(*type, H5T_CSET_UTF8));
cleanup:
  return status;
}

asparse_status asparse_hdf5_creation(hid_t object_class, hid_t *creation) {
  asparse_status status = ASPARSE_OK;
  TRY_HDF5(ASPARSE_ERR_RUNTIME, *creation = H5Pcreate(object_class));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_obj_track_times(*creation, 0));
cleanup:
  return status;
}

asparse_status asparse_hdf5_write_text(hid_t object, const char *name, const char *text) {
  asparse_status status = ASPARSE_OK;
  hid_t type = -1, space = -1, attribute = -1;
  const size_t length = strlen(text);
  TRY(asparse_hdf5_text_type(length > 0 ? length : 1, &type));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, space = H5Screate(H5S_SCALAR));
  TRY_HDF5(ASPARSE_ERR_IO, attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
  TRY_HDF5(ASPARSE_ERR_IO, H5Awrite(attribute, type, text));
cleanup:
  CLOSE_HDF5(H5Aclose, attribute);
  CLOSE_HDF5(H5Sclose, space);
  CLOSE_HDF5(H5Tclose, type);
  return status;
}

asparse_status asparse_hdf5_declare(hid_t file, const char *path, asparse_element element, int64_t count) {
  asparse_status status = ASPARSE_OK;
  hid_t space = -1, creation = -1, link = -1, id = -1;
  hsize_t extent = (hsize_t)count;
  TRY_HDF5(ASPARSE_ERR_RUNTIME, space = H5Screate_simple(1, &extent, NULL));
  TRY(asparse_hdf5_creation(H5P_DATASET_CREATE, &creation));
  /* Placed in the file at once, and not filled: every element is written later. */
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, link = H5Pcreate(H5P_LINK_CREATE));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_create_intermediate_group(link, 1));
  TRY_HDF5(ASPARSE_ERR_IO,
           id = H5Dcreate2(file, path, asparse_element_hdf5(element), space, link, creation, H5P_DEFAULT));
cleanup:
  CLOSE_HDF5(H5Dclose, id);
  CLOSE_HDF5(H5Pclose, link);
  CLOSE_HDF5(H5Pclose, creation);
  CLOSE_HDF5(H5Sclose, space);
  return status;
}

/* ---- space ---------------------------------------------------------------------------------- */

static asparse_status claim(const char *path, const char *name, int64_t *size) {
  asparse_status status = ASPARSE_OK;
  struct stat info;
  int descriptor = open(path, O_RDWR);
  TRY_THAT(descriptor >= 0 && fstat(descriptor, &info) == 0, ASPARSE_ERR_IO, "cannot write %s: %s", name,
           strerror(errno));
  *size = (int64_t)info.st_size;
  /* Not posix_fallocate, which writes into every block where the file system cannot do it. */
  TRY_THAT(fallocate(descriptor, 0, 0, info.st_size) == 0 || errno == EOPNOTSUPP || errno == ENOSYS, ASPARSE_ERR_IO,
           "cannot write %s: reserving %.4g MiB failed: %s", name, (double)*size / 0x1p20, strerror(errno));
cleanup:
  if (descriptor >= 0) close(descriptor);
  return status;
}

asparse_status asparse_hdf5_claim_space(asparse_comm *comm, const char *path, const char *name) {
  asparse_status status = ASPARSE_OK;
  struct rlimit limit;
  int64_t size = 0;
  if (comm->rank == 0) status = claim(path, name, &size);
  TRY(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Bcast(&size, 1, MPI_INT64_T, 0, comm->mpi));
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < (rlim_t)size)
    status = ASPARSE_FAIL(ASPARSE_ERR_IO,
                          "cannot write %s: it needs %lld bytes, the limit on file sizes is %llu (ulimit -f)", name,
                          (long long)size, (unsigned long long)limit.rlim_cur);
  status = asparse_comm_agree(comm, status);
cleanup:
  return status;
}

/* ---- the writer ----------------------------------------------------------------------------- */

asparse_status asparse_writer_agree(asparse_writer *writer, asparse_status local) {
  if (local != ASPARSE_OK) asparse_error_prefix("cannot write %s", writer->output.path);
  return asparse_comm_agree(writer->comm, local);
}

asparse_status asparse_writer_begin(asparse_comm *comm, const char *path, asparse_writer *writer) {
  asparse_status status = ASPARSE_OK;
  *writer = (asparse_writer){.comm = comm, .parallel = ASPARSE_HDF5_PARALLEL && comm->size > 1, .file = -1};
  asparse_hdf5_begin();
  PASS(asparse_output_begin(comm, path, &writer->output));
  if (comm->rank == 0) status = create_file(writer->output.temporary, &writer->file);
  status = asparse_writer_agree(writer, status);
  return status == ASPARSE_OK ? ASPARSE_OK : asparse_writer_end(writer, status);
}

asparse_status asparse_writer_text(asparse_writer *writer, const char *name, const char *text) {
  asparse_status status = ASPARSE_OK;
  if (writer->file >= 0) status = asparse_hdf5_write_text(writer->file, name, text);
  return asparse_writer_agree(writer, status);
}

asparse_status asparse_writer_provenance(asparse_writer *writer, const asparse_provenance *provenance) {
  char hash[ASPARSE_CHECKSUM_LENGTH];
  if (!provenance) return ASPARSE_OK;
  asparse_checksum_text(provenance->matrix_hash, hash);
  const char *texts[][2] = {{"program", provenance->program},
                            {"source", provenance->source},
                            {"options", provenance->options},
                            {"matrix_hash", provenance->matrix_hash ? hash : NULL}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    if (texts[i][1]) PASS(asparse_writer_text(writer, texts[i][0], texts[i][1]));
  }
  return ASPARSE_OK;
}

asparse_status asparse_writer_declare(asparse_writer *writer, const char *name, asparse_element element,
                                      int64_t total) {
  asparse_status status = ASPARSE_OK;
  if (writer->file >= 0) status = asparse_hdf5_declare(writer->file, name, element, total);
  return asparse_writer_agree(writer, status);
}

asparse_status asparse_writer_reserve(asparse_writer *writer) {
  asparse_status status = ASPARSE_OK;
  asparse_comm *comm = writer->comm;
  TRY(asparse_writer_agree(writer, asparse_hdf5_close_written(&writer->file)));
  TRY(asparse_hdf5_claim_space(comm, writer->output.temporary, writer->output.path));
  if (writer->parallel) status = asparse_hdf5_reopen(comm, writer->output.temporary, &writer->file);
  else if (comm->rank == 0) status = asparse_hdf5_reopen(NULL, writer->output.temporary, &writer->file);
  status = asparse_writer_agree(writer, status);
cleanup:
  return status;
}

asparse_status asparse_writer_end(asparse_writer *writer, asparse_status so_far) {
  asparse_status status = asparse_comm_agree(writer->comm, so_far);
  if (status == ASPARSE_OK && writer->file >= 0 && H5Fflush(writer->file, H5F_SCOPE_GLOBAL) < 0)
    status = asparse_hdf5_fail(ASPARSE_ERR_IO, "H5Fflush", __FILE__, __LINE__);
  asparse_status close_status = asparse_hdf5_close_written(&writer->file);
  if (status == ASPARSE_OK) status = close_status;
  return asparse_output_end(writer->comm, &writer->output, status);
}
