/* What --json writes. */
#ifndef ASPARSE_JSON_RECORD_H
#define ASPARSE_JSON_RECORD_H

#include <jansson.h>

#include "base/comm.h"

/* Collective. Writes rank 0's record (NULL: it could not be made; ignored on other ranks) to a file, whole or not at
 * all, or to standard output ("-"), and releases it. */
asparse_status json_record_write(asparse_comm *comm, const char *path, json_t *record);

#endif
