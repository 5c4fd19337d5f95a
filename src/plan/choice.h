/* Choosing format and kernel of a rank-local matrix by predicted time. */
#ifndef ASPARSE_CHOICE_H
#define ASPARSE_CHOICE_H

#include "asparse.h"
#include "base/comm.h"
#include "kernels/kernels.h"
#include "partition/cluster.h"

/* Collective. The format and kernel with the least predicted time summed over ranks, so that all ranks agree, among
 * those that options allow; space: where it will be multiplied. a: this rank's matrix, NULL if it has none. ERR_USAGE
 * when nothing fits the options. */
asparse_status asparse_choice_make(asparse_comm *comm, const asparse_local_csr *a, int64_t n, asparse_space space,
                                   const asparse_options *options, asparse_clustered *clustered,
                                   asparse_kernel_config *config);

#endif
