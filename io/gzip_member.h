/* A whole member of a gzip file (RFC 1952); members one after the other are a file. Local. */
#ifndef ASPARSE_GZIP_MEMBER_H
#define ASPARSE_GZIP_MEMBER_H

#include "base/memory.h"

/* bytes[length] compressed into *member[*member_length], which the caller frees. ERR_MEMORY. length < 2^31. */
asparse_status asparse_gzip_member(const char *bytes, int64_t length, char **member, int64_t *member_length);

#endif
