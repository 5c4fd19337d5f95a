#include "kernels/peers.h"

#include <stdio.h>

#include "base/memory.h"
#include "kernels/peer_rows.h"

#if ASPARSE_HAVE_CUSPARSE
#include <cusparse.h>
#endif
#if ASPARSE_HAVE_CUBLAS
#include <cublas_v2.h>
#endif

const asparse_peer *const asparse_peers[] = {
#if ASPARSE_HAVE_CUSPARSE
    &asparse_peer_cusparse_csr_1,
    &asparse_peer_cusparse_csr_2,
    &asparse_peer_cusparse_csr_3,
    &asparse_peer_cusparse_bsr_16,
    &asparse_peer_cusparse_bsr_32,
    &asparse_peer_cusparse_bsr_64,
    &asparse_peer_cusparse_ell_16,
    &asparse_peer_cusparse_ell_32,
    &asparse_peer_cusparse_ell_64,
#endif
#if ASPARSE_HAVE_CUBLAS
    &asparse_peer_cublas_dense,
#endif
    NULL};

asparse_status asparse_peer_handles_create(asparse_device *device, asparse_peer_handles **out) {
  asparse_status status = ASPARSE_OK;
  asparse_peer_handles *handles = NULL;
  ALLOC_ZERO(handles, 1);
  handles->device = device;
  TRY(asparse_device_use(device));
#if ASPARSE_HAVE_CUSPARSE
  TRY(asparse_peer_cusparse_open(handles));
#endif
#if ASPARSE_HAVE_CUBLAS
  TRY(asparse_peer_cublas_open(handles));
#endif
  *out = handles;
  handles = NULL;
cleanup:
  asparse_peer_handles_destroy(&handles);
  return status;
}

void asparse_peer_handles_destroy(asparse_peer_handles **handles) {
  if (!handles || !*handles) return;
#if ASPARSE_HAVE_CUSPARSE
  asparse_peer_cusparse_close(*handles);
#endif
#if ASPARSE_HAVE_CUBLAS
  asparse_peer_cublas_close(*handles);
#endif
  FREE(*handles);
}

void asparse_peer_versions(char *text, size_t length) {
  snprintf(text, length, "none");
#if ASPARSE_HAVE_CUSPARSE
  snprintf(text, length, "cuSPARSE %d.%d.%d", CUSPARSE_VER_MAJOR, CUSPARSE_VER_MINOR, CUSPARSE_VER_PATCH);
#endif
#if ASPARSE_HAVE_CUBLAS
  char sparse[64];
  snprintf(sparse, sizeof sparse, "%s", text);
  snprintf(text, length, "%s, cuBLAS %d.%d.%d", sparse, CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH);
#endif
}

asparse_status asparse_peer_malloc(asparse_peer_matrix *out, size_t bytes, const char *what, void **d) {
  PASS(asparse_device_malloc(out->handles->device, bytes, what, d));
  out->arrays[out->n_arrays++] = *d;
  out->bytes += (int64_t)bytes;
  return ASPARSE_OK;
}

asparse_status asparse_peer_upload(asparse_peer_matrix *out, const void *h, size_t bytes, const char *what, void **d) {
  PASS(asparse_peer_malloc(out, bytes, what, d));
  return asparse_device_upload(out->handles->device, *d, h, bytes);
}

asparse_status asparse_peer_create(asparse_peer_handles *handles, const asparse_peer *peer, const asparse_shard *a,
                                   int64_t max_bytes, asparse_peer_matrix **out) {
  asparse_status status = ASPARSE_OK;
  asparse_peer_matrix *matrix = NULL;
  const int64_t bytes = peer->stored_bytes(a);
  TRY_THAT(bytes <= max_bytes, ASPARSE_ERR_MEMORY, "%.3g GB of stored elements, more than --max-bytes",
           (double)bytes * 1e-9);
  ALLOC_ZERO(matrix, 1);
  matrix->peer = peer;
  matrix->handles = handles;
  matrix->dtype = asparse_shard_dtype(a);
  TRY(peer->upload(a, matrix));
  TRY(asparse_device_wait(handles->device));
  *out = matrix;
  matrix = NULL;
cleanup:
  asparse_peer_destroy(&matrix);
  return status;
}

void asparse_peer_destroy(asparse_peer_matrix **a) {
  if (!a || !*a) return;
  (*a)->peer->release(*a);
  for (int i = 0; i < (*a)->n_arrays; i++) asparse_device_free((*a)->arrays[i]);
  asparse_device_free((*a)->workspace);
  FREE(*a);
}

asparse_status asparse_peer_prepare(asparse_peer_matrix *a, const asparse_peer_product *product) {
  a->product = *product;
  PASS(a->peer->prepare(a));
  return asparse_device_wait(a->handles->device);
}

asparse_status asparse_peer_multiply(const asparse_peer_matrix *a) { return a->peer->multiply(a); }
