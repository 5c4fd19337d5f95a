/* Reading the values of command-line options. Local; errors name the option and what it takes. */
#ifndef ASPARSE_OPTION_VALUES_H
#define ASPARSE_OPTION_VALUES_H

#include "base/status.h"

typedef struct option_choice {
  const char *name;
  int value;
} option_choice;

asparse_status option_integer(const char *option, const char *text, int64_t low, int64_t high, int64_t *value);
/* choices end with a NULL name. */
asparse_status option_choose(const char *option, const char *text, const option_choice *choices, int *value);

/* "2x4". */
asparse_status option_grid(const char *option, const char *text, int32_t *rows, int32_t *columns);

/* The name of a value; NULL where there is none. */
const char *option_name(const option_choice *choices, int value);

/* The choices that more than one program offers. */
extern const option_choice option_formats[], option_precisions[], option_partitions[], option_exchanges[],
    option_placements[], option_backends[], option_comms[], option_results[], option_origins[], option_switch[];

/* What programs that read a matrix take: rows of their getopt_long table, lines of their help, and its parsing. */
enum { OPTION_TRANSPOSE = 1024, OPTION_LAYOUT };
#define OPTION_READ_TABLE                                                                                              \
  {"transpose", no_argument, NULL, OPTION_TRANSPOSE}, { "layout", required_argument, NULL, OPTION_LAYOUT }
asparse_status option_read(int option, const char *text, asparse_read_options *options);

/* ERR_USAGE for what does not go with --generate: files beside the options, and what the user says of them. */
asparse_status option_generated(int n_files, char **files, const asparse_read_options *options);

/* The message for what getopt_long answered with '?' (unknown) or ':' (value missing). */
asparse_status option_unknown(char **argv, int result);

#endif
