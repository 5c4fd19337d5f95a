/* A sparse matrix as Matrix Market coordinates. Every rank formats its rows on all its threads, in pieces that are
 * whole gzip members where asked; rank 0 writes them in order of the rows. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/budget.h"
#include "io/checksum.h"
#include "io/csr_arrays.h"
#include "io/exporter.h"
#include "io/gzip_member.h"
#include "io/number.h"
#include "io/output.h"

enum { PIECE_ENTRIES = 1 << 15, LINE_LENGTH = 2 * (ASPARSE_NUMBER_LENGTH + 1) + ASPARSE_NUMBER_LENGTH };

typedef enum field { FIELD_REAL = 0, FIELD_INTEGER, FIELD_PATTERN } field;
static const char *const field_names[] = {"real", "integer", "pattern"};

typedef struct piece {
  char *bytes;
  int64_t length;
} piece;

/* This rank's part of the file. */
typedef struct part {
  const asparse_csr *a;
  field field;
  bool gzip;
  int64_t n_pieces;
  piece *pieces; /* [n_pieces] */
} part;

/* ---- the field -------------------------------------------------------------------------------- */

static bool all_whole(const asparse_csr *a) {
  int64_t n_broken = 0, nnz = asparse_csr_nnz_local(a);
#pragma omp parallel for schedule(static) reduction(+ : n_broken)
  for (int64_t e = 0; e < nnz; e++) {
    const double value = asparse_load(a->dtype, a->values, e);
    n_broken += !(fabs(value) < 0x1p63) || value != (double)(int64_t)value;
  }
  return n_broken == 0;
}

/* Types that hold whole numbers: "int8", "uint32", "iso[int8]", "integer", "logical", "bool" … */
static bool is_whole_type(const char *type) {
  static const char *const beginnings[] = {"int", "uint", "logical", "bool"};
  if (strncmp(type, "iso[", 4) == 0) type += 4;
  for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
    if (strncmp(type, beginnings[i], strlen(beginnings[i])) == 0) return true;
  }
  return false;
}

/* Collective. */
static asparse_status choose_field(asparse_comm *comm, const asparse_csr *a, const char *value_type, field *field) {
  int64_t broken = 0;
  *field = value_type && strcmp(value_type, "pattern") == 0 ? FIELD_PATTERN : FIELD_REAL;
  if (!value_type || !is_whole_type(value_type)) return ASPARSE_OK;
  broken = !all_whole(a);
  PASS(asparse_comm_max(comm, &broken, 1));
  if (!broken) *field = FIELD_INTEGER;
  return ASPARSE_OK;
}

/* ---- formatting ------------------------------------------------------------------------------- */

/* The row of entry e, by bisection: row_ptr[row] ≤ e < row_ptr[row + 1]. */
static int64_t row_of(const asparse_csr *a, int64_t e) {
  int64_t low = 0, high = a->n_rows;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (a->row_ptr[middle] <= e) low = middle;
    else high = middle;
  }
  return low;
}

/* Entries first … end-1, a line each: row, column, value, counted from 1. Returns the length. */
static int64_t format_entries(const asparse_csr *a, field field, int64_t first, int64_t end, char *to) {
  char *p = to;
  int64_t row = row_of(a, first);
  for (int64_t e = first; e < end; e++) {
    while (e >= a->row_ptr[row + 1]) row++;
    p = asparse_number_put_integer(p, a->row_begin + row + 1);
    *p++ = ' ';
    p = asparse_number_put_integer(p, a->col_idx[e] + 1);
    if (field != FIELD_PATTERN) {
      const double value = asparse_load(a->dtype, a->values, e);
      *p++ = ' ';
      p = field == FIELD_REAL ? asparse_number_put_real(p, value) : asparse_number_put_integer(p, (int64_t)value);
    }
    *p++ = '\n';
  }
  return p - to;
}

/* Keeps a copy of text, compressed where asked. */
static asparse_status keep(const part *part, const char *text, int64_t length, piece *piece) {
  if (part->gzip) return asparse_gzip_member(text, length, &piece->bytes, &piece->length);
  piece->bytes = asparse_malloc(length, 1, "text of entries");
  if (!piece->bytes) return ASPARSE_ERR_MEMORY;
  memcpy(piece->bytes, text, (size_t)length);
  piece->length = length;
  return ASPARSE_OK;
}

