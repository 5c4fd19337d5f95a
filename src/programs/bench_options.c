#include "programs/bench_options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/option_values.h"
#include "programs/program.h"

static const char help[] =
    "usage: asparse_bench [options] [--generate SPEC…] [FILE|FOLDER…]\n"
    "\n"
    "Times the kernels side by side on every matrix (a folder: its *.h5 files), on a GPU beside cuSPARSE and cuBLAS.\n"
    "Each result is checked element by element against fp64 before it is timed; kernels take turns.\n"
    "\n"
    "  --generate SPEC   a generated matrix, such as rmat:scale=16,edges=16 (see asparse_generate --list); repeatable\n"
    "  --cols LIST       dense columns (default 256,1024)\n"
    "  --backend KIND    auto (default: a GPU where there is one), cuda or host\n"
    "  --precision TYPE  bf16, fp32 or fp64 (default: bf16 on a GPU, the file's own on the host)\n"
    "  --result TYPE     C in fp32, or in bf16 where A and B are (default: fp32, with fp64 fp64)\n"
    "  --kernel LIST     of our kernels only these, name or name:unit (default: those the cost model may pick)\n"
    "  --all             all our kernels, also those that run by name only\n"
    "  --no-peers        without cuSPARSE and cuBLAS\n"
    "  --repeat N        samples of each kernel (default 21; fewer of slow ones)\n"
    "  --seconds S       of timing for each matrix and number of columns (default 0.06; at least 3 samples)\n"
    "  --flush-l2        every sample with a cold L2 cache (default: warm)\n"
    "  --no-graph        plain launches instead of captured graphs of several\n"
    "  --min-nnz N       skip matrices with fewer entries\n"
    "  --max-bytes N     skip layouts of A with more bytes of stored elements (default 4294967296)\n"
    "  --seed N          of the random B, and of generated matrices (default 42)\n"
    "  --csv FILE        a line for each matrix, number of columns and kernel, written along the way\n"
    "  --json FILE|-     everything as JSON; \"-\": to standard output, in place of the text\n"
    "  --plot FILE.svg   speed-up by density\n"
    "  --threads N       threads that build shards, and multiply on the host (default: all cores)\n"
    "  -h, --help        this text\n"
    "  --version         the version\n"
    "\n"
    "Exit codes: 0 fine, 1 run-time failure, 2 usage, 3 a result of one of our kernels was wrong, 65 bad data (the other\n"
    "matrices are timed all the same), 66 no input, 85 ended early on SIGUSR1: after the matrix at hand, with all\n"
    "outputs.\n";

void bench_options_help(void) {
  if (asparse_program_speaks()) fputs(help, stdout);
}

static int compare_descending(const void *left, const void *right) {
  const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return a < b ? 1 : a > b ? -1 : 0;
}

/* "256,1024" */
static asparse_status parse_cols(const char *list, bench_options *o) {
  char text[256];
  if (strlen(list) >= sizeof text)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--cols: the list is longer than %zu characters", sizeof text - 1);
  strcpy(text, list);
  o->n_cols = 0;
  for (char *rest = text, *item; (item = strsep(&rest, ","));) {
    if (o->n_cols == BENCH_MOST_COLS)
      return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--cols takes at most %d numbers", BENCH_MOST_COLS);
    PASS(option_integer("--cols", item, 1, 1 << 20, &o->cols[o->n_cols++]));
  }
  qsort(o->cols, (size_t)o->n_cols, sizeof *o->cols, compare_descending);
  return ASPARSE_OK;
}

static asparse_status parse_seconds(const char *text, double *seconds) {
  char *end = NULL;
  *seconds = strtod(text, &end);
  if (end == text || *end != '\0' || !(*seconds > 0) || *seconds > 3600)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--seconds takes a number above 0, at most 3600, not '%s'", text);
  return ASPARSE_OK;
}

static asparse_status parse_result(const char *text, bench_options *o) {
  static const option_choice results[] = {{"fp32", ASPARSE_FP32}, {"bf16", ASPARSE_BF16}, {NULL, 0}};
  int choice = 0;
  PASS(option_choose("--result", text, results, &choice));
  o->bf16_result = choice == ASPARSE_BF16;
  return ASPARSE_OK;
}

enum {
  RESULT = 256,
  GENERATE,
  ALL,
  NO_PEERS,
  SECONDS,
  FLUSH,
  NO_GRAPH,
  MIN_NNZ,
  MAX_BYTES,
  SEED,
  CSV,
  JSON,
  PLOT,
  VERSION
};

