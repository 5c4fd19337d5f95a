#include "io/budget.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t set_bytes = -1;

void asparse_budget_set(int64_t bytes) { set_bytes = bytes; }

/* The number that follows the first match of format in a file of the system; otherwise `otherwise`. */
static int64_t system_number(const char *path, const char *format, int64_t otherwise) {
  FILE *file = fopen(path, "r");
  char line[256];
  long long found = 0;
  int64_t number = otherwise;
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, format, &found) != 1) continue;
    number = found;
    break;
  }
  if (file) fclose(file);
  return number;
}

int64_t asparse_budget_available(void) {
  if (set_bytes >= 0) return set_bytes;
  int64_t physical = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  int64_t available = system_number("/proc/meminfo", "MemAvailable: %lld", physical / 1024) * 1024;
  int64_t container = system_number("/sys/fs/cgroup/memory.max", "%lld", INT64_MAX);
  if (container < available) available = container;
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < (rlim_t)INT64_MAX) {
    int64_t in_use = system_number("/proc/self/statm", "%lld", 0) * sysconf(_SC_PAGESIZE);
    int64_t left = (int64_t)limit.rlim_cur - in_use;
    if (left < available) available = left > 0 ? left : 0;
  }
  return available;
}

asparse_status asparse_budget_check(const asparse_comm *comm, int64_t count, int64_t bytes_each, const char *what) {
  int64_t share = asparse_budget_available() / comm->node_size;
  if (count <= share / bytes_each) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_MEMORY,
                      "%s needs %.4g GiB on each rank, but %.4g GiB are available (%d ranks share this host); use "
                      "more hosts, or check the sizes that the file declares",
                      what, (double)count * (double)bytes_each / 0x1p30, (double)share / 0x1p30, comm->node_size);
}

asparse_status asparse_budget_allows(const char *name, int64_t bytes, const char *what) {
  int64_t available = asparse_budget_available();
  if (bytes <= available) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_MEMORY,
                      "%s: %s needs %.1f GiB of memory, %.1f GiB are available; use a machine with more memory", name,
                      what, (double)bytes / 0x1p30, (double)available / 0x1p30);
}
