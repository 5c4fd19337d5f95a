#include "io/hdf5_read.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "asparse_config.h"
#include "io/io.h"

#define CONVERT_IT ": convert it first, asparse_convert FILE OUT.h5"

/* What a file that is not HDF5 looks like, and what to do with it. */
static const char *looks_like(const unsigned char *head, size_t length) {
  static const struct {
    const char *magic, *advice;
  } known[] = {{"%%MatrixMarket", "it is a Matrix Market file" CONVERT_IT},
               {"MATLAB 5.0", "it is a MATLAB 5 file" CONVERT_IT},
               {"\x1f\x8b", "it is compressed with gzip" CONVERT_IT},
               {"PK\x03\x04", "it is a zip archive, as SciPy's .npz is one" CONVERT_IT},
               {"\x93NUMPY", "it is a NumPy array"},
               {"CDF", "it is a classic NetCDF file"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (length >= strlen(known[i].magic) && memcmp(head, known[i].magic, strlen(known[i].magic)) == 0)
      return known[i].advice;
  }
  for (size_t i = 0; i < length; i++) {
    if (head[i] < 0x20 && !strchr("\t\n\r\f", head[i])) return "it is no kind of file that asparse knows";
  }
  return "it looks like text" CONVERT_IT;
}

static asparse_status check_regular_file(const char *path) {
  struct stat info;
  unsigned char head[64];
  if (stat(path, &info) != 0) return ASPARSE_FAIL(ASPARSE_ERR_NO_INPUT, "%s: %s", path, strerror(errno));
  if (S_ISDIR(info.st_mode)) return ASPARSE_FAIL(ASPARSE_ERR_NO_INPUT, "%s is a folder, expected an HDF5 file", path);
  if (!S_ISREG(info.st_mode))
    return ASPARSE_FAIL(ASPARSE_ERR_NO_INPUT, "%s is not a regular file; HDF5 needs one", path);
  FILE *file = fopen(path, "rb");
  if (!file) return ASPARSE_FAIL(ASPARSE_ERR_NO_INPUT, "%s: %s", path, strerror(errno));
  size_t length = fread(head, 1, sizeof head, file);
  fclose(file);
  if (length == 0) return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s is empty, expected an HDF5 file", path);
  htri_t is_hdf5 = H5Fis_hdf5(path);
  H5Eclear2(H5E_DEFAULT);
  if (is_hdf5 <= 0) return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s is not an HDF5 file; %s", path, looks_like(head, length));
  return ASPARSE_OK;
}

bool asparse_path_is_hdf5(const char *path) {
  struct stat info;
  char file[PATH_MAX];
  const char *mark = strstr(path, "::");
  const size_t length = mark ? (size_t)(mark - path) : strlen(path);
  if (length >= sizeof file) return false;
  memcpy(file, path, length);
  file[length] = '\0';
  asparse_hdf5_begin();
  bool is_hdf5 = stat(file, &info) == 0 && S_ISREG(info.st_mode) && H5Fis_hdf5(file) > 0;
  H5Eclear2(H5E_DEFAULT);
  return is_hdf5;
}

static asparse_status open_with(const char *path, hid_t access, hid_t *file) {
  asparse_status status = ASPARSE_OK;
  /* STRONG: closing the file closes whatever an error left open in it. */
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_fclose_degree(access, H5F_CLOSE_STRONG));
  TRY_HDF5(ASPARSE_ERR_DATA, *file = H5Fopen(path, H5F_ACC_RDONLY, access));
  return ASPARSE_OK;
cleanup:
  asparse_error_prefix("%s cannot be opened", path);
  return status;
}

asparse_status asparse_hdf5_open(const char *path, hid_t *file) {
  asparse_status status = ASPARSE_OK;
  hid_t access = -1;
  asparse_hdf5_begin();
  TRY(check_regular_file(path));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, access = H5Pcreate(H5P_FILE_ACCESS));
  TRY(open_with(path, access, file));
cleanup:
  CLOSE_HDF5(H5Pclose, access);
  return status;
}

asparse_status asparse_hdf5_open_all(asparse_comm *comm, const char *path, hid_t *file) {
  asparse_status status = ASPARSE_OK;
  hid_t access = -1;
  asparse_hdf5_begin();
  TRY_HDF5(ASPARSE_ERR_RUNTIME, access = H5Pcreate(H5P_FILE_ACCESS));
#if ASPARSE_HDF5_PARALLEL
  if (comm->size > 1) {
    TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_fapl_mpio(access, comm->mpi, MPI_INFO_NULL));
    TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_all_coll_metadata_ops(access, true));
  }
#endif
cleanup:
  status = asparse_comm_agree(comm, status);
  if (status == ASPARSE_OK) status = asparse_comm_agree(comm, open_with(path, access, file));
  CLOSE_HDF5(H5Pclose, access);
  return status;
}

/* ---- objects ------------------------------------------------------------------------------- */

static herr_t refuse_link(const char *parent_file, const char *parent_group, const char *child_file,
                          const char *child_object, unsigned *access_flags, hid_t access, void *unused) {
  (void)access_flags, (void)access, (void)unused;
  ASPARSE_FAIL(ASPARSE_ERR_DATA,
               "%s: a link in group %s leads into another file (%s::%s), which is not followed; name that file "
               "itself",
               parent_file, parent_group, child_file, child_object);
  return -1;
}

