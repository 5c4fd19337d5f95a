/* The layout of partition files, shared by their writer and reader.
 *
 *   /                 attribute "asparse_partition": JSON header (format below)
 *   /row_starts, /col_starts                          int64 [parts + 1]
 *   /part_00000       attribute "asparse_part": JSON {m_local, k_local, n_halo, diag_shard_nnz,
 *                     offd_shard_nnz, checksum}
 *     diag/, offd/    row_ptr int64, col_idx int32, values
 *     diag_shard/, offd_shard/   WCSR: window_row_ptr, window_col_idx, row_mask, values;
 *                     BCSR: block_row_ptr, block_col_idx, entry_mask, blocks
 *     col_map_offd, row_map      int64
 * What a part lacks (NULL in asparse_part) has no dataset. Values have the header's dtype; bf16 is
 * stored as uint16. */
#ifndef ASPARSE_PART_FILE_H
#define ASPARSE_PART_FILE_H

#include "io/element.h"
#include "io/hdf5_base.h"
#include "io/io.h"

#define ASPARSE_PARTITION_ATTRIBUTE "asparse_partition"
#define ASPARSE_PART_ATTRIBUTE "asparse_part"

enum { ASPARSE_PART_ARRAYS = 16, ASPARSE_PART_PATH = 64, ASPARSE_PART_JSON = 1024 };

/* One array of a part. count = -1: the part does not have it. */
typedef struct asparse_part_array {
  const char *name; /* below the part's group */
  asparse_element element;
  int64_t count;
  void *data;
} asparse_part_array;

/* All arrays of a part, present or not, always the same number in the same order. Formats: of the shards. */
void asparse_part_arrays(const asparse_part *part, asparse_dtype dtype, asparse_format diag, asparse_format offd,
                         asparse_part_array arrays[ASPARSE_PART_ARRAYS]);

/* Over scalars and arrays. Threaded. */
uint64_t asparse_part_checksum(const asparse_part *part, const asparse_part_array arrays[ASPARSE_PART_ARRAYS]);

/* "/part_00003", or "/part_00003/<name>". */
void asparse_part_path(int part, const char *name, char path[ASPARSE_PART_PATH]);

int64_t asparse_part_shard_nnz(const asparse_shard *shard); /* 0 for none, and for one in CSR, which is not stored */

/* What the JSON of a part says. */
typedef struct asparse_part_scalars {
  int64_t m_local, k_local, n_halo, diag_shard_nnz, offd_shard_nnz;
  uint64_t checksum;
} asparse_part_scalars;

asparse_status asparse_part_json(const asparse_part_scalars *scalars, char text[ASPARSE_PART_JSON]);
asparse_status asparse_part_parse(const char *text, asparse_part_scalars *scalars);

/* header without its arrays, and their checksum. */
asparse_status asparse_part_header_json(const asparse_part_header *header, char text[ASPARSE_PART_JSON]);
asparse_status asparse_part_header_parse(const char *text, asparse_part_header *header, uint64_t *checksum);
uint64_t asparse_part_header_checksum(const asparse_part_header *header);

/* Everything that a multiplication relies on: pointers monotone, columns sorted and in range, masks
 * within the tile and adding up to nnz, halo columns not own ones. arrays: the extents as allocated,
 * whatever the pointers say. ERR_DATA. */
asparse_status asparse_part_check(const asparse_part_header *header, int part, const asparse_part *data,
                                  const asparse_part_array arrays[ASPARSE_PART_ARRAYS]);

#endif
