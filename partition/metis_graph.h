/* The graph METIS sees: the pattern of A + Aᵀ without the diagonal. Compiled only with METIS. */
#ifndef ASPARSE_METIS_GRAPH_H
#define ASPARSE_METIS_GRAPH_H

#include <metis.h>

#include "base/comm.h"
#include "base/csr.h"

typedef struct asparse_metis_graph {
  idx_t n;
  idx_t *xadj;   /* [n + 1] */
  idx_t *adjncy; /* [xadj[n]], sorted in each row */
  idx_t *weight; /* [n], ≥ 1, sum fits idx_t */
} asparse_metis_graph;

/* Collective. Gathers pattern and costs on rank 0, which alone fills the graph; a->m = a->k. ERR_USAGE when
 * the graph exceeds METIS's integers. */
asparse_status asparse_metis_graph_gather(asparse_comm *comm, const asparse_csr *a, const int64_t *cost,
                                          asparse_metis_graph *graph);
void asparse_metis_graph_free(asparse_metis_graph *graph);

#endif
