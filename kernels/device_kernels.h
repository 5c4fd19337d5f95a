/* The rows of the table of device kernels, one file a family. */
#ifndef ASPARSE_DEVICE_KERNELS_H
#define ASPARSE_DEVICE_KERNELS_H

#include "kernels/device_shard.h"

extern const asparse_device_kernel asparse_device_csr, asparse_device_csr_resident;
extern const asparse_device_kernel asparse_device_wcsr_clustered;
extern const asparse_device_kernel asparse_device_wcsr_gather, asparse_device_wcsr_atomics;
extern const asparse_device_kernel asparse_device_bcsr_chosen, asparse_device_bcsr_scalar, asparse_device_bcsr_wgmma,
    asparse_device_bcsr_tma, asparse_device_bcsr_pipeline, asparse_device_bcsr_multicast,
    asparse_device_bcsr_persistent, asparse_device_bcsr_grouped;

#endif
