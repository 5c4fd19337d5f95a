/* asparse_convert: a matrix of another format, or in another program's HDF5 file, becomes an HDF5 file (Binsparse CSR),
 * which all other programs read, or a file of another format. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "asparse_config.h"
#include "base/clock.h"
#include "io/io.h"
#include "programs/json_record.h"
#include "programs/option_values.h"
#include "programs/program.h"

static const char program[] = "asparse_convert";

typedef struct convert_options {
  const char *input, *output, *json;
  const char *to; /* name of the output's format; NULL: by the output's name */
  int format;
  asparse_import_options import;
  asparse_read_options read; /* of HDF5 files */
  asparse_dtype precision;
  bool precision_given, quiet, help, version;
} convert_options;

/* What was converted, and how fast. */
typedef struct convert_record {
  asparse_source source;
  int64_t n_duplicates, n_inexact; /* of all ranks */
  double read_seconds, write_seconds;
} convert_record;

static const char help[] =
    "usage: asparse_convert [options] INPUT[::NAME] OUTPUT\n"
    "\n"
    "Reads a matrix of another format, or in another program's HDF5 file, and writes it as HDF5 in the Binsparse CSR\n"
    "layout, which all other programs read, or in another format: symmetric matrices are expanded, rows sorted,\n"
    "duplicates summed. The format of the input is told by its content, compressed files are decompressed, \"-\" is\n"
    "standard input; that of the output by its name. The output is whole or absent.\n"
    "\n"
    "  --from FORMAT     what the input is, where its content leaves it open:\n"
    "                      mtx    Matrix Market\n"
    "                      metis  METIS graph\n"
    "                      hb     Harwell-Boeing and Rutherford-Boeing\n"
    "                      petsc  PETSc binary\n"
    "                      mat5   MATLAB 5 (save -v6, -v7); \"file.mat::NAME\" where it holds several sparse arrays\n"
    "                      npz    SciPy npz; \"file.npz::NAME\" where it holds several matrices\n"
    "                      edges  edge list: \"from to [weight]\" a line\n"
    "  --to FORMAT       what to write, where the output's name does not tell it:\n"
    "                      h5     Binsparse CSR in HDF5 (.h5, .hdf5)\n"
    "                      h5ad   AnnData, the matrix as /X (.h5ad)\n"
    "                      mtx    Matrix Market coordinates (.mtx)\n"
    "                      mtx.gz the same in gzip (.mtx.gz)\n"
    "  --ids keep|compact  rows of an edge list: vertex numbers as they are (default), or only those that occur\n"
    "  --precision TYPE  fp64 or fp32: the type of the values that are written (default: the file's own)\n"
    "  --transpose       take the transposed matrix of an HDF5 file (PETSc's files of MATLAB's kind)\n"
    "  --layout HOW      csr or csc: how an HDF5 group of indptr, indices, data is compressed that does not say it\n"
    "  --json FILE|-     what was converted and how fast, as JSON\n"
    "  -q, --quiet       nothing on standard error but errors\n"
    "  -h, --help        this text\n"
    "  --version         the version\n"
    "\n"
    "Exit codes: 0 fine, 1 run-time failure, 2 usage, 65 bad data, 66 no input.\n";

static asparse_status parse_precision(const char *text, asparse_dtype *precision) {
  static const option_choice choices[] = {{"fp64", ASPARSE_FP64}, {"fp32", ASPARSE_FP32}, {NULL, 0}};
  int choice = 0;
  if (strcmp(text, "bf16") == 0)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--precision bf16 is for computing; a file holds fp64 or fp32");
  PASS(option_choose("--precision", text, choices, &choice));
  *precision = (asparse_dtype)choice;
  return ASPARSE_OK;
}

static asparse_status parse_ids(const char *text, asparse_ids *ids) {
  static const option_choice choices[] = {{"keep", ASPARSE_IDS_KEEP}, {"compact", ASPARSE_IDS_COMPACT}, {NULL, 0}};
  int choice = 0;
  PASS(option_choose("--ids", text, choices, &choice));
  *ids = (asparse_ids)choice;
  return ASPARSE_OK;
}

