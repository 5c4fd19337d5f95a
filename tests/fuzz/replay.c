/* Runs a fuzz target on the files named on the command line, where there is no libFuzzer. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/harness.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of just its size, so that a sanitizer sees what goes beyond. */
static uint8_t *load(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) != 0) return NULL;
  *size = (size_t)ftell(file);
  rewind(file);
  uint8_t *bytes = malloc(*size + !*size);
  if (bytes && fread(bytes, 1, *size, file) != *size) *size = 0;
  fclose(file);
  return bytes;
}

int main(int argc, char **argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  for (int i = 1; i < argc; i++) {
    size_t size = 0;
    uint8_t *bytes = load(argv[i], &size);
    fprintf(stderr, "%s\n", argv[i]);
    if (!bytes) return EXIT_FAILURE;
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
  }
  printf("%d files, %lld reads of them gave a matrix\n", argc - 1, (long long)fuzz_n_accepted);
  return fuzz_n_accepted > 0 ? EXIT_SUCCESS : EXIT_FAILURE; /* else the target reads nothing at all */
}
