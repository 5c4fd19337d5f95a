/* Choosing format and kernel of a rank-local matrix by predicted time. */
#ifndef ASPARSE_CHOICE_H
#define ASPARSE_CHOICE_H

#include "asparse.h"
#include "base/comm.h"
#include "kernels/kernels.h"
#include "partition/cluster.h"

/* What is to be multiplied. */
typedef struct asparse_choice_problem {
  const asparse_local_csr *a; /* this rank's matrix, NULL if it has none */
  int64_t n;                  /* columns of B */
  bool accumulate;            /* C += A·B */
  asparse_space space;        /* where */
} asparse_choice_problem;

/* Collective. The format and kernel with the least predicted time summed over ranks, so that all ranks agree, among
 * those that options allow. clustered: on a GPU, rows brought together, kept where the kernel wants them; NULL: not
 * tried. ERR_USAGE when nothing fits the options. */
asparse_status asparse_choice_make(asparse_comm *comm, const asparse_choice_problem *problem,
                                   const asparse_options *options, asparse_clustered *clustered,
                                   asparse_kernel_config *config);

#endif
