/* Rates of links and cores that earlier runs measured, remembered for each machine and way of running on it: planning
 * from them gives every run the same plan. */
#ifndef ASPARSE_LINK_CACHE_H
#define ASPARSE_LINK_CACHE_H

#include "plan/links.h"

/* Collective. Rates remembered for this host, these ranks, their threads, engine and transport; else *known is false.
 * They are in the file "links" in the folder ASPARSE_CACHE, or asparse in XDG_CACHE_HOME, or .cache/asparse in HOME;
 * whatever cannot be read there is not known. */
asparse_status asparse_link_cache_find(asparse_comm *comm, const asparse_engine *engine, asparse_links *links,
                                       bool *known);

/* Collective. The same; where they are not known, measures and remembers them, if the folder can be written. rates: in:
 * of this rank's cores, zeros where a GPU multiplies; out: rank 0's, as they were remembered beside the links. */
asparse_status asparse_link_cache_get(asparse_comm *comm, asparse_engine *engine, asparse_links *links,
                                      asparse_host_rates *rates, bool *known);

#endif
