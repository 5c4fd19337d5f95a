/* The speed-ups of a benchmark as a picture (SVG 1.1). Local. */
#ifndef ASPARSE_BENCH_PLOT_H
#define ASPARSE_BENCH_PLOT_H

#include "base/comm.h"
#include "programs/bench_record.h"

/* Writes --plot, whole or not at all: the chosen kernel's speed-up over the baseline by density of A, a point for each
 * case, a colour for each number of columns, both axes logarithmic. comm has one rank. */
asparse_status bench_write_plot(asparse_comm *comm, const bench_record *record);

#endif
