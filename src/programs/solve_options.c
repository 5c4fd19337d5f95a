#include "programs/solve_options.h"

#include <getopt.h>
#include <stdio.h>

#include "programs/option_values.h"
#include "programs/program.h"

enum {
  OPTION_B = 256,
  OPTION_COLS,
  OPTION_B_FROM,
  OPTION_GATHER,
  OPTION_REPEAT,
  OPTION_WARMUP,
  OPTION_THREADS,
  OPTION_SEED,
  OPTION_FORMAT,
  OPTION_UNIT,
  OPTION_PRECISION,
  OPTION_PARTITION,
  OPTION_EXCHANGE,
  OPTION_GRID,
  OPTION_CHUNKS,
  OPTION_PLACEMENT,
  OPTION_BACKEND,
  OPTION_COMM,
  OPTION_TIMEOUT,
  OPTION_KERNEL,
  OPTION_RESULT,
  OPTION_KEEP_ORDER,
  OPTION_REPRODUCIBLE,
  OPTION_VERIFY,
  OPTION_GENERATE,
  OPTION_JSON,
  OPTION_CSV,
  OPTION_DRY_RUN,
  OPTION_VERSION,
  OPTION_PARTS
};

enum { MAX_REPEAT = 1000000, MAX_THREADS = 4096, MAX_PARTS = 1 << 20, MAX_TIMEOUT = 1000000 };
static const int64_t MAX_COLS = (int64_t)1 << 31;

static const struct option solve_table[] = {{"b", required_argument, NULL, OPTION_B},
                                            {"cols", required_argument, NULL, OPTION_COLS},
                                            {"b-from", required_argument, NULL, OPTION_B_FROM},
                                            {"gather", no_argument, NULL, OPTION_GATHER},
                                            {"output", required_argument, NULL, 'o'},
                                            OPTION_READ_TABLE,
                                            {"generate", required_argument, NULL, OPTION_GENERATE},
                                            {"repeat", required_argument, NULL, OPTION_REPEAT},
                                            {"warmup", required_argument, NULL, OPTION_WARMUP},
                                            {"threads", required_argument, NULL, OPTION_THREADS},
                                            {"seed", required_argument, NULL, OPTION_SEED},
                                            {"format", required_argument, NULL, OPTION_FORMAT},
                                            {"unit", required_argument, NULL, OPTION_UNIT},
                                            {"precision", required_argument, NULL, OPTION_PRECISION},
                                            {"partition", required_argument, NULL, OPTION_PARTITION},
                                            {"exchange", required_argument, NULL, OPTION_EXCHANGE},
                                            {"grid", required_argument, NULL, OPTION_GRID},
                                            {"chunks", required_argument, NULL, OPTION_CHUNKS},
                                            {"placement", required_argument, NULL, OPTION_PLACEMENT},
                                            {"backend", required_argument, NULL, OPTION_BACKEND},
                                            {"comm", required_argument, NULL, OPTION_COMM},
                                            {"timeout", required_argument, NULL, OPTION_TIMEOUT},
                                            {"kernel", required_argument, NULL, OPTION_KERNEL},
                                            {"result", required_argument, NULL, OPTION_RESULT},
                                            {"keep-order", no_argument, NULL, OPTION_KEEP_ORDER},
                                            {"reproducible", no_argument, NULL, OPTION_REPRODUCIBLE},
                                            {"verify", optional_argument, NULL, OPTION_VERIFY},
                                            {"json", required_argument, NULL, OPTION_JSON},
                                            {"csv", required_argument, NULL, OPTION_CSV},
                                            {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, OPTION_VERSION},
                                            {NULL, 0, NULL, 0}};

