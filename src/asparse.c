#include "asparse.h"

#include "asparse_config.h"

const char *asparse_version(void) { return ASPARSE_VERSION; }
