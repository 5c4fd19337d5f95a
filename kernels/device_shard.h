/* Shards on a GPU, and the table of kernels that multiply them. Local, no MPI.
 *
 * A kernel is a row of the table: the shard it takes, how that is laid out on the device, and its launcher. The plan
 * runs the row that the cost model picks; the benchmark runs them all. */
#ifndef ASPARSE_DEVICE_SHARD_H
#define ASPARSE_DEVICE_SHARD_H

#include "base/shard.h"
#include "kernels/cuda_bcsr.h"
#include "kernels/cuda_csr.h"
#include "kernels/cuda_sell.h"
#include "kernels/cuda_wcsr.h"
#include "kernels/device.h"
#include "kernels/wcsr_work.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct asparse_device_kernel asparse_device_kernel;

enum { ASPARSE_DEVICE_ARRAYS = 12 }; /* at most, of one shard */

/* A on the device in the layout of one kernel, with the workspace of that kernel. */
struct asparse_device_shard {
  const asparse_device_kernel *kernel;
  asparse_device *device; /* borrowed */
  int32_t m, k;
  asparse_dtype dtype;
  int64_t n; /* columns it was made for: multiply takes up to this many */
  union {
    asparse_cuda_csr csr;
    asparse_cuda_sell sell;
    asparse_cuda_wcsr wcsr;
    asparse_cuda_bcsr bcsr;
  } as;                                /* the kernel knows which */
  void *workspace;                     /* NULL when the kernel needs none */
  void *arrays[ASPARSE_DEVICE_ARRAYS]; /* everything above that is on the device, to be freed */
  int n_arrays;
  int64_t bytes; /* of them */
};

/* One multiplication, on the device. */
typedef struct asparse_device_product {
  int64_t n;             /* ≤ the shard's */
  const void *b;         /* [k × n] of the shard's dtype */
  int64_t ldb;           /* ≥ n */
  void *c;               /* [m × n] of c_dtype */
  int64_t ldc;           /* ≥ n */
  asparse_dtype c_dtype; /* the result dtype of the shard's; bf16 as well where the shard is bf16 */
  bool accumulate;       /* C += A·B; otherwise C is overwritten whatever it held */
} asparse_device_product;

struct asparse_device_kernel {
  const char *name;      /* "wcsr-gather": for --kernel and the benchmark's rows */
  asparse_format format; /* of the host shard it takes */
  int32_t units[5];      /* window heights or block sizes it takes, ended by 0; {1} for CSR */
  bool automatic;        /* the cost model may pick it; otherwise it runs by name only */
  bool bf16_only;        /* otherwise fp64, fp32 and bf16 */
  bool clustered;        /* takes WCSR of rows that were brought together; otherwise of rows as they are */
  /* Copies what the kernel needs of the host shard a (borrowed during the call) and allocates its workspace. ERR_USAGE
   * with a reason when the kernel cannot take this shard. */
  asparse_status (*upload)(const asparse_shard *a, asparse_device_shard *out);
  /* Enqueues the product; allocates nothing, waits for nothing, and can be captured into a CUDA graph. The kernel may
   * start, and read the shard's arrays, while the one before it in the stream ends. Equals CSR arithmetic for Inf and
   * NaN in B; bitwise the same from run to run unless the kernel's comment says otherwise. */
  cudaError_t (*multiply)(const asparse_device_shard *a, const asparse_device_product *product, cudaStream_t stream);
};

/* The table, ended by NULL. */
extern const asparse_device_kernel *const asparse_device_kernels[];

/* The kernel of that name; ERR_USAGE with the list of names otherwise. */
asparse_status asparse_device_kernel_find(const char *name, const asparse_device_kernel **kernel);
bool asparse_device_kernel_takes(const asparse_device_kernel *kernel, const asparse_shard *a);

/* Makes a ready for kernel and up to n columns. The caller destroys it; the host shard is needed no longer. Copies are
 * enqueued on the device's stream and done before anything enqueued there later. */
asparse_status asparse_device_shard_create(asparse_device *device, const asparse_device_kernel *kernel,
                                           const asparse_shard *a, int64_t n, asparse_device_shard **out);
void asparse_device_shard_destroy(asparse_device_shard **a);

/* Enqueues the product on stream. Products of one shard share its workspace and must not overlap in time. ERR_USAGE for
 * shapes or types that do not fit. */
asparse_status asparse_device_shard_multiply(const asparse_device_shard *a, const asparse_device_product *product,
                                             cudaStream_t stream);

/* For the rows of the table: device memory that belongs to out, and a copy of a host array in such memory. */
asparse_status asparse_device_shard_malloc(asparse_device_shard *out, size_t bytes, const char *what, void **d);
asparse_status asparse_device_shard_upload(asparse_device_shard *out, const void *h, size_t bytes, const char *what,
                                           void **d);

/* pointer = device copy of h[count]; returns from the function that uses it when that fails. */
#define PASS_UPLOAD(out, pointer, h, count)                                                                            \
  do {                                                                                                                 \
    void *d_ = NULL;                                                                                                   \
    PASS(asparse_device_shard_upload((out), (h), (size_t)(count) * sizeof *(h), #pointer, &d_));                       \
    (pointer) = d_;                                                                                                    \
  } while (0)

#ifdef __cplusplus
}
#endif
#endif
