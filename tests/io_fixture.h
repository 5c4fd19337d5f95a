/* For tests of io/: the ranks, a folder of their own, and HDF5 files made by hand. */
#ifndef ASPARSE_IO_FIXTURE_H
#define ASPARSE_IO_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <hdf5.h>

#include "base/dense.h"
#include "io/io.h"

static asparse_comm *comm;
static char folder[64] = "/tmp/asparse-io-XXXXXX";
static char path_text[512];

/* A file in the test's folder; overwritten by the next call. */
static inline const char *in_folder(const char *name) {
  snprintf(path_text, sizeof path_text, "%s/%s", folder, name);
  return path_text;
}

/* A file of the shared data, NULL (with a word) where there is none. */
static inline const char *in_data(const char *name) {
  const char *root = getenv("ASPARSE_DATA");
  snprintf(path_text, sizeof path_text, "%s/io-files/%s", root ? root : "../shared/data", name);
  if (access(path_text, R_OK) == 0) return path_text;
  if (comm->rank == 0) print_message("skipped: no %s (set ASPARSE_DATA)\n", path_text);
  return NULL;
}

static inline void barrier(void) { MPI_Barrier(comm->mpi); }

/* The call failed as wanted, on every rank, and said so. */
static inline void expect_failure(asparse_status found, asparse_status wanted, const char *words) {
  if (found != wanted || !strstr(asparse_error_message(), words))
    print_error("found %s \"%s\", wanted %s with \"%s\"\n", asparse_status_name(found), asparse_error_message(),
                asparse_status_name(wanted), words);
  assert_int_equal(found, wanted);
  assert_non_null(strstr(asparse_error_message(), words));
  asparse_error_clear();
}

static inline void expect_ok(asparse_status found) {
  if (found != ASPARSE_OK) print_error("%s (%s)\n", asparse_error_message(), asparse_error_source());
  assert_int_equal(found, ASPARSE_OK);
}

/* Files other than the expected ones in the folder: temporaries that were left. */
static inline int count_hidden_files(void) {
  char command[128];
  snprintf(command, sizeof command, "ls -A %s | grep -c '^[.]'", folder);
  FILE *pipe = popen(command, "r");
  int count = -1;
  if (fscanf(pipe, "%d", &count) != 1) count = -1;
  pclose(pipe);
  return count;
}

/* ---- HDF5 by hand; rank 0 only -------------------------------------------------------------- */

static inline hid_t new_file(const char *name) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  hid_t file = H5Fcreate(in_folder(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(file >= 0);
  return file;
}

static inline void put(hid_t where, const char *name, hid_t file_type, hid_t memory_type, int64_t count,
                       const void *data) {
  hsize_t extent = (hsize_t)count;
  hid_t space = H5Screate_simple(1, &extent, NULL);
  hid_t id = H5Dcreate2(where, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(id >= 0);
  assert_true(H5Dwrite(id, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  H5Dclose(id);
  H5Sclose(space);
}

/* A chunked dataset of which nothing is written: small on disk, whatever it declares. */
static inline void put_unwritten(hid_t where, const char *name, hid_t file_type, hsize_t count) {
  hsize_t chunk = 1024;
  hid_t space = H5Screate_simple(1, &count, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 1, &chunk);
  hid_t id = H5Dcreate2(where, name, file_type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  assert_true(id >= 0);
  H5Dclose(id);
  H5Pclose(creation);
  H5Sclose(space);
}

static inline void put_text(hid_t where, const char *name, const char *text, bool fixed) {
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, fixed ? strlen(text) : H5T_VARIABLE);
  hid_t attribute = H5Acreate2(where, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(attribute >= 0);
  assert_true(H5Awrite(attribute, type, fixed ? (const void *)text : (const void *)&text) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
}

/* Changes byte `offset` of a file. */
static inline void flip_byte(const char *path, long offset) {
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  assert_int_equal(fseek(file, offset, SEEK_SET), 0);
  int byte = fgetc(file);
  fseek(file, offset, SEEK_SET);
  fputc(byte ^ 0x10, file);
  fclose(file);
}

/* ---- main ----------------------------------------------------------------------------------- */

static inline void io_fixture_begin(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  if (asparse_comm_create(&comm, MPI_COMM_WORLD) != ASPARSE_OK) exit(1);
  if (comm->rank == 0 && !mkdtemp(folder)) exit(1);
  MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, comm->mpi);
}

static inline int io_fixture_end(int failures) {
  char command[128];
  barrier();
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (comm->rank == 0 && system(command) != 0) failures++;
  asparse_comm_destroy(&comm);
  MPI_Finalize();
  return failures;
}

#endif
