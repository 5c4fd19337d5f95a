#include "plan/link_cache.h"

#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lines of the file: "latency pair all memory fp64 fp32 bf16 key", rates of links and of cores. Older ones are dropped
 * beyond this many. */
enum { MOST_LINES = 256, KEY_LENGTH = 256, LINE_LENGTH = 512 };

typedef struct cache_key {
  char text[KEY_LENGTH];
} cache_key;

static cache_key key_of(const asparse_comm *comm, const asparse_engine *engine) {
  cache_key key;
  char host[HOST_NAME_MAX + 1] = "";
  const char *device = engine->backend->device_name(engine);
  gethostname(host, sizeof host - 1);
  snprintf(key.text, sizeof key.text, "%d ranks, %d on %s, %d threads on %.4g cores, %s, %s", comm->size,
           comm->node_size, host, omp_get_max_threads(), comm->cores, device ? device : "host",
           comm->kind == ASPARSE_COMM_NCCL ? "nccl" : "mpi");
  return key;
}

typedef struct remembered_rates {
  asparse_links links;
  double memory, flops[3];
} remembered_rates;

/* The folder's path with the file's name appended; false where there is no folder for caches. */
static bool file_of(char path[PATH_MAX], bool create) {
  const char *own = getenv("ASPARSE_CACHE"), *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char folder[PATH_MAX - 16];
  int length = -1;
  if (own && own[0]) length = snprintf(folder, sizeof folder, "%s", own);
  else if (caches && caches[0]) length = snprintf(folder, sizeof folder, "%s/asparse", caches);
  else if (home && home[0]) {
    length = snprintf(folder, sizeof folder, "%s/.cache", home);
    if (create && length < (int)sizeof folder) mkdir(folder, 0777);
    length = snprintf(folder, sizeof folder, "%s/.cache/asparse", home);
  }
  if (length < 0 || length >= (int)sizeof folder) return false;
  if (create) mkdir(folder, 0777);
  snprintf(path, PATH_MAX, "%s/links", folder);
  return true;
}

static bool are_rates(const remembered_rates *r) {
  const double links[] = {r->links.latency_seconds, r->links.pair_bytes_per_second, r->links.all_bytes_per_second};
  const double cores[] = {r->memory, r->flops[0], r->flops[1], r->flops[2]};
  bool right = true;
  for (int i = 0; i < 3; i++) right = right && links[i] > 0 && isfinite(links[i]);
  for (int i = 0; i < 4; i++) right = right && cores[i] >= 0 && isfinite(cores[i]);
  return right;
}

/* Is this line that key's, and whole? */
static bool parse(const char *line, const cache_key *key, remembered_rates *rates) {
  remembered_rates r;
  int begin = 0;
  if (sscanf(line, "%lg %lg %lg %lg %lg %lg %lg %n", &r.links.latency_seconds, &r.links.pair_bytes_per_second,
             &r.links.all_bytes_per_second, &r.memory, &r.flops[0], &r.flops[1], &r.flops[2], &begin) != 7 ||
      begin == 0)
    return false;
  const size_t length = strcspn(line + begin, "\n");
  if (length != strlen(key->text) || strncmp(line + begin, key->text, length) != 0 || !are_rates(&r)) return false;
  *rates = r;
  return true;
}

static bool find(const cache_key *key, remembered_rates *rates) {
  char path[PATH_MAX], line[LINE_LENGTH];
  bool found = false;
  FILE *file = file_of(path, false) ? fopen(path, "r") : NULL;
  if (!file) return false;
  while (!found && fgets(line, sizeof line, file)) found = parse(line, key, rates);
  fclose(file);
  return found;
}

/* Copies what the file holds of other keys. */
static void copy_others(FILE *to, const char *path, const cache_key *key) {
  char line[LINE_LENGTH];
  remembered_rates ignored;
  FILE *from = fopen(path, "r");
  if (!from) return;
  for (int n = 1; n < MOST_LINES && fgets(line, sizeof line, from); n++) {
    if (!parse(line, key, &ignored)) fputs(line, to);
  }
  fclose(from);
}

