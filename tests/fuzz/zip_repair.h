/* Checksums of zip archives, which would keep all but the untouched ones from the checks behind them. */
#ifndef ASPARSE_FUZZ_ZIP_REPAIR_H
#define ASPARSE_FUZZ_ZIP_REPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the checksums in the central directory those of the members, up to 64 KiB of each. */
void fuzz_repair_zip(uint8_t *data, size_t size);

#endif
