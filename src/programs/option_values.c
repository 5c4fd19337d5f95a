#include "programs/option_values.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const option_choice option_formats[] = {{"auto", ASPARSE_FORMAT_AUTO},
                                        {"csr", ASPARSE_FORMAT_CSR},
                                        {"wcsr", ASPARSE_FORMAT_WCSR},
                                        {"bcsr", ASPARSE_FORMAT_BCSR},
                                        {NULL, 0}};
const option_choice option_precisions[] = {
    {"fp64", ASPARSE_FP64}, {"fp32", ASPARSE_FP32}, {"bf16", ASPARSE_BF16}, {NULL, 0}};
const option_choice option_partitions[] = {
    {"contiguous", ASPARSE_PARTITION_CONTIGUOUS}, {"metis", ASPARSE_PARTITION_METIS}, {NULL, 0}};
const option_choice option_exchanges[] = {{"auto", ASPARSE_EXCHANGE_AUTO},
                                          {"replicate", ASPARSE_EXCHANGE_REPLICATE},
                                          {"rows", ASPARSE_EXCHANGE_ROWS},
                                          {"cover", ASPARSE_EXCHANGE_COVER},
                                          {"columns", ASPARSE_EXCHANGE_COLUMNS},
                                          {"grid", ASPARSE_EXCHANGE_GRID},
                                          {NULL, 0}};
const option_choice option_placements[] = {
    {"planner", ASPARSE_PLACEMENT_PLANNER}, {"rows", ASPARSE_PLACEMENT_ROWS}, {NULL, 0}};
const option_choice option_backends[] = {
    {"auto", ASPARSE_BACKEND_AUTO}, {"host", ASPARSE_BACKEND_HOST}, {"cuda", ASPARSE_BACKEND_CUDA}, {NULL, 0}};
const option_choice option_comms[] = {
    {"auto", ASPARSE_COMM_AUTO}, {"nccl", ASPARSE_COMM_NCCL}, {"mpi", ASPARSE_COMM_MPI}, {NULL, 0}};
const option_choice option_results[] = {{"fp32", ASPARSE_FP32}, {"bf16", ASPARSE_BF16}, {NULL, 0}};
const option_choice option_origins[] = {{"ranks", 0}, {"root", 1}, {NULL, 0}};
const option_choice option_switch[] = {{"on", 1}, {"off", 0}, {"yes", 1}, {"no", 0}, {NULL, 0}};

asparse_status option_integer(const char *option, const char *text, int64_t low, int64_t high, int64_t *value) {
  char *end = NULL;
  errno = 0;
  long long number = strtoll(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || number < low || number > high)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s takes a whole number from %lld to %lld, not '%s'", option,
                        (long long)low, (long long)high, text);
  *value = number;
  return ASPARSE_OK;
}

asparse_status option_choose(const char *option, const char *text, const option_choice *choices, int *value) {
  char names[128] = "";
  for (const option_choice *c = choices; c->name; c++) {
    if (strcmp(text, c->name) == 0) {
      *value = c->value;
      return ASPARSE_OK;
    }
    size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", c->name);
  }
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s takes one of %s, not '%s'", option, names, text);
}

asparse_status option_grid(const char *option, const char *text, int32_t *rows, int32_t *columns) {
  char *end = NULL;
  const long pm = strtol(text, &end, 10), pn = *end == 'x' ? strtol(end + 1, &end, 10) : 0;
  if (*end != '\0' || pm < 1 || pn < 1 || pm > INT32_MAX || pn > INT32_MAX)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s takes rows x columns of ranks, as in 2x4, not '%s'", option, text);
  *rows = (int32_t)pm;
  *columns = (int32_t)pn;
  return ASPARSE_OK;
}

const char *option_name(const option_choice *choices, int value) {
  while (choices->name && choices->value != value) choices++;
  return choices->name;
}

asparse_status option_read(int option, const char *text, asparse_read_options *options) {
  static const option_choice layouts[] = {
      {"csr", ASPARSE_COMPRESSION_CSR}, {"csc", ASPARSE_COMPRESSION_CSC}, {NULL, 0}};
  int choice = 0;
  if (option == OPTION_TRANSPOSE) {
    options->transpose = true;
    return ASPARSE_OK;
  }
  PASS(option_choose("--layout", text, layouts, &choice));
  options->compression = (asparse_compression)choice;
  return ASPARSE_OK;
}

asparse_status option_generated(int n_files, char **files, const asparse_read_options *options) {
  if (n_files > 0)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--generate makes the matrix; the file '%s' is too much", files[0]);
  if (options->transpose || options->compression != ASPARSE_COMPRESSION_UNSAID)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "--transpose and --layout are for files, not for --generate");
  return ASPARSE_OK;
}

asparse_status option_unknown(char **argv, int result) {
  const char *text = argv[optind - 1];
  char letter[3] = {'-', (char)optopt, '\0'};
  bool is_long = strncmp(text, "--", 2) == 0 || optopt <= ' ' || optopt > '~';
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, result == ':' ? "option '%s' needs a value" : "unknown option '%s'",
                      is_long ? text : letter);
}
