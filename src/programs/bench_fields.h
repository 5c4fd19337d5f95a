/* The numbers of a benchmark by name: one list of fields, written as CSV or as JSON objects. Local. */
#ifndef ASPARSE_BENCH_FIELDS_H
#define ASPARSE_BENCH_FIELDS_H

#include <jansson.h>
#include <stdio.h>

#include "programs/bench_record.h"

/* One kernel of one case as a flat JSON object; what does not apply is null. */
json_t *bench_row_json(const bench_case *c, const bench_row *row);

/* The fields' names and values as lines of CSV; null is an empty field. ERR_IO. */
asparse_status bench_csv_header(FILE *file);
asparse_status bench_csv_case(FILE *file, const bench_case *c);

#endif