static asparse_status parse_value(int option, const char *text, bench_options *o) {
  int choice = 0;
  int64_t number = 0;
  switch (option) {
  case 'c': return parse_cols(text, o);
  case 'b':
    PASS(option_choose("--backend", text, option_backends, &choice));
    o->backend = (asparse_backend_kind)choice;
    return ASPARSE_OK;
  case 'p':
    PASS(option_choose("--precision", text, option_precisions, &choice));
    o->precision = (asparse_dtype)choice;
    o->own_precision = false;
    return ASPARSE_OK;
  case RESULT: return parse_result(text, o);
  case GENERATE:
    if (o->n_generate == BENCH_MOST_GENERATED)
      return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--generate can be given %d times", BENCH_MOST_GENERATED);
    o->generate[o->n_generate++] = text;
    return ASPARSE_OK;
  case 'r': return option_integer("--repeat", text, 1, 10000, &o->repeat);
  case SECONDS: return parse_seconds(text, &o->case_seconds);
  case MIN_NNZ: return option_integer("--min-nnz", text, 0, INT64_MAX, &o->min_nnz);
  case MAX_BYTES: return option_integer("--max-bytes", text, 1, INT64_MAX, &o->max_bytes);
  case SEED: return option_integer("--seed", text, 0, INT64_MAX, &o->seed);
  default:
    PASS(option_integer("--threads", text, 1, 4096, &number));
    o->threads = (int)number;
    return ASPARSE_OK;
  }
}

/* True when the option was a switch or a name, taken as it is. */
static bool take(int option, bench_options *o) {
  switch (option) {
  case 'k': o->kernels = optarg; return true;
  case ALL: o->all = true; return true;
  case NO_PEERS: o->no_peers = true; return true;
  case FLUSH: o->flush_l2 = true; return true;
  case NO_GRAPH: o->no_graph = true; return true;
  case CSV: o->csv = optarg; return true;
  case JSON: o->json = optarg; return true;
  case PLOT: o->plot = optarg; return true;
  case 'h': o->help = true; return true;
  case VERSION: o->version = true; return true;
  default: return false;
  }
}

static asparse_status check(const bench_options *o) {
  if (o->n_paths + o->n_generate == 0) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "no matrix given");
  if (o->bf16_result && !o->own_precision && o->precision != ASPARSE_BF16)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--result bf16 needs --precision bf16");
  if (o->all && o->kernels) return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--all and --kernel exclude each other");
  return ASPARSE_OK;
}

asparse_status bench_options_parse(int argc, char **argv, bench_options *o) {
  static const struct option table[] = {{"cols", required_argument, NULL, 'c'},
                                        {"backend", required_argument, NULL, 'b'},
                                        {"precision", required_argument, NULL, 'p'},
                                        {"result", required_argument, NULL, RESULT},
                                        {"kernel", required_argument, NULL, 'k'},
                                        {"all", no_argument, NULL, ALL},
                                        {"no-peers", no_argument, NULL, NO_PEERS},
                                        {"repeat", required_argument, NULL, 'r'},
                                        {"seconds", required_argument, NULL, SECONDS},
                                        {"flush-l2", no_argument, NULL, FLUSH},
                                        {"no-graph", no_argument, NULL, NO_GRAPH},
                                        {"min-nnz", required_argument, NULL, MIN_NNZ},
                                        {"max-bytes", required_argument, NULL, MAX_BYTES},
                                        {"seed", required_argument, NULL, SEED},
                                        {"csv", required_argument, NULL, CSV},
                                        {"json", required_argument, NULL, JSON},
                                        {"plot", required_argument, NULL, PLOT},
                                        {"threads", required_argument, NULL, 't'},
                                        {"generate", required_argument, NULL, GENERATE},
                                        {"help", no_argument, NULL, 'h'},
                                        {"version", no_argument, NULL, VERSION},
                                        {NULL, 0, NULL, 0}};
  int option;
  *o = (bench_options){.cols = {1024, 256},
                       .n_cols = 2,
                       .own_precision = true,
                       .repeat = 21,
                       .case_seconds = 0.06,
                       .max_bytes = INT64_C(4) << 30,
                       .seed = 42};
  opterr = 0;
  optind = 1;
  while ((option = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
    if (option == '?' || option == ':') return option_unknown(argv, option);
    if (!take(option, o)) PASS(parse_value(option, optarg, o));
    if (o->help || o->version) return ASPARSE_OK;
  }
  o->paths = argv + optind;
  o->n_paths = argc - optind;
  return check(o);
}
