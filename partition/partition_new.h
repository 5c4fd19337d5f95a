/* What the partitioners share. Local. */
#ifndef ASPARSE_PARTITION_NEW_H
#define ASPARSE_PARTITION_NEW_H

#include "partition/partition.h"

/* An empty partition: row_starts and col_starts zeroed, new_row NULL. ERR_USAGE unless parts ≥ 1. */
asparse_status asparse_partition_new(asparse_partition **partition, asparse_partition_method method, int64_t m,
                                     int64_t k, int parts);

/* col_starts from row_starts: equal for a square matrix, else even cuts of k. */
void asparse_partition_col_starts(asparse_partition *partition);

#endif
