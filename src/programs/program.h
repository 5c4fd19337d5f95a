/* What all programs share: start, end, terminal. */
#ifndef ASPARSE_PROGRAM_H
#define ASPARSE_PROGRAM_H

#include "base/clock.h"
#include "base/comm.h"

/* Starts MPI (every program runs with and without mpirun), ignores SIGPIPE and SIGXFSZ so that a full
 * disk or a closed pipe is an error of a call, and lets ranks yield where there are more than cores. */
void asparse_program_begin(int *argc, char ***argv);

/* Collective when comm is given. Prints "program: error: …" from one rank, destroys comm, ends MPI and
 * returns the exit code. An MPI failure ends the whole job at once, since peers may wait for ever. */
int asparse_program_end(asparse_comm **comm, asparse_status status, const char *program);

/* Instead of begin and end: prints "program: error: …" and a hint to --help from one rank, and returns
 * the exit code. */
int asparse_program_usage_error(const char *program);

/* True on the one process that speaks, before MPI is started. */
bool asparse_program_speaks(void);

/* stderr is a terminal: progress may be shown. */
bool asparse_program_terminal(void);

/* Names the phase that this rank enters, for messages; shows "phase…" on a terminal from rank 0, and wipes it when done
 * (phase NULL). */
void asparse_program_progress(asparse_comm *comm, const char *phase);

/* Local. Sets and returns OpenMP's threads for this rank: cores this node's ranks may use, shared evenly, unless
 * wanted > 0 or OMP_NUM_THREADS says otherwise. */
int asparse_program_threads(const asparse_comm *comm, int wanted);

/* Collective. Can `output` (NULL: nothing) be written, and is it another file than `input`
 * ("file" or "file::/object"; NULL: none)? Asked before the work, not after it. */
asparse_status asparse_program_output_check(asparse_comm *comm, const char *input, const char *output);

/* "program 0.1.0 (…)": version and how it was built, to stdout. */
void asparse_program_version(const char *program);

/* Ascending, for medians. Local. */
void asparse_program_sort(double *values, int count);

/* "program a b c": the command line as one string, for provenance. Caller frees with free(). */
char *asparse_program_command(int argc, char **argv);

#endif
