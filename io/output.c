#include "io/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BASE_SHOWN = 120, HOST_LENGTH = 64 };

static asparse_status io_fail(const char *what, const char *path) {
  return ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot %s %s: %s", what, path, strerror(errno));
}

/* dirname and basename may change their argument. */
static void split(const char *path, char *folder, char *base) {
  char copy[PATH_MAX];
  snprintf(copy, sizeof copy, "%s", path);
  snprintf(folder, PATH_MAX, "%s", dirname(copy));
  snprintf(copy, sizeof copy, "%s", path);
  snprintf(base, NAME_MAX + 1, "%s", basename(copy));
}

/* ".<base>.asparse-<host>-": what the temporaries of a path begin with; the process id follows. */
static void temporary_stem(const char *base, char *stem, size_t size) {
  char host[HOST_LENGTH] = "";
  gethostname(host, sizeof host - 1);
  snprintf(stem, size, ".%.*s.asparse-%s-", BASE_SHOWN, base, host);
}

static void remove_stale(const char *folder, const char *stem) {
  DIR *listing = opendir(folder);
  struct dirent *item;
  while (listing && (item = readdir(listing))) {
    if (strncmp(item->d_name, stem, strlen(stem)) != 0) continue;
    long process = strtol(item->d_name + strlen(stem), NULL, 10);
    if (process > 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH) unlinkat(dirfd(listing), item->d_name, 0);
  }
  if (listing) closedir(listing);
}

static asparse_status create_temporary(const char *path, asparse_output *output) {
  asparse_status status = ASPARSE_OK;
  char folder[PATH_MAX], base[NAME_MAX + 1], stem[NAME_MAX + 1];
  struct stat info;
  int descriptor = -1;
  if (!realpath(path, output->path)) {
    TRY_THAT(errno == ENOENT && strlen(path) < PATH_MAX, ASPARSE_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    strcpy(output->path, path);
  }
  if (stat(output->path, &info) == 0)
    TRY_THAT(S_ISREG(info.st_mode), ASPARSE_ERR_IO, "cannot write %s: it exists and is not a file", path);
  split(output->path, folder, base);
  temporary_stem(base, stem, sizeof stem);
  remove_stale(folder, stem);
  int length = snprintf(output->temporary, PATH_MAX, "%s/%s%ld", folder, stem, (long)getpid());
  TRY_THAT(length < PATH_MAX, ASPARSE_ERR_IO, "cannot write %s: the path is too long", path);
  descriptor = open(output->temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (descriptor < 0) TRY(io_fail("write into the folder of", path));
cleanup:
  if (descriptor >= 0) close(descriptor);
  if (status != ASPARSE_OK) output->temporary[0] = '\0';
  return status;
}

asparse_status asparse_output_begin(asparse_comm *comm, const char *path, asparse_output *output) {
  asparse_status status = ASPARSE_OK;
  memset(output, 0, sizeof *output);
  if (comm->rank == 0) status = create_temporary(path, output);
  PASS(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Bcast(output, sizeof *output, MPI_BYTE, 0, comm->mpi));
cleanup:
  return status;
}

static asparse_status sync_path(const char *path, int flags) {
  int descriptor = open(path, flags);
  if (descriptor < 0) return io_fail("open", path);
  /* EINVAL: this file system cannot sync what was opened (a folder, mostly). */
  asparse_status status = fsync(descriptor) == 0 || errno == EINVAL ? ASPARSE_OK : io_fail("make durable", path);
  close(descriptor);
  return status;
}

static asparse_status publish(asparse_output *output) {
  asparse_status status = ASPARSE_OK;
  char folder[PATH_MAX], base[NAME_MAX + 1];
  split(output->path, folder, base);
  TRY(sync_path(output->temporary, O_RDWR));
  if (rename(output->temporary, output->path) != 0) TRY(io_fail("rename the temporary file to", output->path));
  output->temporary[0] = '\0';
  TRY(sync_path(folder, O_RDONLY | O_DIRECTORY));
cleanup:
  return status;
}

asparse_status asparse_output_end(asparse_comm *comm, asparse_output *output, asparse_status so_far) {
  asparse_status status = asparse_comm_agree(comm, so_far);
  bool all_fine = status == ASPARSE_OK;
  if (comm->rank == 0 && output->temporary[0]) {
    if (all_fine) status = publish(output);
    if (output->temporary[0]) unlink(output->temporary);
  }
  output->temporary[0] = '\0';
  return all_fine ? asparse_comm_agree(comm, status) : status;
}
