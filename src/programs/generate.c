/* asparse_generate: a matrix from a short description, the same on any number of ranks, as HDF5 (Binsparse CSR). */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asparse_config.h"
#include "io/io.h"
#include "programs/generated.h"
#include "programs/json_record.h"
#include "programs/option_values.h"
#include "programs/program.h"

static const char program[] = "asparse_generate";

typedef struct generate_options {
  asparse_generator generator;
  const char *output, *json;
  int64_t seed;
  asparse_dtype precision;
  bool quiet, list, help, version;
} generate_options;

/* What was generated, over all ranks, and how fast. */
typedef struct generate_record {
  char text[ASPARSE_GENERATOR_TEXT];
  int64_t nnz, longest_row;
  double generate_seconds, write_seconds;
} generate_record;

static const char help[] =
    "usage: asparse_generate [options] KIND[:NAME=VALUE,...] [-o matrix.h5]\n"
    "\n"
    "Makes a sparse matrix and writes it as HDF5 in the Binsparse CSR layout. The same description and seed give the\n"
    "same matrix on any number of ranks. The output is whole or absent.\n"
    "\n"
    "  KIND              grid2d, grid3d, fem2d, fem3d, banded, rmat, uniform, blocks; parameters have defaults, and\n"
    "                    values without a name are taken in order: grid2d:1000,500 is grid2d:nx=1000,ny=500\n"
    "  --list            all kinds with their parameters, ranges and defaults\n"
    "  -o FILE           where to write; without it the matrix is made and counted only\n"
    "  --seed S          of all that is random (default 42)\n"
    "  --precision TYPE  fp64 (default) or fp32: the type of the values that are written; --dtype is the same\n"
    "  --json FILE|-     what was generated and how fast, as JSON\n"
    "  -q, --quiet       nothing on standard error but errors\n"
    "  -h, --help        this text\n"
    "  --version         the version\n"
    "\n"
    "  asparse_generate grid3d:nx=100,points=27 -o grid.h5\n"
    "  mpirun -np 8 asparse_generate rmat:scale=20,edges=16 --seed 7 -o graph.h5\n"
    "\n"
    "Exit codes: 0 fine, 1 run-time failure, 2 usage.\n";

static asparse_status parse_precision(const char *text, asparse_dtype *precision) {
  static const option_choice choices[] = {{"fp64", ASPARSE_FP64}, {"fp32", ASPARSE_FP32}, {NULL, 0}};
  int choice = 0;
  PASS(option_choose("--precision", text, choices, &choice));
  *precision = (asparse_dtype)choice;
  return ASPARSE_OK;
}

static asparse_status parse_description(int argc, char **argv, generate_options *o) {
  if (argc == optind)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "no description of a matrix given; --list shows what there is");
  if (argc - optind > 1)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "one description is enough; '%s' is too much", argv[optind + 1]);
  return asparse_generator_parse(argv[optind], (uint64_t)o->seed, o->precision, &o->generator);
}

static asparse_status parse_options(int argc, char **argv, generate_options *o) {
  enum { SEED = 256, PRECISION, JSON, LIST, VERSION };
  static const struct option table[] = {{"seed", required_argument, NULL, SEED},
                                        {"precision", required_argument, NULL, PRECISION},
                                        {"dtype", required_argument, NULL, PRECISION},
                                        {"json", required_argument, NULL, JSON},
                                        {"list", no_argument, NULL, LIST},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"help", no_argument, NULL, 'h'},
                                        {"version", no_argument, NULL, VERSION},
                                        {NULL, 0, NULL, 0}};
  int option;
  *o = (generate_options){.seed = 42, .precision = ASPARSE_FP64};
  opterr = 0;
  optind = 1;
  while ((option = getopt_long(argc, argv, ":o:qh", table, NULL)) != -1) {
    switch (option) {
    case 'o': o->output = optarg; break;
    case SEED: PASS(option_integer("--seed", optarg, 0, INT64_MAX, &o->seed)); break;
    case PRECISION: PASS(parse_precision(optarg, &o->precision)); break;
    case JSON: o->json = optarg; break;
    case 'q': o->quiet = true; break;
    case LIST: o->list = true; return ASPARSE_OK;
    case 'h': o->help = true; return ASPARSE_OK;
    case VERSION: o->version = true; return ASPARSE_OK;
    default: return option_unknown(argv, option);
    }
  }
  return parse_description(argc, argv, o);
}