static asparse_status parse_operands(int argc, char **argv, convert_options *o) {
  if (argc - optind < 2)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "no %s file given", argc == optind ? "input" : "output");
  if (argc - optind > 2)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "one input and one output are enough; '%s' is too much", argv[optind + 2]);
  o->input = argv[optind];
  o->output = argv[optind + 1];
  return asparse_export_find(o->output, o->to, &o->format);
}

static asparse_status parse_options(int argc, char **argv, convert_options *o) {
  enum { PRECISION = 256, FROM, TO, IDS, JSON, VERSION };
  static const struct option table[] = {{"precision", required_argument, NULL, PRECISION},
                                        {"from", required_argument, NULL, FROM},
                                        {"to", required_argument, NULL, TO},
                                        {"ids", required_argument, NULL, IDS},
                                        {"json", required_argument, NULL, JSON},
                                        OPTION_READ_TABLE,
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"help", no_argument, NULL, 'h'},
                                        {"version", no_argument, NULL, VERSION},
                                        {NULL, 0, NULL, 0}};
  int option;
  *o = (convert_options){.precision = ASPARSE_FP64};
  opterr = 0;
  optind = 1;
  while ((option = getopt_long(argc, argv, ":qh", table, NULL)) != -1) {
    switch (option) {
    case PRECISION:
      PASS(parse_precision(optarg, &o->precision));
      o->precision_given = true;
      break;
    case FROM: o->import.from = optarg; break;
    case TO: o->to = optarg; break;
    case IDS: PASS(parse_ids(optarg, &o->import.ids)); break;
    case JSON: o->json = optarg; break;
    case OPTION_TRANSPOSE:
    case OPTION_LAYOUT: PASS(option_read(option, optarg, &o->read)); break;
    case 'q': o->quiet = true; break;
    case 'h': o->help = true; return ASPARSE_OK;
    case VERSION: o->version = true; return ASPARSE_OK;
    default: return option_unknown(argv, option);
    }
  }
  PASS(asparse_import_check(&o->import));
  return parse_operands(argc, argv, o);
}

/* Rounds the values; one that would become infinite is an error. */
static asparse_status round_values(const convert_options *o, asparse_csr *a) {
  if (o->precision == ASPARSE_FP64 || a->dtype == ASPARSE_FP32) return asparse_csr_convert(a, o->precision);
  const double *values = a->values;
  int64_t n_beyond = 0, nnz = asparse_csr_nnz_local(a);
#pragma omp parallel for reduction(+ : n_beyond)
  for (int64_t e = 0; e < nnz; e++) n_beyond += isfinite(values[e]) && isinf((float)values[e]);
  if (n_beyond > 0)
    return ASPARSE_FAIL(ASPARSE_ERR_DATA, "%s: %lld values are beyond the range of fp32; use --precision fp64",
                        o->input, (long long)n_beyond);
  return asparse_csr_convert(a, o->precision);
}

/* Own type of the file where no precision is asked for. Collective. */
static asparse_status read_matrix(asparse_comm *comm, const convert_options *o, asparse_csr **a,
                                  convert_record *record) {
  asparse_status status = ASPARSE_OK;
  int64_t is_hdf5 = comm->rank == 0 && asparse_path_is_hdf5(o->input);
  PASS(asparse_comm_max(comm, &is_hdf5, 1));
  if (is_hdf5) PASS(asparse_csr_read_with(comm, o->input, &o->read, a, &record->source));
  else if (o->read.transpose || o->read.compression != ASPARSE_COMPRESSION_UNSAID)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--transpose and --layout are for HDF5 files, which %s is not", o->input);
  else PASS(asparse_import(comm, o->input, &o->import, a, &record->source));
  if (o->precision_given) status = round_values(o, *a);
  PASS(asparse_comm_agree(comm, status));
  int64_t counts[2] = {(*a)->n_duplicates, (*a)->n_inexact};
  PASS(asparse_comm_sum(comm, counts, 2));
  record->n_duplicates = counts[0];
  record->n_inexact = counts[1];
  return ASPARSE_OK;
}

/* Values of a pattern are all 1, unless duplicates were summed. */
static const char *stored_value_type(const convert_record *r) {
  return strcmp(r->source.value_type, "pattern") == 0 && r->n_duplicates > 0 ? "integer" : r->source.value_type;
}