static const char solve_help[] =
    "usage: mpirun -np P asparse_solve [options] matrix.h5[::/object] | --generate KIND[:NAME=VALUE,...]\n"
    "\n"
    "Multiplies C = A·B: A the sparse matrix of the file, B dense. Each rank reads, multiplies and writes its rows.\n"
    "\n"
    "A:\n"
    "  --transpose            take the transposed matrix (PETSc's files of MATLAB's kind)\n"
    "  --layout HOW           csr or csc: how a group of indptr, indices, data is compressed that does not say it\n"
    "  --generate SPEC        no file: each rank makes its rows of the matrix that asparse_generate SPEC --seed S writes\n"
    "B and C:\n"
    "  --b FILE[::/PATH]      B from a dataset; default: dataset B of the matrix file, else random numbers in [-1, 1)\n"
    "                         that do not depend on P\n"
    "  --cols N               columns of the random B (default 128)\n"
    "  --seed S               seed of the random B, of verification and of a generated A (default 42)\n"
    "  -o, --output FILE      write C as HDF5 (Binsparse DMATR); whole or not at all\n"
    "  --b-from WHO           ranks (default: each reads or makes its share), root (rank 0 has all of B and sends shares)\n"
    "  --gather               bring C to rank 0, which writes it alone\n"
    "How:\n"
    "  --precision TYPE       fp64, fp32, bf16 (products summed in fp32); default: the wider of A's and B's own types\n"
    "  --format FORMAT        auto, csr, wcsr (row windows), bcsr (dense blocks)\n"
    "  --unit H               window height 8, 16, 32, 64 or block size 16, 32, 64; default: chosen\n"
    "  --partition METHOD     contiguous (default), metis\n"
    "  --exchange MODE        rows of B that travel: auto, rows (those used), replicate (all); cover: rows of B or\n"
    "                         partial rows of C, whichever are less; columns: every rank holds A and a block of\n"
    "                         columns; grid: parts of A and blocks of columns, as --grid says\n"
    "  --grid PMxPN           ranks as PM parts of A by PN blocks of columns; default P x 1\n"
    "  --chunks K             rows of B travel in K chunks of columns (1 to 4), the first multiplied while the rest\n"
    "                         travel; default: as the planner predicts\n"
    "  --placement HOW        B and C on a grid: planner (default, as they are multiplied), rows (of all columns,\n"
    "                         moved to blocks and back by every multiplication)\n"
    "  --backend BACKEND      auto (a Hopper GPU where every rank sees one, else the host), host, cuda\n"
    "  --comm WAY             what rows of B travel by between GPUs: auto (NCCL where every rank has a GPU of its own, else\n"
    "                         MPI), nccl, mpi\n"
    "  --timeout SECONDS      longest wait for other ranks before the job ends (default 600; 0: for ever)\n"
    "  --kernel NAME          a GPU kernel by name; default: the one with the least predicted time\n"
    "  --keep-order           on a GPU: do not bring like rows together, which makes planning longer\n"
    "  --result TYPE          C of a bf16 product: fp32 (default), bf16 (on a GPU)\n"
    "  --reproducible         the same C bit for bit for any number of ranks and any grid: on the host, in CSR, after all\n"
    "                         rows of B have come\n"
    "  --threads T            threads of each rank; default: the cores of the machine shared by its ranks\n"
    "Measuring:\n"
    "  --repeat R             timed multiplications (default 5)\n"
    "  --warmup W             untimed ones before (default 1)\n"
    "  --verify[=on|off]      check C against A and B in fp64 (default on)\n"
    "  --dry-run              read and partition, say what would be done, do not multiply\n"
    "Output:\n"
    "  --json FILE|-          everything, as JSON\n"
    "  --csv FILE             append one row\n"
    "  -q, --quiet            no report on standard output\n"
    "  -h, --help             this text\n"
    "  --version              version and how it was built\n"
    "\n"
    "Exit codes: 0 fine, 1 run-time failure, 2 usage, 3 verification failed, 65 bad data, 66 no input, 85 ended early\n"
    "on SIGUSR1: after the multiplication at hand, with C and the report of the repeats done; after the step at hand and\n"
    "with nothing written before the first multiplication.\n";

void solve_options_help(void) {
  if (asparse_program_speaks()) fputs(solve_help, stdout);
}

/* Options that shape the plan, shared by the programs. */
static asparse_status parse_plan_option(int option, const char *value, asparse_options *plan) {
  int choice = 0;
  int64_t number = 0;
  switch (option) {
  case OPTION_FORMAT:
    PASS(option_choose("--format", value, option_formats, &choice));
    plan->format = (asparse_format)choice;
    break;
  case OPTION_UNIT:
    PASS(option_integer("--unit", value, 8, 64, &number));
    plan->unit = (int32_t)number;
    break;
  case OPTION_PRECISION:
    PASS(option_choose("--precision", value, option_precisions, &choice));
    plan->precision = (asparse_dtype)choice;
    plan->own_precision = false;
    break;
  case OPTION_PARTITION:
    PASS(option_choose("--partition", value, option_partitions, &choice));
    plan->partition = (asparse_partition_method)choice;
    break;
  case OPTION_EXCHANGE:
    PASS(option_choose("--exchange", value, option_exchanges, &choice));
    plan->exchange = (asparse_exchange_mode)choice;
    break;
  case OPTION_COMM:
    PASS(option_choose("--comm", value, option_comms, &choice));
    plan->comm = (asparse_comm_kind)choice;
    break;
  case OPTION_GRID: PASS(option_grid("--grid", value, &plan->grid_rows, &plan->grid_columns)); break;
  case OPTION_CHUNKS:
    PASS(option_integer("--chunks", value, 1, 4, &number));
    plan->chunks = (int32_t)number;
    break;
  case OPTION_PLACEMENT:
    PASS(option_choose("--placement", value, option_placements, &choice));
    plan->operands = (asparse_placement)choice;
    break;
  case OPTION_KERNEL: plan->kernel = value; break;
  case OPTION_REPRODUCIBLE: plan->reproducible = true; break;
  case OPTION_KEEP_ORDER: plan->keep_order = true; break;
  case OPTION_RESULT:
    PASS(option_choose("--result", value, option_results, &choice));
    plan->bf16_result = choice == ASPARSE_BF16;
    break;
  default:
    PASS(option_choose("--backend", value, option_backends, &choice));
    plan->backend = (asparse_backend_kind)choice;
  }
  return ASPARSE_OK;
}

