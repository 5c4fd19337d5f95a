/* Vendor libraries as peers of the kernels: cuSPARSE and cuBLAS on the same operands. Only the benchmark links them.
 *
 * Local, no MPI. A peer is a row of a table, like a device kernel: it takes a host shard, keeps A on the device in the
 * library's own layout, is prepared for a product (descriptors, workspace, the library's preprocess step), and runs. */
#ifndef ASPARSE_PEERS_H
#define ASPARSE_PEERS_H

#include "base/shard.h"
#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Block formats are whole blocks: operands of a peer are padded to a multiple of this many rows. */
enum { ASPARSE_PEER_ROWS = 64 };

typedef struct asparse_peer asparse_peer;

/* The libraries' handles. */
typedef struct asparse_peer_handles {
  asparse_device *device; /* borrowed; everything runs on its stream */
  void *cusparse, *cublas;
  void *cublas_workspace;
} asparse_peer_handles;

/* One product, on the device. k and m of the operands are A's rounded up to ASPARSE_PEER_ROWS. */
typedef struct asparse_peer_product {
  int64_t n;
  const void *b; /* [k × n] of A's dtype, ld n, zero beyond A's columns */
  void *c;       /* [m × n] of c_dtype, ld n; rows beyond A's are overwritten as well */
  asparse_dtype c_dtype;
} asparse_peer_product;

/* A on the device, and the product it is prepared for. */
typedef struct asparse_peer_matrix {
  const asparse_peer *peer;
  asparse_peer_handles *handles; /* borrowed */
  int64_t m, k;                  /* as the library sees it */
  asparse_dtype dtype;
  asparse_peer_product product;
  void *arrays[3]; /* on the device */
  int n_arrays;
  int64_t bytes;         /* of them */
  void *workspace;       /* on the device */
  void *a_desc;          /* cuSPARSE's descriptors; NULL for cuBLAS */
  void *b_desc, *c_desc; /* of the product */
} asparse_peer_matrix;

struct asparse_peer {
  const char *name;      /* "cusparse-csr-1" */
  bool is_cusparse;      /* cuBLAS otherwise */
  asparse_format format; /* of the host shard it takes */
  int32_t unit;          /* block size; 1 for CSR */
  int algorithm;         /* the library's number */
  /* Bytes of A in this layout; pure. */
  int64_t (*stored_bytes)(const asparse_shard *a);
  asparse_status (*upload)(const asparse_shard *a, asparse_peer_matrix *out);
  asparse_status (*prepare)(asparse_peer_matrix *a);
  asparse_status (*multiply)(const asparse_peer_matrix *a);
  void (*release)(asparse_peer_matrix *a); /* what the library holds for the matrix */
};

/* The table, ended by NULL; empty when built without the libraries. */
extern const asparse_peer *const asparse_peers[];

asparse_status asparse_peer_handles_create(asparse_device *device, asparse_peer_handles **handles);
void asparse_peer_handles_destroy(asparse_peer_handles **handles);

/* "cuSPARSE 12.6.3, cuBLAS 13.1.0", or "none". */
void asparse_peer_versions(char *text, size_t length);

/* A for peer from a host shard of its format and unit, which is needed no longer. ERR_MEMORY when it stores more than
 * max_bytes or the device is full, ERR_USAGE when the library does not take it. */
asparse_status asparse_peer_create(asparse_peer_handles *handles, const asparse_peer *peer, const asparse_shard *a,
                                   int64_t max_bytes, asparse_peer_matrix **out);
void asparse_peer_destroy(asparse_peer_matrix **a);

/* Makes a ready for product, which is copied; b and c are borrowed until the next prepare. Includes the library's
 * preprocess step; waits until it is done. ERR_USAGE when the library does not support such a product. */
asparse_status asparse_peer_prepare(asparse_peer_matrix *a, const asparse_peer_product *product);

/* Enqueues C = A·B on the device's stream. */
asparse_status asparse_peer_multiply(const asparse_peer_matrix *a);

/* For the rows of the table: device memory that belongs to out, and a copy of a host array in such memory. */
asparse_status asparse_peer_malloc(asparse_peer_matrix *out, size_t bytes, const char *what, void **d);
asparse_status asparse_peer_upload(asparse_peer_matrix *out, const void *h, size_t bytes, const char *what, void **d);

/* Layouts made on the device (peer_layouts.cu); size: bytes of an element. */

/* dense [m × ld], zeroed before: element (i, col_idx[e]) = values[e] of CSR with 32-bit pointers. */
cudaError_t asparse_cuda_csr_to_dense(size_t size, int32_t m, const int32_t *row_ptr, const int32_t *col_idx,
                                      const void *values, int64_t ld, void *dense, cudaStream_t stream);
/* BSR blocks [block_row_ptr[n_block_rows] · r · r] to Blocked-ELL, width blocks a block row:
 * ell_values [n_block_rows·r × width·r] row-major, zeroed before. */
cudaError_t asparse_cuda_bsr_to_ell(size_t size, int32_t r, int32_t n_block_rows, int64_t width,
                                    const int64_t *block_row_ptr, const void *blocks, void *ell_values,
                                    cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
