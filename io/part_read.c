#include <stdio.h>
#include <string.h>

#include "io/budget.h"
#include "io/checksum.h"
#include "io/hdf5_read.h"
#include "io/part_file.h"

void asparse_part_header_free(asparse_part_header *header) {
  FREE(header->row_starts);
  FREE(header->col_starts);
}

void asparse_part_free(asparse_part *part) {
  asparse_shard_destroy(&part->diag_shard); /* before the CSR that it may borrow */
  asparse_shard_destroy(&part->offd_shard);
  asparse_local_csr_destroy(&part->diag);
  asparse_local_csr_destroy(&part->offd);
  FREE(part->col_map_offd);
  FREE(part->row_map);
}

/* A communicator of this rank alone: what is collective becomes local. */
static asparse_comm alone(const asparse_comm *comm) {
  asparse_comm self = *comm;
  self.mpi = MPI_COMM_SELF;
  self.rank = 0;
  self.size = 1;
  return self;
}

/* ---- detection ------------------------------------------------------------------------------ */

static asparse_status detect(const char *path, bool *found) {
  asparse_status status = ASPARSE_OK;
  char *file_name = NULL, *object = NULL;
  hid_t file = -1;
  *found = false;
  TRY(asparse_path_split(path, &file_name, &object));
  if (object[0]) goto cleanup; /* a matrix within a file */
  TRY(asparse_hdf5_open(file_name, &file));
  *found = H5Aexists_by_name(file, "/", ASPARSE_PARTITION_ATTRIBUTE, H5P_DEFAULT) > 0;
cleanup:
  CLOSE_HDF5(H5Fclose, file);
  asparse_free(file_name);
  asparse_free(object);
  return status;
}

asparse_status asparse_part_file_detect(asparse_comm *comm, const char *path, bool *is_part_file) {
  asparse_status status = ASPARSE_OK;
  bool found = false;
  if (comm->rank == 0) status = detect(path, &found);
  TRY(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Bcast(&found, sizeof found, MPI_BYTE, 0, comm->mpi));
  *is_part_file = found;
cleanup:
  return status;
}

/* ---- one dataset, by this process alone ------------------------------------------------------ */

/* Opens group/name, which must have the given type and count elements. */
static asparse_status open_exact(asparse_comm *self, hid_t file, const char *group, const char *name,
                                 asparse_element element, int64_t count, asparse_dataset *dataset) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_dataset_inspect(file, group, name, dataset));
  TRY_THAT(dataset->rank == 1 && dataset->element == element && dataset->rows == count, ASPARSE_ERR_DATA,
           "dataset %s has %lld elements of %s, expected %lld of %s", dataset->path, (long long)dataset->rows,
           asparse_element_name(dataset->element), (long long)count, asparse_element_name(element));
  TRY(asparse_dataset_open(self, file, dataset));
cleanup:
  return status;
}

static asparse_status read_exact(asparse_comm *self, hid_t file, const char *group, const asparse_part_array *array) {
  asparse_status status = ASPARSE_OK;
  asparse_dataset dataset = {.id = -1};
  TRY(open_exact(self, file, group, array->name, array->element, array->count, &dataset));
  TRY(asparse_dataset_read(self, &dataset, 0, array->count, array->data, NULL, NULL));
cleanup:
  asparse_dataset_close(&dataset);
  return status;
}

/* ---- header --------------------------------------------------------------------------------- */

static asparse_status check_starts(const char *name, const int64_t *starts, int parts, int64_t end) {
  bool good = starts[0] == 0 && starts[parts] == end;
  for (int r = 0; r < parts; r++) good = good && starts[r] <= starts[r + 1];
  return good ? ASPARSE_OK
              : ASPARSE_FAIL(ASPARSE_ERR_DATA, "dataset %s does not ascend from 0 to %lld", name, (long long)end);
}

static asparse_status read_header_content(asparse_comm *self, hid_t file, int ranks, asparse_part_header *header) {
  asparse_status status = ASPARSE_OK;
  hid_t root = -1;
  char *text = NULL;
  uint64_t checksum = 0;
  TRY(asparse_hdf5_open_object(file, "/", &root));
  TRY_THAT(H5Aexists(root, ASPARSE_PARTITION_ATTRIBUTE) > 0, ASPARSE_ERR_DATA,
           "no partition file (no attribute \"" ASPARSE_PARTITION_ATTRIBUTE "\")");
  TRY(asparse_hdf5_read_text(root, ASPARSE_PARTITION_ATTRIBUTE, &text));
  TRY(asparse_part_header_parse(text, header, &checksum));
  TRY_THAT(
      header->parts == ranks, ASPARSE_ERR_USAGE,
      "the file holds %d parts, but %d ranks run; start %d ranks, or make another file with asparse_partition --parts %d",
      header->parts, ranks, header->parts, ranks);
  ALLOC(header->row_starts, header->parts + 1);
  ALLOC(header->col_starts, header->parts + 1);
  const asparse_part_array rows = {"row_starts", ASPARSE_INT64, header->parts + 1, header->row_starts};
  const asparse_part_array cols = {"col_starts", ASPARSE_INT64, header->parts + 1, header->col_starts};
  TRY(read_exact(self, file, "/", &rows));
  TRY(read_exact(self, file, "/", &cols));
  TRY(check_starts("row_starts", header->row_starts, header->parts, header->m));
  TRY(check_starts("col_starts", header->col_starts, header->parts, header->k));
  TRY(asparse_checksum_compare("header", asparse_part_header_checksum(header), checksum));
cleanup:
  asparse_free(text);
  CLOSE_HDF5(H5Oclose, root);
  return status;
}