static asparse_status check_unit(const asparse_options *plan) {
  int32_t unit = plan->unit;
  if (unit == 0) return ASPARSE_OK;
  if (plan->format != ASPARSE_FORMAT_WCSR && plan->format != ASPARSE_FORMAT_BCSR)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--unit goes with --format wcsr or --format bcsr");
  bool power = unit == 8 || unit == 16 || unit == 32 || unit == 64;
  if (!power || (unit == 8 && plan->format == ASPARSE_FORMAT_BCSR))
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--unit %d: windows are 8, 16, 32 or 64 rows high, blocks 16, 32 or 64 wide",
                        unit);
  return ASPARSE_OK;
}

static asparse_status parse_solve_option(int option, const char *value, solve_options *o) {
  int64_t number = 0;
  int choice = 0;
  switch (option) {
  case OPTION_B: o->b = value; break;
  case OPTION_COLS: PASS(option_integer("--cols", value, 1, MAX_COLS, &o->cols)); break;
  case OPTION_B_FROM:
    PASS(option_choose("--b-from", value, option_origins, &choice));
    o->b_from_root = choice != 0;
    break;
  case OPTION_GATHER: o->gather = true; break;
  case 'o': o->output = value; break;
  case OPTION_REPEAT:
    PASS(option_integer("--repeat", value, 1, MAX_REPEAT, &number));
    o->repeat = (int)number;
    break;
  case OPTION_WARMUP:
    PASS(option_integer("--warmup", value, 0, MAX_REPEAT, &number));
    o->warmup = (int)number;
    break;
  case OPTION_THREADS:
    PASS(option_integer("--threads", value, 1, MAX_THREADS, &number));
    o->threads = (int)number;
    break;
  case OPTION_SEED:
    PASS(option_integer("--seed", value, 0, INT64_MAX, &number));
    o->seed = (uint64_t)number;
    break;
  case OPTION_TIMEOUT:
    PASS(option_integer("--timeout", value, 0, MAX_TIMEOUT, &number));
    o->timeout = (double)number;
    break;
  case OPTION_VERIFY:
    if (value) PASS(option_choose("--verify", value, option_switch, &choice));
    o->verify = value ? choice != 0 : true;
    break;
  case OPTION_GENERATE:
    o->generate = true;
    o->matrix = value;
    break;
  case OPTION_JSON: o->json = value; break;
  case OPTION_CSV: o->csv = value; break;
  case OPTION_DRY_RUN: o->dry_run = true; break;
  case 'q': o->quiet = true; break;
  case OPTION_TRANSPOSE:
  case OPTION_LAYOUT: PASS(option_read(option, value, &o->read)); break;
  case 'h': o->help = true; break;
  case OPTION_VERSION: o->version = true; break;
  default: PASS(parse_plan_option(option, value, &o->plan));
  }
  return ASPARSE_OK;
}

/* The one file a program works on. */
static asparse_status parse_operand(int argc, char **argv, const char **matrix) {
  if (optind >= argc) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "no matrix file given");
  if (optind + 1 < argc)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "one matrix file is enough; '%s' is a second one", argv[optind + 1]);
  *matrix = argv[optind];
  return ASPARSE_OK;
}

/* A is a file or a description. */
static asparse_status parse_matrix(int argc, char **argv, solve_options *o) {
  if (!o->generate) return parse_operand(argc, argv, &o->matrix);
  PASS(option_generated(argc - optind, argv + optind, &o->read));
  return asparse_generator_parse(o->matrix, o->seed, ASPARSE_FP64, &o->generator);
}