static asparse_status format_piece(const part *part, int64_t i, char *text) {
  const int64_t nnz = asparse_csr_nnz_local(part->a), first = i * PIECE_ENTRIES;
  const int64_t end = nnz - first < PIECE_ENTRIES ? nnz : first + PIECE_ENTRIES;
  return keep(part, text, format_entries(part->a, part->field, first, end, text), &part->pieces[i]);
}

/* Local. */
static asparse_status format_pieces(part *part) {
  asparse_status status = ASPARSE_OK;
  part->n_pieces = (asparse_csr_nnz_local(part->a) + PIECE_ENTRIES - 1) / PIECE_ENTRIES;
  ALLOC_ZERO(part->pieces, part->n_pieces);
#pragma omp parallel
  {
    char *text = asparse_malloc(PIECE_ENTRIES, LINE_LENGTH, "formatting buffer");
    asparse_status mine = text ? ASPARSE_OK : ASPARSE_ERR_MEMORY;
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < part->n_pieces; i++) {
      if (mine == ASPARSE_OK) mine = format_piece(part, i, text);
    }
#pragma omp critical
    if (mine != ASPARSE_OK) status = mine;
    asparse_free(text);
  }
cleanup:
  return status;
}

static void free_pieces(part *part) {
  for (int64_t i = 0; part->pieces && i < part->n_pieces; i++) asparse_free(part->pieces[i].bytes);
  FREE(part->pieces);
}

/* ---- writing ---------------------------------------------------------------------------------- */