/* The access list under which links into other files are refused, wherever on a path they stand. */
static asparse_status no_external_links(hid_t *access) {
  asparse_status status = ASPARSE_OK;
  TRY_HDF5(ASPARSE_ERR_RUNTIME, *access = H5Pcreate(H5P_LINK_ACCESS));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_elink_cb(*access, refuse_link, NULL));
cleanup:
  return status;
}

asparse_status asparse_hdf5_open_object(hid_t file, const char *path, hid_t *object) {
  asparse_status status = ASPARSE_OK;
  hid_t access = -1;
  bool refused_before = asparse_error_message()[0] != '\0';
  TRY(no_external_links(&access));
  *object = H5Oopen(file, path[0] ? path : "/", access);
  H5Eclear2(H5E_DEFAULT);
  if (*object < 0) {
    bool refused = !refused_before && asparse_error_message()[0] != '\0';
    status =
        refused ? ASPARSE_ERR_DATA
                : ASPARSE_FAIL(ASPARSE_ERR_USAGE, "the file holds no object \"%s\"; h5ls -r lists what it holds", path);
  }
cleanup:
  CLOSE_HDF5(H5Pclose, access);
  return status;
}

asparse_status asparse_hdf5_exists(hid_t file, const char *path, bool *exists) {
  hid_t object = -1;
  asparse_status status = asparse_hdf5_open_object(file, path, &object);
  *exists = status == ASPARSE_OK;
  CLOSE_HDF5(H5Oclose, object);
  if (status != ASPARSE_ERR_USAGE) return status;
  asparse_error_clear();
  return ASPARSE_OK;
}

/* ---- attributes ----------------------------------------------------------------------------- */

enum { LONGEST_TEXT = 1 << 24 };

static asparse_status read_variable_text(hid_t attribute, hid_t type, hid_t space, char **text) {
  asparse_status status = ASPARSE_OK;
  char *owned_by_hdf5 = NULL;
  TRY_HDF5(ASPARSE_ERR_DATA, H5Aread(attribute, type, &owned_by_hdf5));
  size_t length = owned_by_hdf5 ? strlen(owned_by_hdf5) : 0;
  ALLOC(*text, (int64_t)length + 1);
  memcpy(*text, owned_by_hdf5 ? owned_by_hdf5 : "", length);
  (*text)[length] = '\0';
cleanup:
  if (owned_by_hdf5) H5Dvlen_reclaim(type, space, H5P_DEFAULT, &owned_by_hdf5);
  return status;
}

asparse_status asparse_hdf5_read_text(hid_t object, const char *name, char **text) {
  asparse_status status = ASPARSE_OK;
  hid_t attribute = -1, type = -1, space = -1;
  char *copy = NULL;
  TRY_HDF5(ASPARSE_ERR_DATA, attribute = H5Aopen(object, name, H5P_DEFAULT));
  TRY_HDF5(ASPARSE_ERR_DATA, type = H5Aget_type(attribute));
  TRY_HDF5(ASPARSE_ERR_DATA, space = H5Aget_space(attribute));
  TRY_THAT(H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1, ASPARSE_ERR_DATA,
           "attribute \"%s\" is not one text string", name);
  if (H5Tis_variable_str(type) > 0) {
    TRY(read_variable_text(attribute, type, space, &copy));
  } else {
    size_t size = H5Tget_size(type);
    TRY_THAT(size <= LONGEST_TEXT, ASPARSE_ERR_DATA, "attribute \"%s\" is a text of %zu bytes", name, size);
    ALLOC_ZERO(copy, (int64_t)size + 1);
    TRY_HDF5(ASPARSE_ERR_DATA, H5Aread(attribute, type, copy));
  }
  *text = copy;
  copy = NULL;
cleanup:
  asparse_free(copy);
  CLOSE_HDF5(H5Sclose, space);
  CLOSE_HDF5(H5Tclose, type);
  CLOSE_HDF5(H5Aclose, attribute);
  return status;
}

asparse_status asparse_hdf5_read_integers(hid_t object, const char *name, int n, int64_t *values) {
  asparse_status status = ASPARSE_OK;
  hid_t attribute = -1, type = -1, space = -1;
  TRY_THAT(H5Aexists(object, name) > 0, ASPARSE_ERR_DATA, "attribute \"%s\" is missing", name);
  TRY_HDF5(ASPARSE_ERR_DATA, attribute = H5Aopen(object, name, H5P_DEFAULT));
  TRY_HDF5(ASPARSE_ERR_DATA, type = H5Aget_type(attribute));
  TRY_HDF5(ASPARSE_ERR_DATA, space = H5Aget_space(attribute));
  TRY_THAT(H5Tget_class(type) == H5T_INTEGER && H5Sget_simple_extent_npoints(space) == n, ASPARSE_ERR_DATA,
           "attribute \"%s\" does not hold %d integer%s", name, n, n == 1 ? "" : "s");
  TRY_HDF5(ASPARSE_ERR_DATA, H5Aread(attribute, H5T_NATIVE_INT64, values));
cleanup:
  CLOSE_HDF5(H5Sclose, space);
  CLOSE_HDF5(H5Tclose, type);
  CLOSE_HDF5(H5Aclose, attribute);
  return status;
}
