/* The machine as the operating system shows it to this rank, for records. Local. */
#ifndef ASPARSE_MACHINE_H
#define ASPARSE_MACHINE_H

#include <stddef.h>

/* Cores that this rank may run on. */
int machine_cores(void);

/* Those cores as "0-3,8"; what does not fit ends in "…". size ≥ 32. */
void machine_cores_text(char *text, size_t size);

/* The processor's name, "unknown" where the system does not tell. */
void machine_cpu(char *text, size_t size);

#endif
