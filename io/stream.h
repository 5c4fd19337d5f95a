/* A file as a stream of bytes, decompressed when its content says so. Local. */
#ifndef ASPARSE_STREAM_H
#define ASPARSE_STREAM_H

#include "base/status.h"

typedef struct asparse_stream asparse_stream;

/* Opens path ("-": standard input). ERR_NO_INPUT: cannot be opened, or is a folder; ERR_DATA: empty, or
 * compressed in a way that this build does not know. */
asparse_status asparse_stream_open(const char *path, asparse_stream **stream);
void asparse_stream_close(asparse_stream **stream);

/* The next bytes; fewer than capacity only at the end. ERR_DATA: damaged or cut off; ERR_IO: reading failed. */
asparse_status asparse_stream_read(asparse_stream *stream, void *to, int64_t capacity, int64_t *got);

/* The descriptor of a file that may be read at any place just as it is: regular, not compressed; otherwise -1. */
int asparse_stream_file(const asparse_stream *stream);

#endif
