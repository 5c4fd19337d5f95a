#include "kernels/device_kernels.h"

const asparse_device_kernel *const asparse_device_kernels[] = {&asparse_device_csr,
                                                               &asparse_device_csr_resident,
                                                               &asparse_device_wcsr_gather,
                                                               &asparse_device_wcsr_clustered,
                                                               &asparse_device_wcsr_atomics,
                                                               &asparse_device_bcsr_chosen,
                                                               &asparse_device_bcsr_scalar,
                                                               &asparse_device_bcsr_wgmma,
                                                               &asparse_device_bcsr_tma,
                                                               &asparse_device_bcsr_pipeline,
                                                               &asparse_device_bcsr_multicast,
                                                               &asparse_device_bcsr_persistent,
                                                               &asparse_device_bcsr_grouped,
                                                               NULL};