static void print_line(FILE *file, const remembered_rates *r, const cache_key *key) {
  fprintf(file, "%.3g %.3g %.3g %.3g %.3g %.3g %.3g %s\n", r->links.latency_seconds, r->links.pair_bytes_per_second,
          r->links.all_bytes_per_second, r->memory, r->flops[0], r->flops[1], r->flops[2], key->text);
}

/* The file is replaced as a whole, so that another job's reader never sees half of it. */
static void remember(const cache_key *key, const remembered_rates *rates) {
  char path[PATH_MAX], temporary[PATH_MAX + 32];
  if (!file_of(path, true)) return;
  snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
  FILE *file = fopen(temporary, "w");
  if (!file) return;
  print_line(file, rates, key);
  copy_others(file, path, key);
  if (fclose(file) != 0 || rename(temporary, path) != 0) unlink(temporary);
}

/* As the file would hold it, so that this run plans with what later ones will. */
static double rounded(double rate) {
  char text[32];
  snprintf(text, sizeof text, "%.3g", rate);
  return strtod(text, NULL);
}

static remembered_rates rounded_rates(const asparse_links *links, const asparse_host_rates *rates) {
  return (remembered_rates){
      {rounded(links->latency_seconds), rounded(links->pair_bytes_per_second), rounded(links->all_bytes_per_second)},
      rounded(rates->bytes_per_second),
      {rounded(rates->flops_per_second[0]), rounded(rates->flops_per_second[1]), rounded(rates->flops_per_second[2])}};
}

/* What rank 0 finds, on every rank. Collective. */
static asparse_status find_everywhere(asparse_comm *comm, const asparse_engine *engine, remembered_rates *rates,
                                      bool *known) {
  asparse_status status = ASPARSE_OK;
  int found = 0;
  *rates = (remembered_rates){.links = {.pair_bytes_per_second = INFINITY, .all_bytes_per_second = INFINITY}};
  if (comm->rank == 0) {
    const cache_key key = key_of(comm, engine);
    found = find(&key, rates);
  }
  TRY_MPI(MPI_Bcast(&found, 1, MPI_INT, 0, comm->mpi));
  TRY_MPI(MPI_Bcast(rates, (int)sizeof *rates, MPI_BYTE, 0, comm->mpi));
  *known = found != 0;
cleanup:
  return status;
}

asparse_status asparse_link_cache_find(asparse_comm *comm, const asparse_engine *engine, asparse_links *links,
                                       bool *known) {
  remembered_rates rates;
  *links = (asparse_links){.pair_bytes_per_second = INFINITY, .all_bytes_per_second = INFINITY};
  *known = comm->size == 1;
  if (*known) return ASPARSE_OK;
  PASS(find_everywhere(comm, engine, &rates, known));
  *links = rates.links;
  return ASPARSE_OK;
}

asparse_status asparse_link_cache_get(asparse_comm *comm, asparse_engine *engine, asparse_links *links,
                                      asparse_host_rates *rates, bool *known) {
  asparse_status status = ASPARSE_OK;
  remembered_rates r;
  if (comm->size == 1) return asparse_link_cache_find(comm, engine, links, known);
  TRY(find_everywhere(comm, engine, &r, known));
  if (!*known) {
    TRY(asparse_links_measure(comm, engine, links));
    r = rounded_rates(links, rates);
    TRY_MPI(MPI_Bcast(&r, (int)sizeof r, MPI_BYTE, 0, comm->mpi));
    if (comm->rank == 0) {
      const cache_key key = key_of(comm, engine);
      remember(&key, &r);
    }
  }
  *links = r.links;
  rates->bytes_per_second = r.memory;
  for (int i = 0; i < 3; i++) rates->flops_per_second[i] = r.flops[i];
cleanup:
  return status;
}
