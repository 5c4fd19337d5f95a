#include "fuzz/zip_repair.h"

#include <string.h>
#include <zlib.h>

enum { CENTRAL_BYTES = 46, LOCAL_BYTES = 30, BUFFER_BYTES = 64 << 10 };

static uint32_t load(const uint8_t *p, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; i++) value |= (uint32_t)p[i] << 8 * i;
  return value;
}

static uint32_t checksum_deflated(const uint8_t *packed, size_t size) {
  uint8_t buffer[BUFFER_BYTES];
  z_stream z = {
      .next_in = (uint8_t *)packed, .avail_in = (unsigned)size, .next_out = buffer, .avail_out = sizeof buffer};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return 0;
  inflate(&z, Z_FINISH);
  inflateEnd(&z);
  return (uint32_t)crc32(0, buffer, (unsigned)(sizeof buffer - z.avail_out));
}

/* The entry of the central directory at p: of what its member holds. */
static void repair_entry(uint8_t *data, size_t size, uint8_t *p) {
  const size_t header = load(p + 42, 4), packed = load(p + 20, 4);
  if (header > size || size - header < LOCAL_BYTES) return;
  const size_t begin = header + LOCAL_BYTES + load(data + header + 26, 2) + load(data + header + 28, 2);
  if (begin > size || packed > size - begin) return;
  const bool deflated = load(p + 10, 2) != 0;
  const uint32_t crc =
      deflated ? checksum_deflated(data + begin, packed) : (uint32_t)crc32(0, data + begin, (unsigned)packed);
  for (int i = 0; i < 4; i++) p[16 + i] = (uint8_t)(crc >> 8 * i);
}

void fuzz_repair_zip(uint8_t *data, size_t size) {
  for (size_t i = 0; size >= CENTRAL_BYTES && i <= size - CENTRAL_BYTES; i++) {
    if (memcmp(data + i, "PK\1\2", 4) == 0) repair_entry(data, size, data + i);
  }
}
