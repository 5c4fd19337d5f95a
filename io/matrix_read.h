/* Reading the entries of a matrix that has been found and opened, by arrangement. All collective: every rank reads a
 * share, and gets a slab of rows with near-equal rows + entries; rows are not sorted yet, duplicates kept, and the
 * structure is as stored. Sets the layout's source.stored_entries, and an extent that was unknown. */
#ifndef ASPARSE_MATRIX_READ_H
#define ASPARSE_MATRIX_READ_H

#include "io/layout.h"

/* Compressed rows are read where they are needed. Of compressed columns, each rank reads a slab, whose
 * entries go to the owners of their rows; so do those of rows that are listed (DCSR). Verifies checksums. */
asparse_status asparse_compressed_read(asparse_comm *comm, asparse_layout *layout, asparse_csr **a);

/* Coordinates: each rank reads equally many entries, which go to the owners of their rows. */
asparse_status asparse_coordinates_read(asparse_comm *comm, asparse_layout *layout, asparse_csr **a);

/* A dense matrix: each rank reads equally many lines, and the elements other than 0 go to the owners of their rows. */
asparse_status asparse_elements_read(asparse_comm *comm, asparse_layout *layout, asparse_csr **a);

/* Local. ERR_DATA unless indices[0 … count-1] (elements first … of the dataset) are in 0 … extent-1; what: "rows". */
asparse_status asparse_check_indices(const asparse_dataset *dataset, int64_t first, int64_t count,
                                     const int64_t *indices, int64_t extent, const char *what);

#endif
