#include "programs/json_record.h"

#include <stdio.h>
#include <string.h>

#include "io/output.h"

/* name: "-" or the temporary file. */
static asparse_status write_record(const json_t *record, const char *name, const char *path) {
  bool to_stdout = strcmp(name, "-") == 0;
  FILE *file = !record ? NULL : to_stdout ? stdout : fopen(name, "w");
  bool written = file && json_dumpf(record, file, JSON_INDENT(2)) == 0 && fputc('\n', file) != EOF;
  if (file && (to_stdout ? fflush(file) : fclose(file)) != 0) written = false;
  return written ? ASPARSE_OK : ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot write the JSON record to %s", path);
}

asparse_status json_record_write(asparse_comm *comm, const char *path, json_t *record) {
  asparse_status status = ASPARSE_OK;
  asparse_output output = {.temporary = ""};
  bool to_stdout = strcmp(path, "-") == 0;
  if (!to_stdout) TRY(asparse_output_begin(comm, path, &output));
  if (comm->rank == 0) status = write_record(record, to_stdout ? "-" : output.temporary, path);
  status = to_stdout ? asparse_comm_agree(comm, status) : asparse_output_end(comm, &output, status);
cleanup:
  json_decref(record);
  return status;
}