static asparse_status read_header(asparse_comm *self, const char *path, int ranks, asparse_part_header *header) {
  asparse_status status = ASPARSE_OK;
  hid_t file = -1;
  TRY(asparse_hdf5_open(path, &file));
  status = read_header_content(self, file, ranks, header);
  if (status != ASPARSE_OK) asparse_error_prefix("%s", path);
cleanup:
  CLOSE_HDF5(H5Fclose, file);
  return status;
}

asparse_status asparse_part_header_read(asparse_comm *comm, const char *path, asparse_part_header *header) {
  asparse_status status = ASPARSE_OK;
  asparse_comm self = alone(comm);
  int count = comm->size + 1;
  memset(header, 0, sizeof *header);
  if (comm->rank == 0) {
    status = read_header(&self, path, comm->size, header);
  } else {
    header->row_starts = asparse_malloc(count, sizeof *header->row_starts, "row starts");
    header->col_starts = asparse_malloc(count, sizeof *header->col_starts, "column starts");
    if (!header->row_starts || !header->col_starts) status = ASPARSE_ERR_MEMORY;
  }
  TRY(asparse_comm_agree(comm, status));
  int64_t *row_starts = header->row_starts, *col_starts = header->col_starts;
  TRY_MPI(MPI_Bcast(header, sizeof *header, MPI_BYTE, 0, comm->mpi));
  header->row_starts = row_starts;
  header->col_starts = col_starts;
  TRY_MPI(MPI_Bcast(row_starts, count, MPI_INT64_T, 0, comm->mpi));
  TRY_MPI(MPI_Bcast(col_starts, count, MPI_INT64_T, 0, comm->mpi));
cleanup:
  if (status != ASPARSE_OK) asparse_part_header_free(header);
  return status;
}

/* ---- part ----------------------------------------------------------------------------------- */

typedef struct part_reader {
  asparse_comm self;
  hid_t file;
  const asparse_part_header *header;
  char group[ASPARSE_PART_PATH];
  asparse_part_scalars scalars;
  asparse_part *part;
} part_reader;

/* Extent of a dataset that sets the size of others; -1 when the part lacks it. */
static asparse_status extent_of(part_reader *r, const char *name, int64_t bytes_each, int64_t *extent) {
  char path[2 * ASPARSE_PART_PATH];
  asparse_dataset dataset;
  bool exists = false;
  *extent = -1;
  snprintf(path, sizeof path, "%s/%s", r->group, name);
  PASS(asparse_hdf5_exists(r->file, path, &exists));
  if (!exists) return ASPARSE_OK;
  PASS(asparse_dataset_inspect(r->file, path, "", &dataset));
  *extent = dataset.rows;
  return asparse_budget_check(&r->self, *extent, bytes_each, path);
}

/* The last pointer is set to the size, which asparse_part_arrays goes by; reading overwrites it. */
static asparse_status create_csr(part_reader *r, const char *col_idx, int64_t k, asparse_local_csr **a) {
  asparse_status status = ASPARSE_OK;
  int64_t nnz = 0;
  TRY(extent_of(r, col_idx, 4 + (int64_t)asparse_dtype_size(r->header->dtype), &nnz));
  if (nnz < 0) goto cleanup;
  TRY(asparse_local_csr_create(a, (int32_t)r->scalars.m_local, (int32_t)k, nnz, r->header->dtype));
  (*a)->row_ptr[(*a)->m] = nnz;
cleanup:
  return status;
}

static asparse_status create_wcsr(part_reader *r, int32_t unit, int32_t k, int64_t n_columns, int64_t nnz,
                                  asparse_shard *shard) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_wcsr_create(&shard->wcsr, (int32_t)r->scalars.m_local, k, unit, n_columns, r->header->dtype));
  shard->wcsr->window_row_ptr[shard->wcsr->n_windows] = n_columns;
  shard->wcsr->nnz = nnz;
cleanup:
  return status;
}

static asparse_status create_bcsr(part_reader *r, int32_t unit, int32_t k, int64_t n_blocks, int64_t nnz,
                                  asparse_shard *shard) {
  asparse_status status = ASPARSE_OK;
  TRY(asparse_bcsr_create(&shard->bcsr, (int32_t)r->scalars.m_local, k, unit, n_blocks, r->header->dtype));
  shard->bcsr->block_row_ptr[shard->bcsr->n_block_rows] = n_blocks;
  shard->bcsr->nnz = nnz;
cleanup:
  return status;
}

