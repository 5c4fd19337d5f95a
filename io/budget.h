/* Memory that is left, asked before a file's declared sizes are believed. Local. */
#ifndef ASPARSE_BUDGET_H
#define ASPARSE_BUDGET_H

#include "base/comm.h"

/* Bytes this machine can still give to all its processes: the least of available memory, the
 * container's limit and this process's own address-space limit. */
int64_t asparse_budget_available(void);

/* From now on so many bytes are available, whatever the machine has; -1: again what it has. For tests. */
void asparse_budget_set(int64_t bytes);

/* count · bytes_each on every rank of this host fits into what is available, or ERR_MEMORY naming
 * what (a file or dataset). count ≥ 0. */
asparse_status asparse_budget_check(const asparse_comm *comm, int64_t count, int64_t bytes_each, const char *what);

/* Local. `bytes` bytes for `what` of the file `name` fit into what is available, or ERR_MEMORY. */
asparse_status asparse_budget_allows(const char *name, int64_t bytes, const char *what);

#endif
