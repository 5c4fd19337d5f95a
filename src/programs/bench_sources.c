#include "programs/bench_sources.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "generate/generate.h"

static asparse_status append(bench_sources *sources, const char *folder, const char *name) {
  asparse_status status = ASPARSE_OK;
  char **paths = NULL, *path = NULL;
  const size_t length = (folder ? strlen(folder) + 1 : 0) + strlen(name) + 1;
  ALLOC(path, (int64_t)length);
  snprintf(path, length, "%s%s%s", folder ? folder : "", folder ? "/" : "", name);
  ALLOC(paths, sources->count + 1);
  if (sources->count > 0) memcpy(paths, sources->paths, (size_t)sources->count * sizeof *paths);
  asparse_free(sources->paths);
  sources->paths = paths;
  sources->paths[sources->count++] = path;
  path = NULL;
cleanup:
  asparse_free(path);
  return status;
}

static int is_hdf5(const struct dirent *entry) {
  const char *dot = strrchr(entry->d_name, '.');
  return dot && entry->d_name[0] != '.' && strcmp(dot, ".h5") == 0;
}

static asparse_status append_folder(bench_sources *sources, const char *folder) {
  asparse_status status = ASPARSE_OK;
  struct dirent **entries = NULL;
  const int count = scandir(folder, &entries, is_hdf5, alphasort);
  if (count < 0) return ASPARSE_FAIL(ASPARSE_ERR_NO_INPUT, "%s: %s", folder, strerror(errno));
  TRY_THAT(count > 0, ASPARSE_ERR_NO_INPUT, "%s: no *.h5 files in this folder", folder);
  for (int i = 0; i < count; i++) TRY(append(sources, folder, entries[i]->d_name));
cleanup:
  for (int i = 0; i < count; i++) free(entries[i]);
  free(entries);
  return status;
}

asparse_status bench_sources_find(const bench_options *options, bench_sources *sources) {
  for (int i = 0; i < options->n_paths; i++) {
    struct stat found;
    const bool is_folder = stat(options->paths[i], &found) == 0 && S_ISDIR(found.st_mode);
    PASS(is_folder ? append_folder(sources, options->paths[i]) : append(sources, NULL, options->paths[i]));
  }
  sources->n_files = sources->count;
  for (int i = 0; i < options->n_generate; i++) {
    asparse_generator generator;
    PASS(asparse_generator_parse(options->generate[i], (uint64_t)options->seed, ASPARSE_FP64, &generator));
    PASS(append(sources, NULL, options->generate[i]));
  }
  return ASPARSE_OK;
}

void bench_sources_free(bench_sources *sources) {
  for (int i = 0; i < sources->count; i++) asparse_free(sources->paths[i]);
  FREE(sources->paths);
  sources->count = 0;
}

void bench_source_name(const char *path, char *name, size_t length) {
  const char *object = strstr(path, "::"), *end = object ? object : path + strlen(path), *start = end;
  while (start > path && start[-1] != '/') start--;
  if (end - start > 3 && strncmp(end - 3, ".h5", 3) == 0) end -= 3;
  snprintf(name, length, "%.*s%s", (int)(end - start), start, object ? object : "");
}

/* Is item "name" or "name:unit" this kernel? */
static bool is_named(const bench_kernel *kernel, const char *item) {
  char name[96];
  snprintf(name, sizeof name, "%s:%d", kernel->name, kernel->unit);
  return strcmp(item, kernel->name) == 0 || strcmp(item, name) == 0;
}

static asparse_status unknown(const bench_engine *engine, const char *item) {
  char names[600] = "";
  for (int i = 0; i < engine->n_kernels; i++) {
    if (i > 0 && strcmp(engine->kernels[i].name, engine->kernels[i - 1].name) == 0) continue;
    const size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", engine->kernels[i].name);
  }
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--kernel: there is no kernel '%s' on the %s backend; there are %s", item,
                      engine->backend, names);
}

/* Marks the kernels that the list names. */
static asparse_status mark_named(const bench_engine *engine, const char *list, bool *wanted) {
  asparse_status status = ASPARSE_OK;
  char *text = NULL;
  const size_t length = strlen(list) + 1;
  ALLOC(text, (int64_t)length);
  memcpy(text, list, length);
  for (char *rest = text, *item; (item = strsep(&rest, ","));) {
    bool found = false;
    for (int i = 0; i < engine->n_kernels; i++) {
      if (!is_named(&engine->kernels[i], item)) continue;
      wanted[i] = found = true;
    }
    if (!found) TRY(unknown(engine, item));
  }
cleanup:
  asparse_free(text);
  return status;
}

asparse_status bench_kernels_select(const bench_engine *engine, const bench_options *options,
                                    const bench_kernel **kernels, int *count) {
  bool wanted[BENCH_MOST_KERNELS] = {false};
  if (options->kernels) PASS(mark_named(engine, options->kernels, wanted));
  *count = 0;
  for (int i = 0; i < engine->n_kernels; i++) {
    const bench_kernel *kernel = &engine->kernels[i];
    const bool usual = kernel->peer ? !options->no_peers : kernel->automatic || options->all;
    /* Peers stay beside named kernels: a speed-up needs something to be over. */
    if (wanted[i] || (usual && (!options->kernels || kernel->peer))) kernels[(*count)++] = kernel;
  }
  return ASPARSE_OK;
}