static asparse_status create_shard(part_reader *r, bool diag, asparse_shard **out) {
  asparse_status status = ASPARSE_OK;
  asparse_shard *shard = NULL;
  asparse_shard_kind kind = diag ? r->header->diag : r->header->offd;
  bool wcsr = kind.format == ASPARSE_FORMAT_WCSR;
  int64_t extent = 0, nnz = diag ? r->scalars.diag_shard_nnz : r->scalars.offd_shard_nnz;
  int64_t unit_bytes = (int64_t)kind.unit * (int64_t)asparse_dtype_size(r->header->dtype) + 12;
  char name[32];
  if (kind.format == ASPARSE_FORMAT_CSR) return ASPARSE_OK;
  snprintf(name, sizeof name, "%s_shard/%s", diag ? "diag" : "offd", wcsr ? "window_col_idx" : "block_col_idx");
  TRY(extent_of(r, name, wcsr ? unit_bytes : unit_bytes * kind.unit, &extent));
  if (extent < 0) goto cleanup;
  int32_t k = (int32_t)(diag ? r->scalars.k_local : r->scalars.n_halo);
  ALLOC_ZERO(shard, 1);
  shard->format = kind.format;
  TRY(wcsr ? create_wcsr(r, kind.unit, k, extent, nnz, shard) : create_bcsr(r, kind.unit, k, extent, nnz, shard));
  *out = shard;
  shard = NULL;
cleanup:
  asparse_shard_destroy(&shard);
  return status;
}

static asparse_status create_map(part_reader *r, const char *name, int64_t count, int64_t **map) {
  asparse_status status = ASPARSE_OK;
  int64_t extent = 0;
  TRY(extent_of(r, name, 8, &extent));
  TRY_THAT(extent < 0 || extent == count, ASPARSE_ERR_DATA, "dataset %s/%s has %lld elements, expected %lld", r->group,
           name, (long long)extent, (long long)count);
  if (extent >= 0) ALLOC(*map, count);
cleanup:
  return status;
}

static asparse_status read_scalars(part_reader *r, int part) {
  asparse_status status = ASPARSE_OK;
  hid_t group = -1;
  char *text = NULL;
  const asparse_part_header *h = r->header;
  TRY(asparse_hdf5_open_object(r->file, r->group, &group));
  TRY(asparse_hdf5_read_text(group, ASPARSE_PART_ATTRIBUTE, &text));
  TRY(asparse_part_parse(text, &r->scalars));
  TRY_THAT(r->scalars.m_local == h->row_starts[part + 1] - h->row_starts[part] &&
               r->scalars.k_local == h->col_starts[part + 1] - h->col_starts[part],
           ASPARSE_ERR_DATA, "group %s has %lld rows and %lld columns, the header says otherwise", r->group,
           (long long)r->scalars.m_local, (long long)r->scalars.k_local);
  TRY(asparse_budget_check(&r->self, 4 * (r->scalars.m_local + 1), 8, r->group));
  r->part->m_local = r->scalars.m_local;
  r->part->k_local = r->scalars.k_local;
  r->part->n_halo = r->scalars.n_halo;
cleanup:
  asparse_free(text);
  CLOSE_HDF5(H5Oclose, group);
  return status == ASPARSE_ERR_USAGE ? ASPARSE_ERR_DATA : status; /* no such group: the file is at fault */
}

static asparse_status read_content(part_reader *r, int part) {
  asparse_part *p = r->part;
  asparse_part_array arrays[ASPARSE_PART_ARRAYS];
  PASS(read_scalars(r, part));
  PASS(create_csr(r, "diag/col_idx", p->k_local, &p->diag));
  PASS(create_csr(r, "offd/col_idx", p->n_halo, &p->offd));
  PASS(create_shard(r, true, &p->diag_shard));
  PASS(create_shard(r, false, &p->offd_shard));
  PASS(create_map(r, "col_map_offd", p->n_halo, &p->col_map_offd));
  PASS(create_map(r, "row_map", p->m_local, &p->row_map));
  asparse_part_arrays(p, r->header->dtype, r->header->diag.format, r->header->offd.format, arrays);
  for (int i = 0; i < ASPARSE_PART_ARRAYS; i++) {
    if (arrays[i].count >= 0) PASS(read_exact(&r->self, r->file, r->group, &arrays[i]));
  }
  PASS(asparse_checksum_compare(r->group, asparse_part_checksum(p, arrays), r->scalars.checksum));
  return asparse_part_check(r->header, part, p, arrays);
}

asparse_status asparse_part_read(asparse_comm *comm, const char *path, const asparse_part_header *header, int part,
                                 asparse_part *data) {
  asparse_status status = ASPARSE_OK;
  part_reader r = {.self = alone(comm), .file = -1, .header = header, .part = data};
  memset(data, 0, sizeof *data);
  asparse_part_path(part, "", r.group);
  TRY(asparse_hdf5_open(path, &r.file));
  status = read_content(&r, part);
  if (status != ASPARSE_OK) asparse_error_prefix("%s", path);
cleanup:
  CLOSE_HDF5(H5Fclose, r.file);
  status = asparse_comm_agree(comm, status);
  if (status != ASPARSE_OK) asparse_part_free(data);
  return status;
}
