/* Where the matrices of a benchmark come from, and which of the engine's kernels it times. Local. */
#ifndef ASPARSE_BENCH_SOURCES_H
#define ASPARSE_BENCH_SOURCES_H

#include "programs/bench_engine.h"

/* Files in the order given, a folder standing for its *.h5 files in the order of their names, then generated ones. */
typedef struct bench_sources {
  char **paths; /* [count] files, then descriptions; owned */
  int count;
  int n_files;
} bench_sources;

/* ERR_NO_INPUT when a folder has no *.h5 file, ERR_USAGE for a bad description. Files are not opened. */
asparse_status bench_sources_find(const bench_options *options, bench_sources *sources);
void bench_sources_free(bench_sources *sources);

/* "folder/name.h5::/group" → "name::/group" */
void bench_source_name(const char *path, char *name, size_t length);

/* The kernels asked for, in the engine's order: kernels[*count], room for all of them. ERR_USAGE lists the names there
 * are when one is unknown. */
asparse_status bench_kernels_select(const bench_engine *engine, const bench_options *options,
                                    const bench_kernel **kernels, int *count);

#endif
