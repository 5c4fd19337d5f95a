/* The host backend's table; asparse_backend_get returns it once the instruction set is known to be usable. */
#ifndef ASPARSE_HOST_H
#define ASPARSE_HOST_H

#include "kernels/kernels.h"

extern const asparse_backend asparse_host_backend;

#endif
