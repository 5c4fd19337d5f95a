#include "programs/info_options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/option_values.h"
#include "programs/program.h"

static const char help[] =
    "usage: asparse_info [options] matrix.h5[::/path] | --generate KIND[:NAME=VALUE,...]\n"
    "\n"
    "Says what a sparse matrix is like: its degrees, bandwidth and symmetry, how it fills windows and blocks, which\n"
    "format to multiply it in, and what ranks would exchange. Runs alone or under mpirun, with the same numbers.\n"
    "\n"
    "  --cols N          dense columns that advice and volumes are for (default 128)\n"
    "  --precision TYPE  fp64, fp32 or bf16 (default: the matrix's own)\n"
    "  --ranks LIST      what these numbers of ranks would exchange, in every way (default 2,4,8)\n"
    "  --partition HOW   contiguous (default) or metis: METIS beside contiguous, for square matrices\n"
    "  --device          predict times of H200 GPUs instead of this host\n"
    "  --link LINK       what joins a rank to the others of its node: shared, nvlink, infiniband, or\n"
    "                    BYTES_PER_S[,SECONDS] in one direction and for a message (default: shared memory, or NVLink\n"
    "                    between GPUs)\n"
    "  --network LINK    the same beyond a node (default: --link where given, else infiniband)\n"
    "  --node RANKS      ranks of a node (default: 8 GPUs, or as many as have cores for their threads)\n"
    "  --placement HOW   rows (default): B and C are row slices, and ways that multiply blocks of columns bring them\n"
    "                    there and back; planner: they already lie where they are multiplied\n"
    "  --spy FILE.png    a picture of where the entries are\n"
    "  --json FILE|-     everything as JSON; \"-\": to standard output, in place of the text\n"
    "  --transpose       take the transposed matrix (PETSc's files of MATLAB's kind)\n"
    "  --layout HOW      csr or csc: how a group of indptr, indices, data is compressed that does not say it\n"
    "  --generate SPEC   no file: the matrix that asparse_generate SPEC --seed S writes, made in place\n"
    "  --seed S          of a generated matrix (default 42)\n"
    "  --threads N       threads of each rank (default: a fair share of the cores)\n"
    "  -h, --help        this text\n"
    "  --version         the version\n"
    "\n"
    "Exit codes: 0 fine, 1 run-time failure, 2 usage, 65 bad data, 66 no input.\n";

void info_options_help(void) {
  if (asparse_program_speaks()) fputs(help, stdout);
}

static const option_choice placements[] = {{"rows", 0}, {"planner", 1}, {NULL, 0}};

/* "2,4,8" */
static asparse_status parse_ranks(const char *list, info_options *o) {
  char text[512];
  if (strlen(list) >= sizeof text)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--ranks: the list is longer than %zu characters", sizeof text - 1);
  strcpy(text, list);
  o->n_ranks = 0;
  for (char *rest = text, *item; (item = strsep(&rest, ","));) {
    int64_t ranks = 0;
    if (o->n_ranks == INFO_MOST_RANKS)
      return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--ranks takes at most %d numbers", INFO_MOST_RANKS);
    PASS(option_integer("--ranks", item, 1, INFO_MOST_PARTS, &ranks));
    o->ranks[o->n_ranks++] = (int)ranks;
  }
  return ASPARSE_OK;
}

/* "shared", or "2.5e10", or "2.5e10,1e-6" */
static asparse_status parse_link(const char *option, const char *text, asparse_link *link) {
  static const option_choice kinds[] = {{"shared", ASPARSE_LINK_SHARED_MEMORY},
                                        {"nvlink", ASPARSE_LINK_NVLINK},
                                        {"infiniband", ASPARSE_LINK_INFINIBAND},
                                        {NULL, 0}};
  char *end = NULL;
  for (const option_choice *kind = kinds; kind->name; kind++) {
    if (strcmp(text, kind->name) != 0) continue;
    *link = asparse_link_default((asparse_link_kind)kind->value);
    return ASPARSE_OK;
  }
  *link = (asparse_link){.bytes_per_second = strtod(text, &end)};
  bool right = end > text && isfinite(link->bytes_per_second) && link->bytes_per_second > 0;
  if (right && *end == ',') {
    const char *latency = end + 1;
    link->latency_seconds = strtod(latency, &end);
    right = end > latency && isfinite(link->latency_seconds) && link->latency_seconds >= 0;
  }
  if (right && *end == '\0') return ASPARSE_OK;
  return ASPARSE_FAIL(
      ASPARSE_ERR_USAGE,
      "%s takes shared, nvlink, infiniband, or bytes a second and, after a comma, seconds a message, not '%s'", option,
      text);
}

