/* Members of a zip archive, stored or deflated, zip64 included (PKWARE APPNOTE 6.3). Local. */
#ifndef ASPARSE_ZIP_H
#define ASPARSE_ZIP_H

#include <zlib.h>

#include "io/input.h"

typedef struct asparse_zip_member {
  char *name;            /* in asparse_zip.directory */
  int64_t header_offset; /* of its local header */
  int64_t packed, bytes; /* in the archive; unpacked */
  uint32_t crc;
  bool deflated;
} asparse_zip_member;

typedef struct asparse_zip {
  const asparse_input *input; /* borrowed */
  int64_t n_members;
  asparse_zip_member *members; /* [n_members] */
  char *directory, *names;
} asparse_zip;

/* input->file must be there. ERR_DATA: no archive, cut off, encrypted or of another method. zip is valid for close in
 * any case. */
asparse_status asparse_zip_open(const asparse_input *input, asparse_zip *zip);
void asparse_zip_close(asparse_zip *zip);
const asparse_zip_member *asparse_zip_find(const asparse_zip *zip, const char *name); /* NULL: none */

/* A member, read from its beginning to its end. */
typedef struct asparse_zip_reader {
  const asparse_input *input;
  const asparse_zip_member *member;
  int64_t offset, packed_left, left; /* next packed byte in the file; packed and unpacked bytes still to come */
  z_stream stream;
  bool streaming;
  bool skipped; /* parts were passed over, so that there is no checksum */
  uint32_t crc;
  unsigned char *buffer;
} asparse_zip_reader;

/* reader is valid for end in any case. */
asparse_status asparse_zip_begin(const asparse_zip *zip, const asparse_zip_member *member, asparse_zip_reader *reader);
/* Exactly the next bytes, by all threads where they are stored as they are; at the member's end its checksum is
 * compared. ERR_DATA names member and byte. */
asparse_status asparse_zip_read(asparse_zip_reader *reader, void *to, int64_t bytes);
asparse_status asparse_zip_skip(asparse_zip_reader *reader, int64_t bytes);
void asparse_zip_end(asparse_zip_reader *reader);

#endif
