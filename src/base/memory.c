#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A header before each block remembers its size; it keeps the alignment of the block. */
enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

static _Atomic int64_t live_blocks, live_bytes, peak_bytes, total_allocations;
static _Atomic int64_t fail_countdown; /* 0: off; 1: the next allocation fails */
static _Atomic bool environment_read;

static void read_environment(void) {
  if (atomic_exchange(&environment_read, true)) return;
  const char *n = getenv("ASPARSE_FAIL_ALLOC");
  const char *rank_wanted = getenv("ASPARSE_FAIL_ALLOC_RANK");
  const char *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (n && (!rank_wanted || (rank && strcmp(rank, rank_wanted) == 0))) fail_countdown = strtoll(n, NULL, 10);
}

static bool must_fail(void) {
  read_environment();
  if (atomic_load(&fail_countdown) == 0) return false;
  return atomic_fetch_sub(&fail_countdown, 1) == 1;
}

static void raise_peak(int64_t now) {
  int64_t peak = atomic_load(&peak_bytes);
  while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now)) {
  }
}

void *asparse_malloc(int64_t count, size_t size, const char *what) {
  size_t bytes = 0;
  if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) || bytes > (size_t)PTRDIFF_MAX - 2 * HUGE_PAGE) {
    ASPARSE_FAIL(ASPARSE_ERR_MEMORY, "%s: %lld elements of %zu bytes exceed the address space", what, (long long)count,
                 size);
    return NULL;
  }
  atomic_fetch_add(&total_allocations, 1);
  size_t alignment = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
  size_t whole = (bytes + ALIGNMENT + alignment - 1) / alignment * alignment;
  char *block = must_fail() ? NULL : aligned_alloc(alignment, whole);
  if (!block) {
    ASPARSE_FAIL(ASPARSE_ERR_MEMORY,
                 "cannot allocate %.1f MiB for %s (%.1f MiB in use by this rank); use more ranks or "
                 "a machine with more memory",
                 (double)bytes / 1048576.0, what, (double)atomic_load(&live_bytes) / 1048576.0);
    return NULL;
  }
  if (alignment == HUGE_PAGE) madvise(block, whole, MADV_HUGEPAGE);
  memcpy(block, &bytes, sizeof bytes);
  atomic_fetch_add(&live_blocks, 1);
  raise_peak(atomic_fetch_add(&live_bytes, (int64_t)bytes) + (int64_t)bytes);
  return block + ALIGNMENT;
}

void *asparse_calloc(int64_t count, size_t size, const char *what) {
  void *pointer = asparse_malloc(count, size, what);
  if (pointer) memset(pointer, 0, (size_t)count * size);
  return pointer;
}

void asparse_free(void *pointer) {
  if (!pointer) return;
  char *block = (char *)pointer - ALIGNMENT;
  size_t bytes;
  memcpy(&bytes, block, sizeof bytes);
  atomic_fetch_sub(&live_blocks, 1);
  atomic_fetch_sub(&live_bytes, (int64_t)bytes);
  free(block);
}

int64_t asparse_memory_live_blocks(void) { return atomic_load(&live_blocks); }
int64_t asparse_memory_live_bytes(void) { return atomic_load(&live_bytes); }
int64_t asparse_memory_peak_bytes(void) { return atomic_load(&peak_bytes); }
void asparse_memory_reset_peak(void) { atomic_store(&peak_bytes, atomic_load(&live_bytes)); }
int64_t asparse_memory_total_allocations(void) { return atomic_load(&total_allocations); }
void asparse_memory_fail_at(int64_t n) {
  atomic_store(&environment_read, true);
  atomic_store(&fail_countdown, n);
}