static asparse_status parse_value(int option, const char *text, info_options *o) {
  int choice = 0;
  int64_t number = 0;
  switch (option) {
  case 'c': return option_integer("--cols", text, 1, INT32_MAX, &o->cols);
  case 'p':
    PASS(option_choose("--precision", text, option_precisions, &choice));
    o->precision = (asparse_dtype)choice;
    o->own_precision = false;
    return ASPARSE_OK;
  case 's': return option_integer("--seed", text, 0, INT64_MAX, &o->seed);
  case 'P':
    PASS(option_choose("--partition", text, option_partitions, &choice));
    o->metis = choice == ASPARSE_PARTITION_METIS;
    return ASPARSE_OK;
  case 'l': return parse_link("--link", text, &o->link);
  case 'n': return parse_link("--network", text, &o->network);
  case 'N':
    PASS(option_integer("--node", text, 1, INFO_MOST_PARTS, &number));
    o->node_ranks = (int)number;
    return ASPARSE_OK;
  case 'L':
    PASS(option_choose("--placement", text, placements, &choice));
    o->row_operands = choice == 0;
    return ASPARSE_OK;
  default:
    PASS(option_integer("--threads", text, 1, 4096, &number));
    o->threads = (int)number;
    return ASPARSE_OK;
  }
}

/* A file or a description. */
static asparse_status parse_matrix(int argc, char **argv, info_options *o) {
  if (o->generate) {
    PASS(option_generated(argc - optind, argv + optind, &o->read));
    return asparse_generator_parse(o->matrix, (uint64_t)o->seed, ASPARSE_FP64, &o->generator);
  }
  if (optind == argc) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "no matrix given");
  if (argc - optind > 1)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "one matrix is enough; '%s' is too much", argv[optind + 1]);
  o->matrix = argv[optind];
  return ASPARSE_OK;
}

asparse_status info_options_parse(int argc, char **argv, info_options *o) {
  enum { RANKS = 256, SPY, JSON, VERSION, DEVICE, GENERATE };
  static const struct option table[] = {{"cols", required_argument, NULL, 'c'},
                                        {"precision", required_argument, NULL, 'p'},
                                        {"ranks", required_argument, NULL, RANKS},
                                        {"partition", required_argument, NULL, 'P'},
                                        {"spy", required_argument, NULL, SPY},
                                        {"json", required_argument, NULL, JSON},
                                        {"device", no_argument, NULL, DEVICE},
                                        {"link", required_argument, NULL, 'l'},
                                        {"network", required_argument, NULL, 'n'},
                                        {"node", required_argument, NULL, 'N'},
                                        {"placement", required_argument, NULL, 'L'},
                                        {"generate", required_argument, NULL, GENERATE},
                                        {"seed", required_argument, NULL, 's'},
                                        {"threads", required_argument, NULL, 't'},
                                        {"help", no_argument, NULL, 'h'},
                                        {"version", no_argument, NULL, VERSION},
                                        OPTION_READ_TABLE,
                                        {NULL, 0, NULL, 0}};
  int option;
  *o = (info_options){
      .cols = 128, .own_precision = true, .ranks = {2, 4, 8}, .n_ranks = 3, .row_operands = true, .seed = 42};
  opterr = 0;
  optind = 1;
  while ((option = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
    switch (option) {
    case RANKS: PASS(parse_ranks(optarg, o)); break;
    case SPY: o->spy = optarg; break;
    case JSON: o->json = optarg; break;
    case DEVICE: o->device = true; break;
    case GENERATE:
      o->generate = true;
      o->matrix = optarg;
      break;
    case OPTION_TRANSPOSE:
    case OPTION_LAYOUT: PASS(option_read(option, optarg, &o->read)); break;
    case 'h': o->help = true; return ASPARSE_OK;
    case VERSION: o->version = true; return ASPARSE_OK;
    case '?':
    case ':': return option_unknown(argv, option);
    default: PASS(parse_value(option, optarg, o));
    }
  }
  return parse_matrix(argc, argv, o);
}
