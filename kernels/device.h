/* A GPU as the kernels see it: device, stream, memory, and the copies between host and device. Local, no MPI. */
#ifndef ASPARSE_DEVICE_H
#define ASPARSE_DEVICE_H

#include <cuda_runtime_api.h>

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct asparse_device {
  int ordinal; /* among the visible GPUs */
  char name[256];
  char bus_id[32];  /* PCI: tells it from others of this machine */
  int major, minor; /* compute capability */
  int multiprocessors;
  size_t memory; /* bytes, all of it */
  cudaStream_t stream;
  cudaStream_t exchange_stream; /* of higher priority: its short kernels go before waiting parts of long ones */
  /* Pinned memory through which host arrays travel: one half is filled while the other is on its way. */
  void *staging[2];
  cudaEvent_t staged[2];
  cudaEvent_t marks[ASPARSE_MARKS];
  bool captured; /* the last marks were set while the stream was captured into a graph: they have no time */
};

/* Opens GPU ordinal modulo the number of visible ones. ERR_DEVICE when there is none, when the driver does not answer,
 * or when it is not of compute capability 9.0, which the kernels are compiled for. */
asparse_status asparse_device_open(int ordinal, asparse_device **device);
void asparse_device_close(asparse_device **device);

/* Makes the device current for the calling thread. */
asparse_status asparse_device_use(const asparse_device *device);

/* bytes of device memory; ERR_MEMORY says how many were needed and how many are free. bytes = 0 gives NULL. */
asparse_status asparse_device_malloc(asparse_device *device, size_t bytes, const char *what, void **d);
void asparse_device_free(void *d); /* NULL is fine */

/* Copies through the staging buffers, enqueued on the device's stream: rows of width bytes, their starts d_pitch and
 * h_pitch bytes apart. The source of an upload may change when it returns; a download is complete then. */
asparse_status asparse_device_upload_rows(asparse_device *device, void *d, size_t d_pitch, const void *h,
                                          size_t h_pitch, size_t width, size_t rows);
asparse_status asparse_device_download_rows(asparse_device *device, void *h, size_t h_pitch, const void *d,
                                            size_t d_pitch, size_t width, size_t rows);

/* The same for one row of bytes. */
asparse_status asparse_device_upload(asparse_device *device, void *d, const void *h, size_t bytes);
asparse_status asparse_device_download(asparse_device *device, void *h, const void *d, size_t bytes);

/* Waits for everything on the device's stream; the error of any kernel before it surfaces here. */
asparse_status asparse_device_wait(asparse_device *device);

/* Mark i of the stream, and the seconds between two marks, which waits for both; 0 when they went into a graph. */
asparse_status asparse_device_mark(asparse_device *device, int i);
asparse_status asparse_device_between(asparse_device *device, int i, int j, double *seconds);

/* ERR_DEVICE with CUDA's own text, or ERR_MEMORY when that is what it says. */
asparse_status asparse_cuda_fail(cudaError_t error, const char *call, const char *source, int line);

#define TRY_CUDA(call)                                                                                                 \
  do {                                                                                                                 \
    cudaError_t error_ = (call);                                                                                       \
    if (error_ != cudaSuccess) {                                                                                       \
      status = asparse_cuda_fail(error_, #call, __FILE__, __LINE__);                                                   \
      goto cleanup;                                                                                                    \
    }                                                                                                                  \
  } while (0)
#define PASS_CUDA(call)                                                                                                \
  do {                                                                                                                 \
    cudaError_t error_ = (call);                                                                                       \
    if (error_ != cudaSuccess) return asparse_cuda_fail(error_, #call, __FILE__, __LINE__);                            \
  } while (0)

#ifdef __cplusplus
}
#endif
#endif
