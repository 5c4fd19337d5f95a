/* Finds the importer of a file and lets the ranks read: each its slab where the format allows, else rank 0 all. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "io/importer.h"

/* In the order of detection: from what is certain to what is likely. */
static const asparse_importer *const importers[] = {&asparse_mtx_importer,
                                                    &asparse_npz_importer,
                                                    &asparse_petsc_importer,
                                                    &asparse_mat5_importer,
                                                    &asparse_harwell_boeing_importer,
                                                    &asparse_metis_importer,
                                                    &asparse_edges_importer};
enum { N_IMPORTERS = sizeof importers / sizeof *importers };

bool asparse_input_is_named(const asparse_input *input, const char *ending) {
  static const char *const compressed[] = {".gz", ".xz", ".zst"};
  size_t length = strlen(input->name), n = strlen(ending);
  for (size_t i = 0; i < sizeof compressed / sizeof *compressed; i++) {
    size_t cut = strlen(compressed[i]);
    if (length > cut && strcasecmp(input->name + length - cut, compressed[i]) == 0) {
      length -= cut;
      break;
    }
  }
  return length > n && strncasecmp(input->name + length - n, ending, n) == 0;
}

static void list_importers(char *list, size_t size) {
  size_t used = 0;
  list[0] = '\0';
  for (int i = 0; i < N_IMPORTERS && used < size; i++)
    used +=
        (size_t)snprintf(list + used, size - used, "%s%s (%s)", i ? ", " : "", importers[i]->name, importers[i]->title);
}

static asparse_status find_named(const char *name, int *found) {
  char list[512];
  for (*found = 0; *found < N_IMPORTERS; ++*found) {
    if (strcmp(importers[*found]->name, name) == 0) return ASPARSE_OK;
  }
  list_importers(list, sizeof list);
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "unknown format '%s'; expected one of: %s", name, list);
}

static asparse_status fail_unknown(const asparse_input *input) {
  char list[512], start[25];
  if (input->head_length >= 8 && memcmp(input->head, "\x89HDF\r\n\x1a\n", 8) == 0)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s is an HDF5 file, which needs no conversion", input->name);
  int n = 0;
  for (; n < 24 && n < input->head_length; n++)
    start[n] = input->head[n] >= ' ' && input->head[n] < 127 ? input->head[n] : '.';
  start[n] = '\0';
  list_importers(list, sizeof list);
  return ASPARSE_FAIL(
      ASPARSE_ERR_DATA,
      "%s begins with \"%s\", which is of no known format (no banner, header or list of edges); known are: %s",
      input->name, start, list);
}

static asparse_status detect(const asparse_input *input, int *found) {
  int likely[N_IMPORTERS], n_likely = 0;
  for (*found = 0; *found < N_IMPORTERS; ++*found) {
    asparse_match match = importers[*found]->detect(input);
    if (match == ASPARSE_MATCH_YES) return ASPARSE_OK;
    if (match == ASPARSE_MATCH_MAYBE) likely[n_likely++] = *found;
  }
  if (n_likely == 0) return fail_unknown(input);
  if (n_likely > 1)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s could be of format %s or %s; say which with --from %s or --from %s",
                        input->name, importers[likely[0]]->title, importers[likely[1]]->title,
                        importers[likely[0]]->name, importers[likely[1]]->name);
  *found = likely[0];
  return ASPARSE_OK;
}

asparse_status asparse_import_check(const asparse_import_options *options) {
  int ignored;
  return options->from ? find_named(options->from, &ignored) : ASPARSE_OK;
}

/* Rank 0 opens and detects; the others learn its choice: importer, and whether all can read the file. */
static asparse_status choose(asparse_comm *comm, const char *path, const asparse_import_options *options,
                             asparse_input *input, int64_t choice[2]) {
  asparse_status status = ASPARSE_OK;
  int found = 0;
  if (comm->rank == 0) {
    status = asparse_input_open(path, input);
    if (status == ASPARSE_OK) status = options->from ? find_named(options->from, &found) : detect(input, &found);
    choice[0] = found;
    choice[1] = status == ASPARSE_OK && importers[found]->in_slabs && asparse_stream_file(input->stream) >= 0;
  }
  PASS(asparse_comm_agree(comm, status));
  return asparse_comm_sum(comm, choice, 2);
}

/* Own rows; none on ranks other than 0 where rank 0 reads all. Local. */
static asparse_status read_own(asparse_comm *comm, const char *path, const asparse_import_options *options,
                               asparse_input *input, const int64_t choice[2], asparse_csr **a, asparse_source *source) {
  const bool in_slabs = choice[1] != 0;
  if (comm->rank > 0 && !in_slabs) return ASPARSE_OK;
  if (comm->rank > 0) PASS(asparse_input_open(path, input));
  if (in_slabs) {
    input->part = comm->rank;
    input->parts = comm->size;
  }
  return importers[choice[0]]->read(input, options, a, source);
}

/* What rank 0 knows of the whole, and empty slabs for those that read nothing. Collective. */
static asparse_status complete(asparse_comm *comm, asparse_csr **a, asparse_source *source) {
  asparse_status status = ASPARSE_OK;
  int64_t shape[3] = {0}, nnz = *a ? asparse_csr_nnz_local(*a) : 0; /* m, k, dtype */
  if (comm->rank == 0) memcpy(shape, (int64_t[]){(*a)->m, (*a)->k, (*a)->dtype}, sizeof shape);
  TRY_MPI(MPI_Bcast(source, sizeof *source, MPI_BYTE, 0, comm->mpi));
  TRY(asparse_comm_sum(comm, shape, 3));
  if (!*a) status = asparse_csr_create(a, shape[0], shape[1], shape[0], 0, 0, (asparse_dtype)shape[2]);
  TRY(asparse_comm_agree(comm, status));
  TRY(asparse_comm_sum(comm, &nnz, 1));
  (*a)->nnz = nnz;
cleanup:
  return status;
}

asparse_status asparse_import(asparse_comm *comm, const char *path, const asparse_import_options *options,
                              asparse_csr **out, asparse_source *source) {
  asparse_status status = ASPARSE_OK;
  asparse_input input = {.file = -1};
  asparse_csr *a = NULL;
  int64_t choice[2] = {0};
  *source = (asparse_source){.format = ""};
  TRY(choose(comm, path, options, &input, choice));
  status = read_own(comm, path, options, &input, choice, &a, source);
  TRY(asparse_comm_agree(comm, status));
  TRY(complete(comm, &a, source));
  *out = a;
  a = NULL;
cleanup:
  asparse_input_close(&input);
  asparse_csr_destroy(&a);
  return status;
}
