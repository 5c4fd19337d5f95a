/* The tables of the two backends, for kernels/backend.c. */
#ifndef ASPARSE_BACKENDS_H
#define ASPARSE_BACKENDS_H

#include "kernels/kernels.h"

extern const asparse_backend asparse_host_backend;
extern const asparse_backend asparse_cuda_backend; /* in builds with CUDA */

#endif
