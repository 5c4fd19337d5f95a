#include "programs/info_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "programs/option_values.h"
#include "programs/program.h"

static const char help[] =
    "usage: asparse_info [options] matrix.h5[::/path]\n"
    "\n"
    "Says what a sparse matrix is like: its degrees, bandwidth and symmetry, how it fills windows and blocks, which\n"
    "format to multiply it in, and what ranks would exchange. Runs alone or under mpirun, with the same numbers.\n"
    "\n"
    "  --cols N          dense columns that advice and volumes are for (default 128)\n"
    "  --precision TYPE  fp64, fp32 or bf16 (default: the matrix's own)\n"
    "  --ranks LIST      exchange volumes for these numbers of ranks (default 2,4,8)\n"
    "  --partition HOW   contiguous (default) or metis: METIS beside contiguous, for square matrices\n"
    "  --spy FILE.png    a picture of where the entries are\n"
    "  --json FILE|-     everything as JSON; \"-\": to standard output, in place of the text\n"
    "  --threads N       threads of each rank (default: a fair share of the cores)\n"
    "  -h, --help        this text\n"
    "  --version         the version\n"
    "\n"
    "Exit codes: 0 fine, 1 run-time failure, 2 usage, 65 bad data, 66 no input.\n";

void info_options_help(void) {
  if (asparse_program_speaks()) fputs(help, stdout);
}

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
    PASS(option_integer("--ranks", item, 1, 1000000, &ranks));
    o->ranks[o->n_ranks++] = (int)ranks;
  }
  return ASPARSE_OK;
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
  case 'P':
    PASS(option_choose("--partition", text, option_partitions, &choice));
    o->metis = choice == ASPARSE_PARTITION_METIS;
    return ASPARSE_OK;
  default:
    PASS(option_integer("--threads", text, 1, 4096, &number));
    o->threads = (int)number;
    return ASPARSE_OK;
  }
}

asparse_status info_options_parse(int argc, char **argv, info_options *o) {
  enum { RANKS = 256, SPY, JSON, VERSION };
  static const struct option table[] = {
      {"cols", required_argument, NULL, 'c'},    {"precision", required_argument, NULL, 'p'},
      {"ranks", required_argument, NULL, RANKS}, {"partition", required_argument, NULL, 'P'},
      {"spy", required_argument, NULL, SPY},     {"json", required_argument, NULL, JSON},
      {"threads", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'},
      {"version", no_argument, NULL, VERSION},   {NULL, 0, NULL, 0}};
  int option;
  *o = (info_options){.cols = 128, .own_precision = true, .ranks = {2, 4, 8}, .n_ranks = 3};
  opterr = 0;
  optind = 1;
  while ((option = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
    switch (option) {
    case RANKS: PASS(parse_ranks(optarg, o)); break;
    case SPY: o->spy = optarg; break;
    case JSON: o->json = optarg; break;
    case 'h': o->help = true; return ASPARSE_OK;
    case VERSION: o->version = true; return ASPARSE_OK;
    case '?':
    case ':': return option_unknown(argv, option);
    default: PASS(parse_value(option, optarg, o));
    }
  }
  if (optind == argc) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "no matrix given");
  if (argc - optind > 1)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "one matrix is enough; '%s' is too much", argv[optind + 1]);
  o->matrix = argv[optind];
  return ASPARSE_OK;
}
