#include "programs/machine.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

static cpu_set_t own_cores(void) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

int machine_cores(void) {
  const cpu_set_t cores = own_cores();
  return CPU_COUNT(&cores);
}

void machine_cores_text(char *text, size_t size) {
  const cpu_set_t cores = own_cores();
  size_t used = 0;
  text[0] = '\0';
  for (int first = 0, last; first < CPU_SETSIZE; first = last + 1) {
    last = first;
    if (!CPU_ISSET(first, &cores)) continue;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cores)) last++;
    if (used + 24 > size) {
      snprintf(text + used, size - used, "…");
      return;
    }
    used += (size_t)snprintf(text + used, size - used, last > first ? "%s%d-%d" : "%s%d", used ? "," : "", first, last);
  }
}

void machine_cpu(char *text, size_t size) {
  char line[256];
  FILE *file = fopen("/proc/cpuinfo", "r");
  snprintf(text, size, "unknown");
  while (file && fgets(line, sizeof line, file)) {
    char *value = strstr(line, ": ");
    if (strncmp(line, "model name", 10) != 0 || !value) continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(text, size, "%s", value + 2);
    break;
  }
  if (file) fclose(file);
}