static asparse_status write_matrix(asparse_comm *comm, const convert_options *o, const asparse_csr *a,
                                   const convert_record *record, const char *command) {
  asparse_provenance provenance = {
      .program = "asparse_convert " ASPARSE_VERSION, .source = o->input, .options = command};
  PASS(asparse_matrix_hash(comm, a, &provenance.matrix_hash));
  return asparse_export(comm, o->output, o->format, a, stored_value_type(record), &provenance);
}

static int64_t file_bytes(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : 0;
}

static json_t *record_json(const convert_options *o, const asparse_csr *a, const convert_record *r) {
  const int64_t input_bytes = file_bytes(o->input), output_bytes = file_bytes(o->output);
  return json_pack(
      "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f}",
      "program", program, "version", ASPARSE_VERSION, "input", o->input, "output", o->output, "format",
      r->source.format, "note", r->source.note, "rows", (json_int_t)a->m, "columns", (json_int_t)a->k, "stored_entries",
      (json_int_t)r->source.stored_entries, "nnz", (json_int_t)a->nnz, "duplicates", (json_int_t)r->n_duplicates,
      "inexact_values", (json_int_t)r->n_inexact, "symmetry", r->source.structure, "value_type", r->source.value_type,
      "precision", asparse_dtype_name(a->dtype), "input_bytes", (json_int_t)input_bytes, "output_bytes",
      (json_int_t)output_bytes, "read_seconds", r->read_seconds, "write_seconds", r->write_seconds,
      "read_mb_per_second", 1e-6 * (double)input_bytes / r->read_seconds, "write_mb_per_second",
      1e-6 * (double)output_bytes / r->write_seconds);
}

static void print_summary(const convert_options *o, const asparse_csr *a, const convert_record *r) {
  fprintf(stderr, "%s: %s, %s, %lld × %lld, %lld entries (%s, %s), read in %.2f s, written to %s in %.2f s\n", program,
          o->input, r->source.format, (long long)a->m, (long long)a->k, (long long)a->nnz, r->source.value_type,
          r->source.structure, r->read_seconds, o->output, r->write_seconds);
  if (r->source.note[0]) fprintf(stderr, "%s: %s\n", program, r->source.note);
  if (r->n_duplicates > 0)
    fprintf(stderr, "%s: %lld duplicate entries were summed\n", program, (long long)r->n_duplicates);
  if (r->n_inexact > 0)
    fprintf(stderr, "%s: %lld integers beyond 2^53 were rounded to fp64\n", program, (long long)r->n_inexact);
}

int main(int argc, char **argv) {
  asparse_status status = ASPARSE_OK;
  asparse_comm *comm = NULL;
  asparse_csr *a = NULL;
  convert_options options;
  convert_record record = {0};
  if (parse_options(argc, argv, &options) != ASPARSE_OK) return asparse_program_usage_error(program);
  if (options.help || options.version) {
    if (options.version) asparse_program_version(program);
    else if (asparse_program_speaks()) fputs(help, stdout);
    return 0;
  }
  char *command = asparse_program_command(argc, argv);
  asparse_program_begin(&argc, &argv);
  TRY(asparse_comm_create(&comm, MPI_COMM_WORLD));
  asparse_program_threads(comm, 0);
  TRY(asparse_program_output_check(comm, options.input, options.output));

  double start = asparse_seconds();
  if (!options.quiet) asparse_program_progress(comm, "reading");
  TRY(read_matrix(comm, &options, &a, &record));
  double read = asparse_seconds();
  if (!options.quiet) asparse_program_progress(comm, "writing");
  TRY(write_matrix(comm, &options, a, &record, command));
  record.read_seconds = read - start;
  record.write_seconds = asparse_seconds() - read;
  asparse_program_progress(comm, NULL);
  if (comm->rank == 0 && !options.quiet) print_summary(&options, a, &record);
  if (options.json)
    TRY(json_record_write(comm, options.json, comm->rank == 0 ? record_json(&options, a, &record) : NULL));

cleanup:
  if (status != ASPARSE_OK && comm) asparse_program_progress(comm, NULL);
  asparse_csr_destroy(&a);
  free(command);
  return asparse_program_end(&comm, status, program);
}
