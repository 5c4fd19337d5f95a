/* What all cases of a benchmark say together. Local. */
#ifndef ASPARSE_BENCH_SUMMARY_H
#define ASPARSE_BENCH_SUMMARY_H

#include "programs/bench_record.h"

enum { BENCH_BANDS = 5 };
extern const char *const bench_band_names[BENCH_BANDS]; /* "all", then by density of A */

/* Cases of one number of columns and one band of density in which the chosen kernel was timed. Speed-ups are geometric
 * means of the other's time over ours; NAN where there is nothing to compare. */
typedef struct bench_group {
  int64_t n;
  int band;
  int count;
  double chosen_speedup, best_speedup; /* of the chosen and of our fastest kernel over the baseline */
  double below_share;                  /* of cases in which the chosen kernel is slower than the baseline */
  double ell_speedup, cublas_speedup;  /* of the chosen kernel over Blocked-ELL and dense cuBLAS, where they ran */
  double tflops;                       /* of the chosen kernel, geometric mean */
  double fraction_of_least;            /* of the chosen kernel, median */
  double choice_loss;                  /* chosen time over our fastest time, geometric mean */
} bench_group;

/* The group of n and band; ERR_MEMORY. */
asparse_status bench_group_of(const bench_record *record, int64_t n, int band, bench_group *group);

#endif