/* This rank's slab, counted. Collective. */
static asparse_status generate_slab(asparse_comm *comm, const asparse_generator *g, asparse_csr **a,
                                    generate_record *r) {
  PASS(generated_slab(comm, g, a));
  for (int64_t i = 0; i < (*a)->n_rows; i++) {
    int64_t length = (*a)->row_ptr[i + 1] - (*a)->row_ptr[i];
    if (length > r->longest_row) r->longest_row = length;
  }
  PASS(asparse_comm_max(comm, &r->longest_row, 1));
  r->nnz = (*a)->nnz;
  return ASPARSE_OK;
}

static json_t *record_json(const generate_options *o, const generate_record *r) {
  const asparse_generator *g = &o->generator;
  return json_pack("{s:s, s:s, s:s, s:I, s:s, s:s?, s:I, s:I, s:I, s:I, s:f, s:f}", "program", program, "version",
                   ASPARSE_VERSION, "matrix", r->text, "seed", (json_int_t)o->seed, "precision",
                   asparse_dtype_name(g->dtype), "output", o->output, "rows", (json_int_t)g->m, "columns",
                   (json_int_t)g->k, "nnz", (json_int_t)r->nnz, "longest_row", (json_int_t)r->longest_row,
                   "generate_seconds", r->generate_seconds, "write_seconds", r->write_seconds);
}

static void print_summary(const generate_options *o, const generate_record *r) {
  const asparse_generator *g = &o->generator;
  fprintf(stderr,
          "%s: %s, seed %" PRId64 ": %" PRId64 " × %" PRId64 ", %" PRId64 " entries (%s), at most %" PRId64
          " in a row, generated in %.2f s",
          program, r->text, o->seed, g->m, g->k, r->nnz, asparse_dtype_name(g->dtype), r->longest_row,
          r->generate_seconds);
  if (o->output) fprintf(stderr, ", written to %s in %.2f s\n", o->output, r->write_seconds);
  else fprintf(stderr, "; not written, since no -o FILE was given\n");
}

static asparse_status run(asparse_comm *comm, const generate_options *o, const char *command) {
  asparse_status status = ASPARSE_OK;
  asparse_csr *a = NULL;
  generate_record r = {0};
  asparse_generator_text(&o->generator, r.text);
  asparse_provenance provenance = {
      .program = "asparse_generate " ASPARSE_VERSION, .source = r.text, .options = command};
  asparse_program_threads(comm, 0);
  TRY(asparse_program_output_check(comm, NULL, o->output));
  if (!o->quiet) asparse_program_progress(comm, "generating");
  double start = asparse_seconds();
  TRY(generate_slab(comm, &o->generator, &a, &r));
  double generated = asparse_seconds();
  if (!o->quiet) asparse_program_progress(comm, "writing");
  if (o->output) {
    TRY(asparse_matrix_hash(comm, a, &provenance.matrix_hash));
    TRY(asparse_csr_write(comm, o->output, a, NULL, &provenance));
  }
  r.generate_seconds = generated - start;
  r.write_seconds = asparse_seconds() - generated;
  asparse_program_progress(comm, NULL);
  if (comm->rank == 0 && !o->quiet) print_summary(o, &r);
  if (o->json) TRY(json_record_write(comm, o->json, comm->rank == 0 ? record_json(o, &r) : NULL));
cleanup:
  if (status != ASPARSE_OK) asparse_program_progress(comm, NULL);
  asparse_csr_destroy(&a);
  return status;
}

int main(int argc, char **argv) {
  generate_options options;
  asparse_comm *comm = NULL;
  if (parse_options(argc, argv, &options) != ASPARSE_OK) return asparse_program_usage_error(program);
  if (options.help || options.list || options.version) {
    if (options.version) asparse_program_version(program);
    else if (options.list && asparse_program_speaks()) asparse_generator_list(stdout);
    else if (asparse_program_speaks()) fputs(help, stdout);
    return 0;
  }
  char *command = asparse_program_command(argc, argv);
  asparse_program_begin(&argc, &argv);
  asparse_status status = asparse_comm_create(&comm, MPI_COMM_WORLD);
  if (status == ASPARSE_OK) status = run(comm, &options, command);
  free(command);
  return asparse_program_end(&comm, status, program);
}
