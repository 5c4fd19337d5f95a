#include "io/hdf5_base.h"

#include <stdio.h>

#include "io/hdf5_lzf.h"

enum { TEXT_LENGTH = 384 };

/* When a program is loaded. HDF5 ends itself at exit, and in MPI_Finalize where it began after MPI_Init;
 * there it closes again the files whose closing failed (disk full), and crashes. Begun here, it does
 * neither, and nothing is lost: every file is closed by who opened it. */
__attribute__((constructor)) static void begin_before_mpi(void) {
  H5dont_atexit();
  H5open();
}

void asparse_hdf5_begin(void) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  asparse_hdf5_lzf_register();
}

static herr_t take_innermost(unsigned depth, const H5E_error2_t *error, void *text) {
  if (depth == 0) snprintf(text, TEXT_LENGTH, "%s", error->desc ? error->desc : "");
  return 0;
}

asparse_status asparse_hdf5_fail(asparse_status code, const char *call, const char *source, int line) {
  char text[TEXT_LENGTH] = "no reason given";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, text);
  H5Eclear2(H5E_DEFAULT);
  for (char *c = text; *c; c++) {
    if (*c == '\n') *c = ' ';
  }
  return asparse_fail(code, source, line, "HDF5: %s (%.60s)", text, call);
}

hid_t asparse_element_hdf5(asparse_element element) {
  switch (element) {
  case ASPARSE_INT8: return H5T_NATIVE_INT8;
  case ASPARSE_INT16: return H5T_NATIVE_INT16;
  case ASPARSE_INT32: return H5T_NATIVE_INT32;
  case ASPARSE_INT64: return H5T_NATIVE_INT64;
  case ASPARSE_UINT8: return H5T_NATIVE_UINT8;
  case ASPARSE_UINT16: return H5T_NATIVE_UINT16;
  case ASPARSE_UINT32: return H5T_NATIVE_UINT32;
  case ASPARSE_UINT64: return H5T_NATIVE_UINT64;
  case ASPARSE_FLOAT32: return H5T_NATIVE_FLOAT;
  case ASPARSE_FLOAT64: return H5T_NATIVE_DOUBLE;
  }
  return -1;
}
