/* The rows of the table of peers, one file a library. */
#ifndef ASPARSE_PEER_ROWS_H
#define ASPARSE_PEER_ROWS_H

#include "kernels/peers.h"

extern const asparse_peer asparse_peer_cusparse_csr_1, asparse_peer_cusparse_csr_2, asparse_peer_cusparse_csr_3,
    asparse_peer_cusparse_bsr_16, asparse_peer_cusparse_bsr_32, asparse_peer_cusparse_bsr_64,
    asparse_peer_cusparse_ell_16, asparse_peer_cusparse_ell_32, asparse_peer_cusparse_ell_64;
asparse_status asparse_peer_cusparse_open(asparse_peer_handles *handles);
void asparse_peer_cusparse_close(asparse_peer_handles *handles);

extern const asparse_peer asparse_peer_cublas_dense;
asparse_status asparse_peer_cublas_open(asparse_peer_handles *handles);
void asparse_peer_cublas_close(asparse_peer_handles *handles);

#endif
