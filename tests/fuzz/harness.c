#include "fuzz/harness.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/csr.h"
#include "io/budget.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of the leak sanitizer, where there is one. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));
const char *__lsan_default_suppressions(void);
const char *__asan_default_options(void);

/* What a file may ask for at a time, little enough to be quick; what is taken altogether, several arrays, stays below a
 * multiple of it, unless something is not budgeted. */
enum { BUDGET_BYTES = 32 << 20, MOST_BYTES = 6 * BUDGET_BYTES };

asparse_comm *fuzz_comm;
int64_t fuzz_n_accepted;
static int input_file = -1;
static char input_path[256];

void fuzz_fail(const char *condition, const char *source, int line) {
  fprintf(stderr, "%s:%d: %s does not hold; last error: \"%s\" (%s)\n", source, line, condition,
          asparse_error_message(), asparse_error_source());
  abort();
}

static void remove_input(void) { unlink(input_path); }

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  setenv("OMPI_MCA_ess_singleton_isolated", "1", 0); /* no daemon beside a process that runs alone … */
  setenv("OMPI_MCA_btl", "self", 0);                 /* … and no shared memory, which a crash would leave behind */
  if (__lsan_disable) __lsan_disable();              /* what MPI leaks is not ours */
  MPI_Init(argc, argv);
  if (__lsan_enable) __lsan_enable();
  FUZZ_THAT(asparse_comm_create(&fuzz_comm, MPI_COMM_WORLD) == ASPARSE_OK);
  asparse_budget_set(BUDGET_BYTES);
  H5set_free_list_limits(-1, -1, -1, -1, -1, -1); /* none: HDF5 keeps its caches' memory from one file to the next */
  const char *folder = getenv("TMPDIR");
  snprintf(input_path, sizeof input_path, "%s/asparse-fuzz-XXXXXX", folder && *folder ? folder : "/dev/shm");
  input_file = mkstemp(input_path);
  FUZZ_THAT(input_file >= 0 && atexit(remove_input) == 0);
  return 0;
}

const char *fuzz_file(const void *data, size_t size) {
  FUZZ_THAT(ftruncate(input_file, 0) == 0 && pwrite(input_file, data, size, 0) == (ssize_t)size);
  return input_path;
}

/* HDF5 forgets memory of its own when a file is damaged; what we forget in it, the count of open objects tells. */
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

/* Programs have malloc return NULL for a size that cannot be. */
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

/* In place of the library's, by the linker: what was damaged is to reach the checks behind the checksum. */
asparse_status __wrap_asparse_checksum_compare(const char *label, uint64_t found, uint64_t expected);
asparse_status __wrap_asparse_checksum_compare(const char *label, uint64_t found, uint64_t expected) {
  (void)label, (void)found, (void)expected;
  return ASPARSE_OK;
}

/* The lowest free descriptor: higher than before when one was left open. */
static int free_descriptor(void) {
  int descriptor = dup(input_file);
  close(descriptor);
  return descriptor;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const int descriptor = free_descriptor();
  const int64_t blocks = asparse_memory_live_blocks();
  asparse_memory_reset_peak();
  fuzz_one(data, size);
  asparse_error_clear();
  FUZZ_THAT(asparse_memory_live_blocks() == blocks);
  FUZZ_THAT(asparse_memory_peak_bytes() <= MOST_BYTES);
  FUZZ_THAT(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
  FUZZ_THAT(free_descriptor() == descriptor);
  return 0;
}

void fuzz_check_status(asparse_status status) {
  FUZZ_THAT(status == ASPARSE_OK || status == ASPARSE_ERR_DATA || status == ASPARSE_ERR_USAGE ||
            status == ASPARSE_ERR_MEMORY);
  FUZZ_THAT((status == ASPARSE_OK) == (asparse_error_message()[0] == '\0'));
  fuzz_n_accepted += status == ASPARSE_OK;
  if (getenv("FUZZ_SAY")) fprintf(stderr, "  %s %s\n", asparse_status_name(status), asparse_error_message());
}

void fuzz_check_csr(const asparse_csr *a, bool whole) {
  FUZZ_THAT(a->m >= 0 && a->k >= 0 && a->row_begin >= 0 && a->n_rows >= 0 && a->n_rows <= a->m - a->row_begin);
  FUZZ_THAT(!whole || (a->row_begin == 0 && a->n_rows == a->m && a->nnz == asparse_csr_nnz_local(a)));
  FUZZ_THAT(a->row_ptr[0] == 0 && a->n_duplicates >= 0 && a->n_inexact >= 0);
  for (int64_t i = 0; i < a->n_rows; i++) {
    FUZZ_THAT(a->row_ptr[i] <= a->row_ptr[i + 1]);
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++)
      FUZZ_THAT(a->col_idx[e] >= (e > a->row_ptr[i] ? a->col_idx[e - 1] + 1 : 0) && a->col_idx[e] < a->k);
  }
}
