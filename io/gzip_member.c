#include "io/gzip_member.h"

#include <string.h>
#include <zlib.h>

enum { GZIP_WRAPPER = 16, MEMORY_LEVEL = 8 /* zlib's own default */ };

asparse_status asparse_gzip_member(const char *bytes, int64_t length, char **member, int64_t *member_length) {
  asparse_status status = ASPARSE_OK;
  char *room = NULL;
  z_stream z = {0};
  TRY_THAT(deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP_WRAPPER, MEMORY_LEVEL,
                        Z_DEFAULT_STRATEGY) == Z_OK,
           ASPARSE_ERR_MEMORY, "cannot allocate a compressor");
  ALLOC(room, (int64_t)deflateBound(&z, (uLong)length));
  z.next_in = (Bytef *)bytes;
  z.avail_in = (uInt)length;
  z.next_out = (Bytef *)room;
  z.avail_out = (uInt)deflateBound(&z, (uLong)length);
  TRY_THAT(deflate(&z, Z_FINISH) == Z_STREAM_END, ASPARSE_ERR_RUNTIME, "zlib does not compress: %s",
           z.msg ? z.msg : "no reason given");
  *member_length = (int64_t)z.total_out;
  ALLOC(*member, *member_length);
  memcpy(*member, room, (size_t)*member_length);
cleanup:
  deflateEnd(&z);
  asparse_free(room);
  return status;
}
