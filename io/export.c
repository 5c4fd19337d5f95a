/* Finds the writer of a file by its name's ending, or by the name of a format. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "io/exporter.h"

static const struct {
  const char *name, *title;
  const char *endings[2];
  asparse_status (*write)(asparse_comm *comm, const char *path, const asparse_csr *a, const char *value_type,
                          const asparse_provenance *provenance);
} exporters[] = {{"h5", "Binsparse CSR in HDF5", {".h5", ".hdf5"}, asparse_csr_write},
                 {"h5ad", "AnnData", {".h5ad"}, asparse_anndata_write},
                 {"mtx", "Matrix Market", {".mtx"}, asparse_mtx_write},
                 {"mtx.gz", "Matrix Market in gzip", {".mtx.gz"}, asparse_mtx_gz_write}};
enum { N_EXPORTERS = sizeof exporters / sizeof *exporters };

static bool ends_with(const char *path, const char *ending) {
  size_t length = strlen(path), n = ending ? strlen(ending) : 0;
  return ending && length > n && strcasecmp(path + length - n, ending) == 0;
}

static void list_exporters(char *list, size_t size) {
  size_t used = 0;
  list[0] = '\0';
  for (int i = 0; i < N_EXPORTERS && used < size; i++)
    used +=
        (size_t)snprintf(list + used, size - used, "%s%s (%s)", i ? ", " : "", exporters[i].name, exporters[i].title);
}

asparse_status asparse_export_find(const char *path, const char *to, int *format) {
  char list[256];
  for (*format = 0; *format < N_EXPORTERS; ++*format) {
    const char *const *endings = exporters[*format].endings;
    if (to ? strcmp(to, exporters[*format].name) == 0 : ends_with(path, endings[0]) || ends_with(path, endings[1]))
      return ASPARSE_OK;
  }
  list_exporters(list, sizeof list);
  if (to) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "unknown format '%s'; expected one of: %s", to, list);
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "the name %s does not tell a format; say it with --to, one of: %s", path,
                      list);
}

asparse_status asparse_export(asparse_comm *comm, const char *path, int format, const asparse_csr *a,
                              const char *value_type, const asparse_provenance *provenance) {
  return exporters[format].write(comm, path, a, value_type, provenance);
}

const char *asparse_export_title(int format) { return exporters[format].title; }
