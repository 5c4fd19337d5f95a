/* SIGUSR1 as a request to end early. It is noted when it comes and agreed on between steps, so that no rank leaves
 * while others wait for it: one rank that was asked is enough. */
#ifndef ASPARSE_INTERRUPT_H
#define ASPARSE_INTERRUPT_H

#include "base/comm.h"

/* Local. From now on SIGUSR1 is noted and does nothing else. Before MPI starts: launchers forward it from then on. */
void asparse_interrupt_listen(void);

/* Local. Was this process asked to end early? */
bool asparse_interrupt_came(void);

/* Local. status; or, where that is OK and this process was asked to end early, ASPARSE_INTERRUPTED with a message that
 * names the phase. To be agreed on. */
asparse_status asparse_interrupt_check(const asparse_comm *comm, asparse_status status);

/* Collective, between two phases: ASPARSE_INTERRUPTED on every rank where any was asked to end early. */
asparse_status asparse_interrupt_agree(asparse_comm *comm);

#endif
