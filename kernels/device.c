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
  PASS_CUDA(cudaDeviceGetPCIBusId(device->bus_id, sizeof device->bus_id, device->ordinal));
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

static asparse_status create_streams(asparse_device *device) {
  int least = 0, greatest = 0;
  PASS_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  PASS_CUDA(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking));
  PASS_CUDA(cudaStreamCreateWithPriority(&device->exchange_stream, cudaStreamNonBlocking, greatest));
  return ASPARSE_OK;
}

asparse_status asparse_device_open(int ordinal, asparse_device **out) {
  asparse_status status = ASPARSE_OK;
  asparse_device *device = NULL;
  ALLOC_ZERO(device, 1);
  TRY(find(ordinal, &device->ordinal));
  TRY(describe(device));
  TRY_CUDA(cudaSetDevice(device->ordinal));
  TRY(create_streams(device));
  for (int i = 0; i < 2; i++) {
    TRY_CUDA(cudaHostAlloc(&device->staging[i], STAGING_BYTES, cudaHostAllocDefault));
    TRY_CUDA(cudaEventCreateWithFlags(&device->staged[i], cudaEventDisableTiming));
  }
  for (int i = 0; i < ASPARSE_MARKS; i++) TRY_CUDA(cudaEventCreate(&device->marks[i]));
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
  for (int i = 0; i < ASPARSE_MARKS; i++) {
    if (d->marks[i]) cudaEventDestroy(d->marks[i]);
  }
  if (d->exchange_stream) cudaStreamDestroy(d->exchange_stream);
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

/* A copy cut into pieces that fit a half of the staging memory: whole rows, or parts of one row. */
typedef struct pieces {
  size_t width, rows;          /* of the copy; one long row where the rows are contiguous on both sides */
  size_t piece_width, per_row; /* bytes of a part of a row; parts of a row */
  size_t piece_rows, n;        /* rows of a piece; pieces */
} pieces;

static size_t over(size_t x, size_t y) { return (x + y - 1) / y; }

static size_t smaller(size_t x, size_t y) { return x < y ? x : y; }

static pieces cut(size_t d_pitch, size_t h_pitch, size_t width, size_t rows) {
  pieces p = {.width = width, .rows = rows};
  if (rows == 0 || width == 0) return p;
  if (d_pitch == width && h_pitch == width) p.width = width * rows, p.rows = 1;
  p.piece_width = smaller(p.width, STAGING_BYTES);
  p.per_row = over(p.width, p.piece_width);
  p.piece_rows = p.per_row > 1 ? 1 : smaller(p.rows, STAGING_BYTES / p.piece_width);
  p.n = over(p.rows, p.piece_rows) * p.per_row;
  return p;
}

/* Where piece i starts and how large it is. */
static void locate(const pieces *p, size_t i, size_t *row, size_t *byte, size_t *rows, size_t *width) {
  *row = i / p->per_row * p->piece_rows;
  *byte = i % p->per_row * p->piece_width;
  *rows = smaller(p->piece_rows, p->rows - *row);
  *width = smaller(p->piece_width, p->width - *byte);
}

static void copy_rows(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t rows) {
  for (size_t i = 0; i < rows; i++) memcpy(to + i * to_pitch, from + i * from_pitch, width);
}

asparse_status asparse_device_upload_rows(asparse_device *device, void *d, size_t d_pitch, const void *h,
                                          size_t h_pitch, size_t width, size_t rows) {
  const pieces p = cut(d_pitch, h_pitch, width, rows);
  for (size_t i = 0; i < p.n; i++) {
    size_t row, byte, n, w, half = i % 2;
    locate(&p, i, &row, &byte, &n, &w);
    PASS_CUDA(cudaEventSynchronize(device->staged[half]));
    copy_rows(device->staging[half], w, (const char *)h + row * h_pitch + byte, h_pitch, w, n);
    PASS_CUDA(cudaMemcpy2DAsync((char *)d + row * d_pitch + byte, n > 1 ? d_pitch : w, device->staging[half], w, w, n,
                                cudaMemcpyHostToDevice, device->stream));
    PASS_CUDA(cudaEventRecord(device->staged[half], device->stream));
  }
  return ASPARSE_OK;
}

/* Piece i is on its way while piece i - 1 is copied out of the other half. */
asparse_status asparse_device_download_rows(asparse_device *device, void *h, size_t h_pitch, const void *d,
                                            size_t d_pitch, size_t width, size_t rows) {
  const pieces p = cut(d_pitch, h_pitch, width, rows);
  size_t row, byte, n, w;
  for (size_t i = 0; p.n > 0 && i <= p.n; i++) {
    if (i < p.n) {
      locate(&p, i, &row, &byte, &n, &w);
      PASS_CUDA(cudaMemcpy2DAsync(device->staging[i % 2], w, (const char *)d + row * d_pitch + byte,
                                  n > 1 ? d_pitch : w, w, n, cudaMemcpyDeviceToHost, device->stream));
      PASS_CUDA(cudaEventRecord(device->staged[i % 2], device->stream));
    }
    if (i > 0) {
      locate(&p, i - 1, &row, &byte, &n, &w);
      PASS_CUDA(cudaEventSynchronize(device->staged[(i - 1) % 2]));
      copy_rows((char *)h + row * h_pitch + byte, h_pitch, device->staging[(i - 1) % 2], w, w, n);
    }
  }
  return ASPARSE_OK;
}

asparse_status asparse_device_upload(asparse_device *device, void *d, const void *h, size_t bytes) {
  return asparse_device_upload_rows(device, d, bytes, h, bytes, bytes, 1);
}

asparse_status asparse_device_download(asparse_device *device, void *h, const void *d, size_t bytes) {
  return asparse_device_download_rows(device, h, bytes, d, bytes, bytes, 1);
}

asparse_status asparse_device_wait(asparse_device *device) {
  PASS_CUDA(cudaStreamSynchronize(device->stream));
  return ASPARSE_OK;
}

asparse_status asparse_device_mark(asparse_device *device, int i) {
  enum cudaStreamCaptureStatus capture;
  PASS_CUDA(cudaStreamIsCapturing(device->stream, &capture));
  device->captured = capture != cudaStreamCaptureStatusNone;
  if (!device->captured) PASS_CUDA(cudaEventRecord(device->marks[i], device->stream));
  return ASPARSE_OK;
}

asparse_status asparse_device_between(asparse_device *device, int i, int j, double *seconds) {
  float milliseconds = 0;
  *seconds = 0;
  if (device->captured) return ASPARSE_OK;
  PASS_CUDA(cudaEventSynchronize(device->marks[j]));
  PASS_CUDA(cudaEventElapsedTime(&milliseconds, device->marks[i], device->marks[j]));
  *seconds = 1e-3 * milliseconds;
  return ASPARSE_OK;
}
