#include "io/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/dense.h"
#include "io/hdf5_read.h"

static const uint64_t stride = 0x9e3779b97f4a7c15u;

/* What the position contributes; that of the next one is larger by stride. */
static inline uint64_t place_of(int array, int64_t position) {
  return ((uint64_t)position + ((uint64_t)array << 56)) * stride;
}

static inline uint64_t hash(int array, int64_t position, uint64_t content) {
  return asparse_mix64(content ^ place_of(array, position));
}

/* ---- runs of 64-bit words --------------------------------------------------------------------- */

enum { RUN = 1 << 14 };

/* Plain loads of what may be declared as another type. */
typedef uint64_t word __attribute__((may_alias));

__attribute__((always_inline)) static inline uint64_t sum_words(int array, int64_t first, const word *from,
                                                                uint64_t offset, int64_t count) {
  uint64_t sum = 0, place = place_of(array, first);
#pragma omp simd reduction(+ : sum) linear(place : stride)
  for (int64_t i = 0; i < count; i++) {
    sum += asparse_mix64((from[i] + offset) ^ place);
    place += stride;
  }
  return sum;
}

static uint64_t sum_run_plain(int array, int64_t first, const word *from, uint64_t offset, int64_t count) {
  return sum_words(array, first, from, offset, count);
}

#if defined(__x86_64__)
/* AVX-512 has the product of 64-bit integers, on which the hash spends its time. */
__attribute__((target("avx512f,avx512dq,prefer-vector-width=512"))) static uint64_t
sum_run_avx512(int array, int64_t first, const word *from, uint64_t offset, int64_t count) {
  return sum_words(array, first, from, offset, count);
}
#endif

static uint64_t sum_all(int array, int64_t first, const word *from, uint64_t offset, int64_t count) {
  uint64_t (*sum_run)(int, int64_t, const word *, uint64_t, int64_t) = sum_run_plain;
  uint64_t sum = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq")) sum_run = sum_run_avx512;
#endif
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (int64_t i = 0; i < count; i += RUN)
    sum += sum_run(array, first + i, from + i, offset, count - i < RUN ? count - i : RUN);
  return sum;
}

uint64_t asparse_checksum_int64(int array, int64_t first, const int64_t *from, int64_t offset, int64_t count) {
  return sum_all(array, first, (const word *)from, (uint64_t)offset, count);
}

uint64_t asparse_checksum_values(int array, int64_t first, asparse_dtype dtype, const void *from, int64_t from_first,
                                 int64_t count) {
  uint64_t sum = 0;
  if (dtype == ASPARSE_FP64) return sum_all(array, first, (const word *)from + from_first, 0, count);
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (int64_t i = 0; i < count; i++) {
    double value = asparse_load(dtype, from, from_first + i);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    sum += hash(array, first + i, bits);
  }
  return sum;
}

uint64_t asparse_checksum_bytes(int array, const void *from, int64_t bytes) {
  uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (int64_t i = 0; i < (bytes + 7) / 8; i++) {
    uint64_t word = 0;
    memcpy(&word, (const char *)from + 8 * i, bytes - 8 * i < 8 ? (size_t)(bytes - 8 * i) : 8);
    sum += hash(array, i, word);
  }
  return sum;
}

asparse_status asparse_checksum_sum(asparse_comm *comm, uint64_t *checksum) {
  asparse_status status = ASPARSE_OK;
  TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, checksum, 1, MPI_UINT64_T, MPI_SUM, comm->mpi));
cleanup:
  return status;
}

void asparse_checksum_text(uint64_t checksum, char text[ASPARSE_CHECKSUM_LENGTH]) {
  snprintf(text, ASPARSE_CHECKSUM_LENGTH, "%016" PRIx64, checksum);
}

asparse_status asparse_checksum_read(hid_t group, bool *found, uint64_t *checksum) {
  asparse_status status = ASPARSE_OK;
  char *text = NULL;
  int end = 0;
  *found = H5Aexists(group, ASPARSE_CHECKSUM_ATTRIBUTE) > 0;
  if (!*found) return ASPARSE_OK;
  TRY(asparse_hdf5_read_text(group, ASPARSE_CHECKSUM_ATTRIBUTE, &text));
  TRY_THAT(strlen(text) == 16 && sscanf(text, "%" SCNx64 "%n", checksum, &end) == 1 && end == 16, ASPARSE_ERR_DATA,
           "attribute \"" ASPARSE_CHECKSUM_ATTRIBUTE "\" is no checksum: \"%.40s\"", text);
cleanup:
  asparse_free(text);
  return status;
}

asparse_status asparse_checksum_compare(const char *label, uint64_t found, uint64_t expected) {
  if (found == expected) return ASPARSE_OK;
  return ASPARSE_FAIL(ASPARSE_ERR_DATA,
                      "%s: the contents do not match their checksum (%016" PRIx64 ", expected %016" PRIx64
                      "): the file is damaged, or was changed and kept its attribute \"" ASPARSE_CHECKSUM_ATTRIBUTE
                      "\"",
                      label, found, expected);
}