asparse_status solve_options_parse(int argc, char **argv, solve_options *o) {
  *o = (solve_options){
      .repeat = 5, .warmup = 1, .timeout = 600, .seed = 42, .verify = true, .plan = asparse_options_default()};
  o->plan.operands = ASPARSE_PLACEMENT_PLANNER;
  int option;
  opterr = 0;
  optind = 1;
  while ((option = getopt_long(argc, argv, ":o:qh", solve_table, NULL)) != -1) {
    if (option == '?' || option == ':') return option_unknown(argv, option);
    PASS(parse_solve_option(option, optarg, o));
    if (o->help || o->version) return ASPARSE_OK;
  }
  PASS(parse_matrix(argc, argv, o));
  PASS(check_unit(&o->plan));
  if (o->plan.exchange == ASPARSE_EXCHANGE_GRID && o->plan.grid_rows == 0)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--exchange grid goes with --grid PMxPN");
  if (o->plan.bf16_result && !o->plan.own_precision && o->plan.precision != ASPARSE_BF16)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--result bf16 needs --precision bf16");
  o->plan.keep_csr = o->verify;
  if (o->b && o->cols > 0) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--cols is for the random B; --b brings its own");
  return ASPARSE_OK;
}

/* ---- asparse_partition --------------------------------------------------------------------------- */

static const struct option partition_table[] = {{"parts", required_argument, NULL, OPTION_PARTS},
                                                {"output", required_argument, NULL, 'o'},
                                                OPTION_READ_TABLE,
                                                {"cols", required_argument, NULL, OPTION_COLS},
                                                {"threads", required_argument, NULL, OPTION_THREADS},
                                                {"format", required_argument, NULL, OPTION_FORMAT},
                                                {"unit", required_argument, NULL, OPTION_UNIT},
                                                {"precision", required_argument, NULL, OPTION_PRECISION},
                                                {"partition", required_argument, NULL, OPTION_PARTITION},
                                                {"quiet", no_argument, NULL, 'q'},
                                                {"help", no_argument, NULL, 'h'},
                                                {"version", no_argument, NULL, OPTION_VERSION},
                                                {NULL, 0, NULL, 0}};

static const char partition_help[] =
    "usage: asparse_partition --parts P -o matrix.pP.h5 [options] matrix.h5[::/object]\n"
    "\n"
    "Cuts the rows of a sparse matrix into P parts and saves them with their shards, ready for\n"
    "`mpirun -np P asparse_solve matrix.pP.h5`. Runs alone or under mpirun with any number of ranks.\n"
    "\n"
    "  --parts P              ranks that will multiply\n"
    "  -o, --output FILE      the partition file; whole or not at all\n"
    "  --transpose            take the transposed matrix (PETSc's files of MATLAB's kind)\n"
    "  --layout HOW           csr or csc: how a group of indptr, indices, data is compressed that does not say it\n"
    "  --partition METHOD     contiguous (default), metis\n"
    "  --format FORMAT        auto, csr, wcsr, bcsr\n"
    "  --unit H               window height or block size; default: chosen\n"
    "  --precision TYPE       fp64, fp32, bf16; default: the file's own type\n"
    "  --cols N               columns of B the choice is made for (default 128)\n"
    "  --threads T            threads of each rank\n"
    "  -q, --quiet            no report on standard output\n"
    "  -h, --help             this text\n"
    "  --version              version and how it was built\n"
    "\n"
    "Exit codes: 0 fine, 1 run-time failure, 2 usage, 65 bad data, 66 no input.\n";

void partition_options_help(void) {
  if (asparse_program_speaks()) fputs(partition_help, stdout);
}

static asparse_status parse_partition_option(int option, const char *value, partition_options *o) {
  int64_t number = 0;
  switch (option) {
  case OPTION_PARTS:
    PASS(option_integer("--parts", value, 1, MAX_PARTS, &number));
    o->parts = (int)number;
    break;
  case OPTION_COLS: PASS(option_integer("--cols", value, 1, MAX_COLS, &o->cols)); break;
  case OPTION_THREADS:
    PASS(option_integer("--threads", value, 1, MAX_THREADS, &number));
    o->threads = (int)number;
    break;
  case 'o': o->output = value; break;
  case 'q': o->quiet = true; break;
  case OPTION_TRANSPOSE:
  case OPTION_LAYOUT: PASS(option_read(option, value, &o->read)); break;
  case 'h': o->help = true; break;
  case OPTION_VERSION: o->version = true; break;
  default: PASS(parse_plan_option(option, value, &o->plan));
  }
  return ASPARSE_OK;
}

asparse_status partition_options_parse(int argc, char **argv, partition_options *o) {
  *o = (partition_options){.cols = 128, .plan = asparse_options_default()};
  int option;
  opterr = 0;
  optind = 1;
  while ((option = getopt_long(argc, argv, ":o:qh", partition_table, NULL)) != -1) {
    if (option == '?' || option == ':') return option_unknown(argv, option);
    PASS(parse_partition_option(option, optarg, o));
    if (o->help || o->version) return ASPARSE_OK;
  }
  PASS(parse_operand(argc, argv, &o->matrix));
  PASS(check_unit(&o->plan));
  if (o->parts == 0)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--parts P is needed: the number of ranks that will multiply");
  if (!o->output) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "-o FILE is needed: where to save the parts");
  return ASPARSE_OK;
}
