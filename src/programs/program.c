#include "programs/program.h"

#include <errno.h>
#include <libgen.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "asparse_config.h"
#include "io/io.h"

static int environment_int(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

static const char *volatile current_phase = "starting";

/* Sanitizers explain crashes themselves. */
#ifdef __SANITIZE_ADDRESS__
static void explain_crashes(void) {}
#else
static ssize_t say(const char *text) { return write(STDERR_FILENO, text, strlen(text)); }

/* What crashed says so before it dies of the signal, by what a signal handler may call. */
static void say_crash(int number) {
  const char *phase = current_phase;
  ssize_t said = say("\nasparse: error: crashed while ");
  said += say(phase);
  said += say(strncmp(phase, "reading", 7) == 0 ? ". A damaged file can do this to the HDF5 library: look at it with "
                                                  "h5dump, or try a copy made by h5repack.\n"
                                                : ". This is a defect of asparse: please report it.\n");
  (void)said;
  raise(number);
}

static void explain_crashes(void) {
  const struct sigaction action = {.sa_handler = say_crash, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
}
#endif

void asparse_program_begin(int *argc, char ***argv) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  int provided = 0;
  /* mpirun says it, else srun: "8(x2)" */
  int local_ranks = environment_int("OMPI_COMM_WORLD_LOCAL_SIZE", environment_int("SLURM_STEP_TASKS_PER_NODE", 1));
  if (local_ranks > sysconf(_SC_NPROCESSORS_ONLN)) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  explain_crashes();
}

static void print_error(const char *program, asparse_status status) {
  const char *source = asparse_error_source(), *kind = status == ASPARSE_INTERRUPTED ? "" : "error: ";
  fprintf(stderr, "%s: %s%s\n", program, kind, asparse_error_message());
  if (getenv("ASPARSE_DEBUG")) fprintf(stderr, "%s: at %s\n", program, source);
}

/* Only a program's own allocations are told: libraries keep theirs until exit. */
static void report_leaks(const char *program, int rank) {
  if (!getenv("ASPARSE_CHECK_LEAKS") || asparse_memory_live_blocks() == 0) return;
  fprintf(stderr, "%s: rank %d leaks %lld blocks, %lld bytes\n", program, rank, (long long)asparse_memory_live_blocks(),
          (long long)asparse_memory_live_bytes());
}

int asparse_program_end(asparse_comm **comm, asparse_status status, const char *program) {
  int rank = 0;
  if (status == ASPARSE_ERR_MPI && comm && *comm) asparse_comm_abort(*comm, status);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (status != ASPARSE_OK && (rank == 0 || status == ASPARSE_ERR_MPI)) print_error(program, status);
  asparse_comm_destroy(comm);
  report_leaks(program, rank);
  int code = asparse_exit_code(status);
  if (status == ASPARSE_ERR_MPI) MPI_Abort(MPI_COMM_WORLD, code); /* there never was a communicator */
  MPI_Finalize();
  return code;
}

/* As Open MPI's mpirun, srun --mpi=pmix and the launchers of PMI and PMI2 say it; -1 without a launcher. */
static int launched_rank(void) {
  return environment_int("OMPI_COMM_WORLD_RANK", environment_int("PMIX_RANK", environment_int("PMI_RANK", -1)));
}

bool asparse_program_speaks(void) { return launched_rank() <= 0; }

/* Under a launcher the ranks wait for the one that speaks: the first rank to leave would end the job. */
int asparse_program_usage_error(const char *program) {
  bool many = launched_rank() >= 0;
  if (many) MPI_Init(NULL, NULL);
  if (asparse_program_speaks()) {
    print_error(program, ASPARSE_ERR_USAGE);
    fprintf(stderr, "Try '%s --help'.\n", program);
  }
  if (many) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
  }
  return asparse_exit_code(ASPARSE_ERR_USAGE);
}

bool asparse_program_terminal(void) { return isatty(STDERR_FILENO); }

void asparse_program_progress(asparse_comm *comm, const char *phase) {
  current_phase = phase ? phase : "finishing";
  if (phase) asparse_comm_phase(comm, phase);
  if (comm->rank != 0 || !asparse_program_terminal()) return;
  fprintf(stderr, "\r\033[K%s%s", phase ? phase : "", phase ? "…" : "");
}

int asparse_program_threads(const asparse_comm *comm, int wanted) {
  cpu_set_t own;
  CPU_ZERO(&own);
  sched_getaffinity(0, sizeof own, &own);
  int share = (int)comm->cores, most = CPU_COUNT(&own);
  if (share > most) share = most;
  if (share < 1) share = 1;
  int threads = wanted > 0 ? wanted : environment_int("OMP_NUM_THREADS", share);
  if (threads < 1) threads = share;
  omp_set_num_threads(threads);
  return threads;
}

static asparse_status output_check(const char *input, const char *output) {
  asparse_status status = ASPARSE_OK;
  struct stat in, out;
  char *file = NULL, *object = NULL, *copy = strdup(output);
  TRY_THAT(copy, ASPARSE_ERR_MEMORY, "no memory for a file name");
  const char *folder = dirname(copy);
  TRY_THAT(access(folder, W_OK) == 0, ASPARSE_ERR_IO, "%s: cannot write in folder %s: %s", output, folder,
           strerror(errno));
  if (stat(output, &out) != 0) goto cleanup;
  TRY_THAT(!S_ISDIR(out.st_mode), ASPARSE_ERR_IO, "%s: is a folder; give the name of a file", output);
  if (!input) goto cleanup;
  TRY(asparse_path_split(input, &file, &object));
  TRY_THAT(stat(file, &in) != 0 || in.st_ino != out.st_ino || in.st_dev != out.st_dev, ASPARSE_ERR_USAGE,
           "%s: is the input itself; give another name", output);
cleanup:
  free(copy);
  asparse_free(file);
  asparse_free(object);
  return status;
}

asparse_status asparse_program_output_check(asparse_comm *comm, const char *input, const char *output) {
  asparse_status status = ASPARSE_OK;
  if (!output) return ASPARSE_OK;
  if (comm->rank == 0) status = output_check(input, output);
  return asparse_comm_agree(comm, status);
}

void asparse_program_version(const char *program) {
  if (!asparse_program_speaks()) return;
  printf("%s %s (%s, %s; %s HDF5%s%s%s%s)\n", program, ASPARSE_VERSION, ASPARSE_COMPILER, ASPARSE_BUILD_TYPE,
         ASPARSE_HDF5_PARALLEL ? "parallel" : "serial", ASPARSE_HAVE_METIS ? ", METIS" : "",
         ASPARSE_HAVE_PNG ? ", PNG" : "", ASPARSE_HAVE_CUDA ? ", CUDA" : "", ASPARSE_HAVE_NCCL ? ", NCCL" : "");
}

static int compare_doubles(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return a < b ? -1 : a > b;
}

void asparse_program_sort(double *values, int count) { qsort(values, (size_t)count, sizeof *values, compare_doubles); }

char *asparse_program_command(int argc, char **argv) {
  size_t length = 1;
  for (int i = 0; i < argc; i++) length += strlen(argv[i]) + 1;
  char *text = calloc(length, 1);
  for (int i = 0; text && i < argc; i++) {
    if (i > 0) strcat(text, " ");
    strcat(text, argv[i]);
  }
  return text;
}
