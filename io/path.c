#include <string.h>

#include "io/io.h"

asparse_status asparse_path_split(const char *path, char **file, char **object) {
  asparse_status status = ASPARSE_OK;
  char *file_part = NULL, *object_part = NULL;
  const char *mark = strstr(path, "::");
  size_t file_length = mark ? (size_t)(mark - path) : strlen(path);
  const char *rest = mark ? mark + 2 : "";
  TRY_THAT(file_length > 0, ASPARSE_ERR_USAGE, "\"%s\" names no file; expected file.h5 or file.h5::/object", path);
  ALLOC(file_part, (int64_t)file_length + 1);
  ALLOC(object_part, (int64_t)strlen(rest) + 1);
  memcpy(file_part, path, file_length);
  file_part[file_length] = '\0';
  strcpy(object_part, rest);
  *file = file_part;
  *object = object_part;
  return ASPARSE_OK;
cleanup:
  asparse_free(file_part);
  asparse_free(object_part);
  return status;
}
