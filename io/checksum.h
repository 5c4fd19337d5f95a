/* Content checksums, kept as attribute "asparse_checksum" of what they cover.
 *
 * The checksum of arrays that are held in slabs is the sum over all elements of a hash of (array,
 * position, content), modulo 2^64: slabs are added in any order, and any number of ranks gives the same. */
#ifndef ASPARSE_CHECKSUM_H
#define ASPARSE_CHECKSUM_H

#include "base/comm.h"
#include "base/dtype.h"
#include "io/hdf5_base.h"

#define ASPARSE_CHECKSUM_ATTRIBUTE "asparse_checksum"

/* The arrays of a matrix file that checksums tell apart. */
enum { ASPARSE_SUM_SHAPE = 1, ASPARSE_SUM_POINTERS, ASPARSE_SUM_INDICES, ASPARSE_SUM_VALUES };

/* Local, threaded. Elements first … first+count-1 of an array: from[i] + offset, or from[from_first + i];
 * values count as fp64, so that the stored width does not matter. */
uint64_t asparse_checksum_int64(int array, int64_t first, const int64_t *from, int64_t offset, int64_t count);
uint64_t asparse_checksum_values(int array, int64_t first, asparse_dtype dtype, const void *from, int64_t from_first,
                                 int64_t count);
uint64_t asparse_checksum_bytes(int array, const void *from, int64_t bytes);

/* Collective. The sum over all ranks, in place. */
asparse_status asparse_checksum_sum(asparse_comm *comm, uint64_t *checksum);

enum { ASPARSE_CHECKSUM_LENGTH = 17 };
void asparse_checksum_text(uint64_t checksum, char text[ASPARSE_CHECKSUM_LENGTH]);

/* Local. The attribute of a group, if there is one; ERR_DATA when it is no checksum. */
asparse_status asparse_checksum_read(hid_t group, bool *found, uint64_t *checksum);

/* Local. ERR_DATA when they differ: what was read is not what was written. */
asparse_status asparse_checksum_compare(const char *label, uint64_t found, uint64_t expected);

#endif
