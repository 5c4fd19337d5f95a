/* Every allocation fails once: fail_allocations FOLDER FILE..., on any number of ranks. Each FILE is read and, where it
 * is HDF5, written in every format into FOLDER, partitioned and planned; of each of these the n-th allocation fails,
 * for n = 1, 2, … (on several ranks in growing steps), on one rank after the other. The status must be the same on all
 * ranks, a message must name what could not be allocated, nothing may leak, and no file may be left. Prints how many
 * failed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "asparse.h"
#include "io/io.h"

static int n_wrong;
static int64_t n_failed;

/* What is tried: on success it has freed what it made, but for *a of a reading. */
typedef struct job {
  const char *name;
  asparse_status (*run)(asparse_comm *comm, struct job *job);
  const char *path; /* of the input */
  asparse_csr *a;   /* what was read, for the jobs that follow; borrowed */
  char output[512]; /* "" where nothing is written */
  int format;       /* of the output */
  asparse_options options;
} job;

static asparse_status read_matrix(asparse_comm *comm, const char *path, asparse_csr **a) {
  const asparse_import_options import = {0};
  asparse_source source;
  int64_t is_hdf5 = comm->rank == 0 && asparse_path_is_hdf5(path);
  PASS(asparse_comm_max(comm, &is_hdf5, 1));
  return is_hdf5 ? asparse_csr_read(comm, path, a, &source) : asparse_import(comm, path, &import, a, &source);
}

static asparse_status read_job(asparse_comm *comm, job *job) {
  asparse_csr *a = NULL;
  asparse_status status = read_matrix(comm, job->path, &a);
  asparse_csr_destroy(&a);
  return status;
}

static asparse_status write_job(asparse_comm *comm, job *job) {
  const asparse_provenance provenance = {"fail_allocations", job->path, "none", 1};
  return asparse_export(comm, job->output, job->format, job->a, "float64", &provenance);
}

static asparse_status plan_job(asparse_comm *comm, job *job) {
  asparse_status status = ASPARSE_OK;
  enum { COLUMNS = 4 };
  asparse_csr *slab = NULL;
  asparse_matrix *a = NULL;
  asparse_plan *plan = NULL;
  TRY(asparse_csr_read(comm, job->path, &slab, NULL));
  TRY(asparse_matrix_create(comm, &slab, &job->options, COLUMNS, &a));
  TRY(asparse_plan_create(a, &job->options, COLUMNS, &plan));
cleanup:
  asparse_plan_destroy(&plan);
  asparse_matrix_destroy(&a);
  asparse_csr_destroy(&slab);
  return status;
}

static void expect(asparse_comm *comm, bool condition, const job *job, int64_t n, int rank, const char *what) {
  if (condition) return;
  n_wrong++;
  fprintf(stderr, "FAILED: rank %d of %d, %s of %s, allocation %lld on rank %d: %s: %s\n", comm->rank, comm->size,
          job->name, job->path, (long long)n, rank, what, asparse_error_message());
}

/* One run with the n-th allocation of `rank` failing; false when it has fewer. */
static bool fail_once(asparse_comm *comm, job *job, int64_t n, int rank) {
  const int64_t blocks = asparse_memory_live_blocks(), before = asparse_memory_total_allocations();
  if (job->output[0] && comm->rank == 0) unlink(job->output);
  asparse_error_clear();
  asparse_memory_fail_at(comm->rank == rank ? n : 0);
  asparse_status status = job->run(comm, job);
  asparse_memory_fail_at(0);
  int64_t failed = comm->rank == rank && asparse_memory_total_allocations() - before >= n;
  int64_t range[2] = {status, -(int64_t)status};
  asparse_comm_max(comm, &failed, 1);
  asparse_comm_max(comm, range, 2);
  expect(comm, range[0] == -range[1], job, n, rank, "other ranks have another status");
  expect(comm, asparse_memory_live_blocks() == blocks, job, n, rank, "leaks");
  if (!failed) {
    expect(comm, status == ASPARSE_OK, job, n, rank, "fails without a failing allocation");
    if (job->output[0] && comm->rank == 0) unlink(job->output);
    return false;
  }
  expect(comm, status == ASPARSE_ERR_MEMORY && strstr(asparse_error_message(), "allocate"), job, n, rank, "no message");
  expect(comm, !job->output[0] || access(job->output, F_OK) != 0, job, n, rank, "left an output");
  n_failed++;
  return true;
}

/* All of them where there is one rank; on several, which take longer, fewer of the later ones. */
static void sweep(asparse_comm *comm, job *job) {
  for (int rank = 0; rank < comm->size; rank++) {
    int64_t n = 1;
    while (fail_once(comm, job, n, rank)) n += comm->size == 1 ? 1 : 1 + n / 8;
  }
}

static void sweep_plans(asparse_comm *comm, const char *path) {
  static const asparse_format formats[] = {ASPARSE_FORMAT_CSR, ASPARSE_FORMAT_WCSR, ASPARSE_FORMAT_BCSR};
  for (int i = 0; i < 3; i++) {
    job job = {.name = "plan", .run = plan_job, .path = path, .options = asparse_options_default()};
    job.options.backend = ASPARSE_BACKEND_HOST;
    job.options.format = formats[i];
    job.options.exchange = i == 1 ? ASPARSE_EXCHANGE_COVER : ASPARSE_EXCHANGE_ROWS;
    sweep(comm, &job);
  }
}

static asparse_status sweep_file(asparse_comm *comm, const char *folder, const char *path) {
  static const char *const formats[] = {"h5", "h5ad", "mtx", "mtx.gz"};
  asparse_csr *a = NULL;
  job reading = {.name = "read", .run = read_job, .path = path};
  sweep(comm, &reading);
  if (!asparse_path_is_hdf5(path)) return ASPARSE_OK;
  asparse_error_clear();
  PASS(read_matrix(comm, path, &a));
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    job writing = {.name = formats[i], .run = write_job, .path = path, .a = a};
    snprintf(writing.output, sizeof writing.output, "%s/out.%s", folder, formats[i]);
    PASS(asparse_export_find(writing.output, NULL, &writing.format));
    sweep(comm, &writing);
  }
  asparse_csr_destroy(&a);
  sweep_plans(comm, path);
  return ASPARSE_OK;
}

int main(int argc, char **argv) {
  asparse_comm *comm = NULL;
  MPI_Init(&argc, &argv);
  asparse_status status = asparse_comm_create(&comm, MPI_COMM_WORLD);
  for (int i = 2; i < argc && status == ASPARSE_OK; i++) status = sweep_file(comm, argv[1], argv[i]);
  if (status != ASPARSE_OK) fprintf(stderr, "FAILED: %s\n", asparse_error_message());
  if (comm && comm->rank == 0) printf("%lld allocations failed\n", (long long)n_failed);
  asparse_comm_destroy(&comm);
  MPI_Finalize();
  return status != ASPARSE_OK || n_wrong > 0;
}
