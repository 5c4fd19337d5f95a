#include "kernels/device.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* Half of the staging memory. */
static const size_t STAGING_BYTES = 8 << 20;

/* Compute capability the kernels are compiled for: wgmma and setmaxnreg exist on sm_90a only. */
enum { MAJOR = 9, MINOR = 0 };

asparse_status asparse_cuda_fail(cudaError_t error, const char *call, const char *source, int line) {
  asparse_status code = error == cudaErrorMemoryAllocation ? ASPARSE_ERR_MEMORY : ASPARSE_ERR_DEVICE;
  return asparse_fail(code, source, line, "CUDA: %s (%s) in %.100s", cudaGetErrorString(error), cudaGetErrorName(error),
                      call);
}

static asparse_status find(int ordinal, int *found) {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
    return ASPARSE_FAIL(ASPARSE_ERR_DEVICE,
                        "no GPU is visible (CUDA_VISIBLE_DEVICES, Slurm --gpus?); use --backend host");
  if (error == cudaErrorInsufficientDriver)
    return ASPARSE_FAIL(ASPARSE_ERR_DEVICE,
                        "no NVIDIA driver, or one too old for CUDA %d.%d, is installed; use --backend host",
                        CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  PASS_CUDA(error);
  *found = ordinal % count;
  return ASPARSE_OK;
}

static asparse_status describe(asparse_device *device) {
  struct cudaDeviceProp properties;
  PASS_CUDA(cudaGetDeviceProperties(&properties, device->ordinal));
  snprintf(device->name, sizeof device->name, "%s", properties.name);
  device->major = properties.major;
  device->minor = properties.minor;
  device->multiprocessors = properties.multiProcessorCount;
  device->memory = properties.totalGlobalMem;
  if (device->major != MAJOR || device->minor != MINOR)
    return ASPARSE_FAIL(ASPARSE_ERR_DEVICE,
                        "GPU %d (%s) is sm_%d%d; the kernels need sm_%d%d (Hopper: H100, H200, GH200); use --backend "
                        "host",
                        device->ordinal, device->name, device->major, device->minor, MAJOR, MINOR);
  return ASPARSE_OK;
}

asparse_status asparse_device_open(int ordinal, asparse_device **out) {
  asparse_status status = ASPARSE_OK;
  asparse_device *device = NULL;
  ALLOC_ZERO(device, 1);
  TRY(find(ordinal, &device->ordinal));
  TRY(describe(device));
  TRY_CUDA(cudaSetDevice(device->ordinal));
  TRY_CUDA(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking));
  for (int i = 0; i < 2; i++) {
    TRY_CUDA(cudaHostAlloc(&device->staging[i], STAGING_BYTES, cudaHostAllocDefault));
    TRY_CUDA(cudaEventCreateWithFlags(&device->staged[i], cudaEventDisableTiming));
  }
  *out = device;
  device = NULL;
cleanup:
  asparse_device_close(&device);
  return status;
}

void asparse_device_close(asparse_device **device) {
  if (!device || !*device) return;
  asparse_device *d = *device;
  for (int i = 0; i < 2; i++) {
    if (d->staged[i]) cudaEventDestroy(d->staged[i]);
    if (d->staging[i]) cudaFreeHost(d->staging[i]);
  }
  if (d->stream) cudaStreamDestroy(d->stream);
  FREE(*device);
}

asparse_status asparse_device_use(const asparse_device *device) {
  PASS_CUDA(cudaSetDevice(device->ordinal));
  return ASPARSE_OK;
}

asparse_status asparse_device_malloc(asparse_device *device, size_t bytes, const char *what, void **d) {
  *d = NULL;
  if (bytes == 0) return ASPARSE_OK;
  cudaError_t error = cudaMalloc(d, bytes);
  if (error == cudaErrorMemoryAllocation) {
    size_t free = 0, total = 0;
    cudaGetLastError(); /* out of memory is not sticky */
    cudaMemGetInfo(&free, &total);
    return ASPARSE_FAIL(ASPARSE_ERR_MEMORY,
                        "GPU %d (%s): %s needs %.3f GB, %.3f of %.3f GB are free; use more GPUs, fewer columns, or "
                        "--backend host",
                        device->ordinal, device->name, what, (double)bytes * 1e-9, (double)free * 1e-9,
                        (double)total * 1e-9);
  }
  PASS_CUDA(error);
  return ASPARSE_OK;
}

void asparse_device_free(void *d) {
  if (d) cudaFree(d);
}

asparse_status asparse_device_upload(asparse_device *device, void *d, const void *h, size_t bytes) {
  int half = 0;
  for (size_t at = 0; at < bytes; at += STAGING_BYTES, half ^= 1) {
    size_t piece = bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;
    PASS_CUDA(cudaEventSynchronize(device->staged[half]));
    memcpy(device->staging[half], (const char *)h + at, piece);
    PASS_CUDA(cudaMemcpyAsync((char *)d + at, device->staging[half], piece, cudaMemcpyHostToDevice, device->stream));
    PASS_CUDA(cudaEventRecord(device->staged[half], device->stream));
  }
  return ASPARSE_OK;
}

/* Piece i is on its way while piece i - 1 is copied out of the other half. */
asparse_status asparse_device_download(asparse_device *device, void *h, const void *d, size_t bytes) {
  size_t pieces = (bytes + STAGING_BYTES - 1) / STAGING_BYTES;
  for (size_t i = 0; i <= pieces; i++) {
    if (i < pieces) {
      size_t at = i * STAGING_BYTES, piece = bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;
      PASS_CUDA(
          cudaMemcpyAsync(device->staging[i % 2], (const char *)d + at, piece, cudaMemcpyDeviceToHost, device->stream));
      PASS_CUDA(cudaEventRecord(device->staged[i % 2], device->stream));
    }
    if (i > 0) {
      size_t at = (i - 1) * STAGING_BYTES, piece = bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;
      PASS_CUDA(cudaEventSynchronize(device->staged[(i - 1) % 2]));
      memcpy((char *)h + at, device->staging[(i - 1) % 2], piece);
    }
  }
  return ASPARSE_OK;
}

asparse_status asparse_device_wait(asparse_device *device) {
  PASS_CUDA(cudaStreamSynchronize(device->stream));
  return ASPARSE_OK;
}
