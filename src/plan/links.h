/* How fast rows of B travel between ranks, measured. */
#ifndef ASPARSE_LINKS_H
#define ASPARSE_LINKS_H

#include "base/comm.h"
#include "kernels/kernels.h"
#include "plan/mode_choice.h"

/* Of the slowest rank, while all ranks do the same. With one rank nothing travels: 0 seconds, infinite rates. */
typedef struct asparse_links {
  double latency_seconds;       /* an exchange of 8 bytes with one other rank */
  double pair_bytes_per_second; /* into a rank that receives from one other, half the ranks away, and sends to one */
  double all_bytes_per_second;  /* into a rank that receives from all others and sends to all */
} asparse_links;

/* Collective. Measures with exchanges as multiplications make them: from and to the engine's memory, by the transport
 * decided for comm (see asparse_transport_open). Packing counts. Takes some 2 seconds at most on links of 100 MB/s and
 * faster, and 20 MiB of the engine's memory. */
asparse_status asparse_links_measure(asparse_comm *comm, asparse_engine *engine, asparse_links *links);

/* Local, pure. While all ranks use it; by cores where the engine is the host and no rank is elsewhere. */
asparse_link asparse_links_all(const asparse_comm *comm, const asparse_engine *engine, const asparse_links *links);

#endif