static asparse_status write_bytes(int descriptor, const char *bytes, int64_t length) {
  while (length > 0) {
    ssize_t written = write(descriptor, bytes, (size_t)length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ASPARSE_FAIL(ASPARSE_ERR_IO, "%s", strerror(errno));
    bytes += written;
    length -= written;
  }
  return ASPARSE_OK;
}

/* Comments end with their line, whatever a file name holds. */
static void print_comment(FILE *header, const char *name, const char *text) {
  if (!text) return;
  fprintf(header, "%% %s: ", name);
  for (; *text; text++) fputc((unsigned char)*text < ' ' ? '?' : *text, header);
  fputc('\n', header);
}

/* Banner, provenance and sizes. Local. */
static asparse_status format_header(const part *part, int64_t nnz, const asparse_provenance *provenance, piece *piece) {
  asparse_status status = ASPARSE_OK;
  char *text = NULL, hash[ASPARSE_CHECKSUM_LENGTH];
  size_t length = 0;
  FILE *header = open_memstream(&text, &length);
  TRY_THAT(header, ASPARSE_ERR_MEMORY, "cannot allocate a header");
  fprintf(header, "%%%%MatrixMarket matrix coordinate %s general\n", field_names[part->field]);
  if (provenance) {
    asparse_checksum_text(provenance->matrix_hash, hash);
    print_comment(header, "program", provenance->program);
    print_comment(header, "source", provenance->source);
    print_comment(header, "options", provenance->options);
    print_comment(header, "matrix_hash", provenance->matrix_hash ? hash : NULL);
  }
  fprintf(header, "%lld %lld %lld\n", (long long)part->a->m, (long long)part->a->k, (long long)nnz);
  TRY_THAT(fclose(header) == 0, ASPARSE_ERR_MEMORY, "cannot allocate a header");
  TRY(keep(part, text, (int64_t)length, piece));
cleanup:
  free(text);
  return status;
}

/* A piece as long as it is; one of gzip stays below its text, and that has room to spare. */
static asparse_status receive(asparse_comm *comm, int from, int tag, piece *piece) {
  asparse_status status = ASPARSE_OK;
  MPI_Status sent;
  int length = 0;
  TRY_MPI(MPI_Recv(piece->bytes, PIECE_ENTRIES * LINE_LENGTH, MPI_BYTE, from, tag, comm->mpi, &sent));
  TRY_MPI(MPI_Get_count(&sent, MPI_BYTE, &length));
  piece->length = length;
cleanup:
  return status;
}

/* Rank 0 receives the pieces of every rank in turn; after a failed write it still receives, so that the
 * senders finish. */
static asparse_status write_in_order(asparse_comm *comm, const part *part, int descriptor, char *received) {
  asparse_status status = ASPARSE_OK, write_status = ASPARSE_OK;
  enum { TAG = 22 };
  for (int r = 0; r < comm->size; r++) {
    int64_t n_pieces = part->n_pieces;
    TRY_MPI(MPI_Bcast(&n_pieces, 1, MPI_INT64_T, r, comm->mpi));
    if (comm->rank != 0 && comm->rank != r) continue;
    for (int64_t i = 0; i < n_pieces; i++) {
      piece p = comm->rank == r ? part->pieces[i] : (piece){received, 0};
      if (comm->rank != 0) TRY_MPI(MPI_Send(p.bytes, (int)p.length, MPI_BYTE, 0, TAG, comm->mpi));
      else if (r != 0) TRY(receive(comm, r, TAG, &p));
      if (comm->rank == 0 && write_status == ASPARSE_OK) write_status = write_bytes(descriptor, p.bytes, p.length);
    }
  }
cleanup:
  return status != ASPARSE_OK ? status : write_status;
}

/* Into the temporary file of an output begun. Collective. */
static asparse_status write_file(asparse_comm *comm, const part *part, const piece *header, const char *temporary) {
  asparse_status status = ASPARSE_OK;
  char *received = NULL;
  int descriptor = -1;
  if (comm->rank == 0) {
    descriptor = open(temporary, O_WRONLY);
    if (descriptor < 0) status = ASPARSE_FAIL(ASPARSE_ERR_IO, "%s", strerror(errno));
    if (status == ASPARSE_OK) status = write_bytes(descriptor, header->bytes, header->length);
    if (comm->size > 1) received = asparse_malloc(PIECE_ENTRIES, LINE_LENGTH, "receiving buffer");
    if (comm->size > 1 && !received) status = ASPARSE_ERR_MEMORY;
  }
  TRY(asparse_comm_agree(comm, status));
  status = write_in_order(comm, part, descriptor, received);
cleanup:
  if (descriptor >= 0 && close(descriptor) != 0 && status == ASPARSE_OK)
    status = ASPARSE_FAIL(ASPARSE_ERR_IO, "%s", strerror(errno));
  asparse_free(received);
  return status;
}

static asparse_status mtx_write(asparse_comm *comm, const char *path, const asparse_csr *a, const char *value_type,
                                bool gzip, const asparse_provenance *provenance) {
  asparse_status status = ASPARSE_OK;
  asparse_output output;
  part part = {.a = a, .gzip = gzip};
  piece header = {NULL, 0};
  int64_t entry_begin = 0, nnz = 0;
  enum { TEXT_BYTES = 32, MEMBER_BYTES = 16 }; /* of an entry, about */
  TRY(asparse_csr_place(comm, a, &entry_begin, &nnz));
  TRY(choose_field(comm, a, value_type, &part.field));
  status = asparse_budget_check(comm, asparse_csr_nnz_local(a), gzip ? MEMBER_BYTES : TEXT_BYTES, "the text");
  if (status == ASPARSE_OK) status = format_pieces(&part);
  if (status == ASPARSE_OK && comm->rank == 0) status = format_header(&part, nnz, provenance, &header);
  TRY(asparse_comm_agree(comm, status));
  TRY(asparse_output_begin(comm, path, &output));
  status = write_file(comm, &part, &header, output.temporary);
  if (status != ASPARSE_OK) asparse_error_prefix("cannot write %s", path);
  status = asparse_output_end(comm, &output, status);
cleanup:
  asparse_free(header.bytes);
  free_pieces(&part);
  return status;
}

asparse_status asparse_mtx_write(asparse_comm *comm, const char *path, const asparse_csr *a, const char *value_type,
                                 const asparse_provenance *provenance) {
  return mtx_write(comm, path, a, value_type, false, provenance);
}

asparse_status asparse_mtx_gz_write(asparse_comm *comm, const char *path, const asparse_csr *a, const char *value_type,
                                    const asparse_provenance *provenance) {
  return mtx_write(comm, path, a, value_type, true, provenance);
}
