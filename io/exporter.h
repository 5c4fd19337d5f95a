/* One writer of a file format each, behind the table of export.c. Collective; arguments as asparse_csr_write's. */
#ifndef ASPARSE_EXPORTER_H
#define ASPARSE_EXPORTER_H

#include "io/io.h"

asparse_status asparse_anndata_write(asparse_comm *comm, const char *path, const asparse_csr *a, const char *value_type,
                                     const asparse_provenance *provenance);
asparse_status asparse_mtx_write(asparse_comm *comm, const char *path, const asparse_csr *a, const char *value_type,
                                 const asparse_provenance *provenance);
asparse_status asparse_mtx_gz_write(asparse_comm *comm, const char *path, const asparse_csr *a, const char *value_type,
                                    const asparse_provenance *provenance);

#endif
