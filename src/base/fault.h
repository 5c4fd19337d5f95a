/* Faults that tests ask for, so that what a dying or hanging rank does to the others can be tried anywhere. Local. */
#ifndef ASPARSE_FAULT_H
#define ASPARSE_FAULT_H

/* A place where this rank may fail. With environment ASPARSE_FAULT="ACTION:RANK:PLACE[:MILLISECONDS]" and this rank and
 * place (its first letters are enough) named: "kill" raises SIGKILL that much later, whatever the rank does then,
 * "crash" SIGSEGV and "ask" SIGUSR1; "hang" never returns. Otherwise nothing happens. */
void asparse_fault_point(int rank, const char *place);

#endif
