#include "plan/link_cache.h"

#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lines of the file: "latency pair all key". Older ones are dropped beyond this many. */
enum { MOST_LINES = 256, KEY_LENGTH = 256, LINE_LENGTH = 512 };

typedef struct cache_key {
  char text[KEY_LENGTH];
} cache_key;

static cache_key key_of(const asparse_comm *comm, const asparse_engine *engine) {
  cache_key key;
  char host[HOST_NAME_MAX + 1] = "";
  const char *device = engine->backend->device_name(engine);
  gethostname(host, sizeof host - 1);
  snprintf(key.text, sizeof key.text, "%d ranks, %d on %s, %d threads of %ld, %s, %s", comm->size, comm->node_size,
           host, omp_get_max_threads(), sysconf(_SC_NPROCESSORS_ONLN), device ? device : "host",
           comm->kind == ASPARSE_COMM_NCCL ? "nccl" : "mpi");
  return key;
}

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

static bool is_rate(double x) { return x > 0 && isfinite(x); }

/* Is this line that key's, and whole? */
static bool parse(const char *line, const cache_key *key, asparse_links *links) {
  asparse_links found;
  int begin = 0;
  if (sscanf(line, "%lg %lg %lg %n", &found.latency_seconds, &found.pair_bytes_per_second, &found.all_bytes_per_second,
             &begin) != 3 ||
      begin == 0)
    return false;
  const size_t length = strcspn(line + begin, "\n");
  if (length != strlen(key->text) || strncmp(line + begin, key->text, length) != 0) return false;
  if (!is_rate(found.latency_seconds) || !is_rate(found.pair_bytes_per_second) || !is_rate(found.all_bytes_per_second))
    return false;
  *links = found;
  return true;
}

/* As the file holds them, so that this run plans with what later ones will. */
static double rounded(double rate) {
  char text[32];
  snprintf(text, sizeof text, "%.3g", rate);
  return strtod(text, NULL);
}

static bool find(const cache_key *key, asparse_links *links) {
  char path[PATH_MAX], line[LINE_LENGTH];
  bool found = false;
  FILE *file = file_of(path, false) ? fopen(path, "r") : NULL;
  if (!file) return false;
  while (!found && fgets(line, sizeof line, file)) found = parse(line, key, links);
  fclose(file);
  return found;
}

/* Copies what the file holds of other keys. */
static void copy_others(FILE *to, const char *path, const cache_key *key) {
  char line[LINE_LENGTH];
  asparse_links ignored;
  FILE *from = fopen(path, "r");
  if (!from) return;
  for (int n = 1; n < MOST_LINES && fgets(line, sizeof line, from); n++) {
    if (!parse(line, key, &ignored)) fputs(line, to);
  }
  fclose(from);
}

/* The file is replaced as a whole, so that another job's reader never sees half of it. */
static void remember(const cache_key *key, const asparse_links *links) {
  char path[PATH_MAX], temporary[PATH_MAX + 32];
  if (!file_of(path, true)) return;
  snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
  FILE *file = fopen(temporary, "w");
  if (!file) return;
  fprintf(file, "%.3g %.3g %.3g %s\n", links->latency_seconds, links->pair_bytes_per_second,
          links->all_bytes_per_second, key->text);
  copy_others(file, path, key);
  if (fclose(file) != 0 || rename(temporary, path) != 0) unlink(temporary);
}

asparse_status asparse_link_cache_find(asparse_comm *comm, const asparse_engine *engine, asparse_links *links,
                                       bool *known) {
  asparse_status status = ASPARSE_OK;
  double answer[4] = {0};
  *links = (asparse_links){.pair_bytes_per_second = INFINITY, .all_bytes_per_second = INFINITY};
  *known = comm->size == 1;
  if (*known) return ASPARSE_OK;
  if (comm->rank == 0) {
    const cache_key key = key_of(comm, engine);
    answer[0] = find(&key, links);
    answer[1] = links->latency_seconds;
    answer[2] = links->pair_bytes_per_second;
    answer[3] = links->all_bytes_per_second;
  }
  TRY_MPI(MPI_Bcast(answer, 4, MPI_DOUBLE, 0, comm->mpi));
  *known = answer[0] != 0;
  *links = (asparse_links){answer[1], answer[2], answer[3]};
cleanup:
  return status;
}

asparse_status asparse_link_cache_get(asparse_comm *comm, asparse_engine *engine, asparse_links *links, bool *known) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_link_cache_find(comm, engine, links, known));
  if (*known) return ASPARSE_OK;
  TRY(asparse_links_measure(comm, engine, links));
  *links = (asparse_links){rounded(links->latency_seconds), rounded(links->pair_bytes_per_second),
                           rounded(links->all_bytes_per_second)};
  if (comm->rank == 0) {
    const cache_key key = key_of(comm, engine);
    remember(&key, links);
  }
cleanup:
  return status;
}
