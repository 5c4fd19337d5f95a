/* Filling the datasets of a file whose space is reserved. */
#include <string.h>

#include "asparse_config.h"
#include "io/hdf5_read.h"
#include "io/hdf5_write.h"

typedef struct target {
  hid_t id, transfer;
  asparse_element element;
} target;

/* What a rank has to write, in pieces. */
typedef struct stream {
  int64_t begin, count, piece; /* elements */
  asparse_give_elements give;
  void *context;
  void *stage; /* [piece] */
} stream;

static asparse_status open_target(const asparse_writer *writer, const char *name, target *t) {
  asparse_status status = ASPARSE_OK;
  TRY_HDF5(ASPARSE_ERR_IO, t->id = H5Dopen2(writer->file, name, H5P_DEFAULT));
  TRY_HDF5(ASPARSE_ERR_RUNTIME, t->transfer = H5Pcreate(H5P_DATASET_XFER));
#if ASPARSE_HDF5_PARALLEL
  if (writer->parallel) TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Pset_dxpl_mpio(t->transfer, H5FD_MPIO_COLLECTIVE));
#endif
cleanup:
  return status;
}

/* Elements begin … begin+count-1; count may be 0 (the transfer may be collective). */
static asparse_status write_piece(const target *t, int64_t begin, int64_t count, const void *elements) {
  asparse_status status = ASPARSE_OK;
  hid_t in_file = -1, in_memory = -1;
  hsize_t start = (hsize_t)begin, extent = (hsize_t)count;
  TRY_HDF5(ASPARSE_ERR_RUNTIME, in_memory = H5Screate_simple(1, &extent, NULL));
  TRY_HDF5(ASPARSE_ERR_IO, in_file = H5Dget_space(t->id));
  if (count > 0) {
    TRY_HDF5(ASPARSE_ERR_IO, H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &start, NULL, &extent, NULL));
  } else {
    TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Sselect_none(in_file));
    TRY_HDF5(ASPARSE_ERR_RUNTIME, H5Sselect_none(in_memory));
  }
  TRY_HDF5(ASPARSE_ERR_IO,
           H5Dwrite(t->id, asparse_element_hdf5(t->element), in_memory, in_file, t->transfer, elements));
cleanup:
  CLOSE_HDF5(H5Sclose, in_memory);
  CLOSE_HDF5(H5Sclose, in_file);
  return status;
}

/* All ranks: equally many collective writes, empty ones after a failure. */
static asparse_status fill_together(asparse_comm *comm, const target *t, const stream *s) {
  asparse_status status = ASPARSE_OK;
  int64_t n_pieces = s->count / s->piece + (s->count % s->piece != 0);
  PASS(asparse_comm_max(comm, &n_pieces, 1));
  for (int64_t i = 0; i < n_pieces; i++) {
    int64_t first = i * s->piece < s->count ? i * s->piece : s->count;
    int64_t count = status != ASPARSE_OK ? 0 : s->count - first < s->piece ? s->count - first : s->piece;
    if (count > 0) s->give(s->context, first, count, s->stage);
    asparse_status piece_status = write_piece(t, s->begin + first, count, s->stage);
    if (status == ASPARSE_OK) status = piece_status;
  }
  return status;
}

/* Rank 0 receives the pieces of every rank in turn; after a failed write it still receives, so that the
 * senders finish. */
static asparse_status fill_through_rank_0(asparse_comm *comm, const target *t, const stream *s) {
  asparse_status status = ASPARSE_OK, write_status = ASPARSE_OK;
  enum { TAG = 21 };
  int64_t size = (int64_t)asparse_element_size(t->element), range[2];
  for (int r = 0; r < comm->size; r++) {
    range[0] = s->begin;
    range[1] = s->count;
    TRY_MPI(MPI_Bcast(range, 2, MPI_INT64_T, r, comm->mpi));
    if (comm->rank != 0 && comm->rank != r) continue;
    for (int64_t first = 0; first < range[1]; first += s->piece) {
      int64_t count = range[1] - first < s->piece ? range[1] - first : s->piece;
      int bytes = (int)(count * size); /* a piece is below 2^31 bytes */
      if (comm->rank == r) s->give(s->context, first, count, s->stage);
      if (r != 0 && comm->rank == r) TRY_MPI(MPI_Send(s->stage, bytes, MPI_BYTE, 0, TAG, comm->mpi));
      if (r != 0 && comm->rank == 0) TRY_MPI(MPI_Recv(s->stage, bytes, MPI_BYTE, r, TAG, comm->mpi, MPI_STATUS_IGNORE));
      if (comm->rank == 0 && write_status == ASPARSE_OK)
        write_status = write_piece(t, range[0] + first, count, s->stage);
    }
  }
cleanup:
  return status != ASPARSE_OK ? status : write_status;
}

asparse_status asparse_writer_fill(asparse_writer *writer, const char *name, asparse_element element, int64_t begin,
                                   int64_t count, asparse_give_elements give, void *context) {
  asparse_status status = ASPARSE_OK;
  asparse_comm *comm = writer->comm;
  target t = {-1, -1, element};
  stream s = {begin, count, 0, give, context, NULL};
  int64_t longest = count; /* rank 0 may receive pieces that are longer than its own */
  s.piece = asparse_piece_bytes(comm) / (int64_t)asparse_element_size(element);
  if (s.piece < 1) s.piece = 1;
  PASS(asparse_comm_max(comm, &longest, 1));
  s.stage = asparse_malloc(longest < s.piece ? longest : s.piece, asparse_element_size(element), "writing buffer");
  TRY(asparse_comm_agree(comm, s.stage ? ASPARSE_OK : ASPARSE_ERR_MEMORY));
  if (writer->file >= 0) status = open_target(writer, name, &t);
  TRY(asparse_writer_agree(writer, status));
  status = writer->parallel ? fill_together(comm, &t, &s) : fill_through_rank_0(comm, &t, &s);
  status = asparse_writer_agree(writer, status);
cleanup:
  CLOSE_HDF5(H5Pclose, t.transfer);
  CLOSE_HDF5(H5Dclose, t.id);
  asparse_free(s.stage);
  return status;
}
