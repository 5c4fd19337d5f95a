/* The report of asparse_solve as JSON, and the same flattened as one CSV row. Local, rank 0. */
#ifndef ASPARSE_REPORT_JSON_H
#define ASPARSE_REPORT_JSON_H

#include "programs/summary.h"

/* Writes --json (a file, whole or not at all, or "-") and appends to --csv, as asked. */
asparse_status report_write(const solve_record *record, const summary *s);

#endif
