/* HDF5 files described by text, one object or attribute a line, words separated by blanks:
 *
 *   group PATH
 *   array PATH TYPE EXTENTS [OPTION…] [= VALUE…]         a dataset; values from its beginning on
 *   attribute PATH NAME TYPE EXTENTS [= VALUE…]          of the object at PATH
 *   text PATH NAME the rest of the line                  attribute of variable length; `fixed`: of fixed length
 *   soft PATH TARGET    hard PATH TARGET    external PATH FILE TARGET     links
 *
 * TYPE: i, u or f and its bytes ("i4", "f2"; ">f8" is big-endian, "i4:20" has 20 significant bits), b (truth values),
 * s (text), c (compound), v (of variable length), r (reference). EXTENTS: "3", "2x3", "-" (one without extents).
 * OPTION: chunk=3 or chunk=2x3, gzip, shuffle, fletcher, lzf=24 (bytes of a chunk), nbit, scale=2, compact, external,
 * virtual; raw=01ff: bytes of the first chunk, packed. Lines that HDF5 does not take are passed over: whatever the
 * text, the file is one that HDF5 has written. */
#ifndef ASPARSE_FUZZ_CONTAINER_H
#define ASPARSE_FUZZ_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

/* Writes the file at path anew. */
void fuzz_container_write(const char *path, const uint8_t *text, size_t size);

#endif
