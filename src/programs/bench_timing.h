/* Timing the kernels of one case in turn. Local. */
#ifndef ASPARSE_BENCH_TIMING_H
#define ASPARSE_BENCH_TIMING_H

#include "programs/bench_engine.h"

/* Checks and times the rows of c whose outcome is BENCH_TIMED so far: prepared[c->n_rows], ready for a product with
 * operands of n columns. Fills the rows; what a kernel refuses or gets wrong is an outcome, not an error. */
asparse_status bench_time(bench_engine *engine, const bench_options *options, void *const *prepared, bench_case *c);

/* Turns a failure that concerns one kernel into the outcome of its row, and passes on any other. */
asparse_status bench_row_settle(bench_row *row, asparse_status status);

#endif
