/* A benchmark as text and JSON. Local. */
#ifndef ASPARSE_BENCH_REPORT_H
#define ASPARSE_BENCH_REPORT_H

#include "base/comm.h"
#include "programs/bench_record.h"

/* To standard output: where, before all; a table for each case; the summary after all. */
void bench_print_head(const bench_record *record);
void bench_print_case(const bench_case *c);
asparse_status bench_print_summary(const bench_record *record);

/* Writes --json: a file, whole or not at all, or "-". comm has one rank. */
asparse_status bench_write_json(asparse_comm *comm, const bench_record *record);

#endif
