#include "kernels/host_kernels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

#define DECLARE_ISA(isa)                                                                                               \
  asparse_host_kernel asparse_csr_multiply_##isa, asparse_wcsr_multiply_##isa, asparse_bcsr_multiply_##isa;
#define ISA_KERNELS(isa)                                                                                               \
  { #isa, asparse_csr_multiply_##isa, asparse_wcsr_multiply_##isa, asparse_bcsr_multiply_##isa }

DECLARE_ISA(baseline)
#ifdef ASPARSE_HOST_X86
DECLARE_ISA(avx2)
DECLARE_ISA(avx512)
#endif

/* Best first. */
static const asparse_host_isa_kernels isas[] = {
#ifdef ASPARSE_HOST_X86
    ISA_KERNELS(avx512),
    ISA_KERNELS(avx2),
#endif
    ISA_KERNELS(baseline),
};
enum { N_ISAS = sizeof isas / sizeof *isas };

static bool is_supported(const asparse_host_isa_kernels *isa) {
#ifdef ASPARSE_HOST_X86
  if (strcmp(isa->name, "avx512") == 0) return __builtin_cpu_supports("x86-64-v4");
  if (strcmp(isa->name, "avx2") == 0) return __builtin_cpu_supports("x86-64-v3");
#endif
  return strcmp(isa->name, "baseline") == 0;
}

static asparse_status find(const asparse_host_isa_kernels **kernels) {
  const char *wanted = getenv("ASPARSE_ISA");
  for (int i = 0; i < N_ISAS; i++) {
    if (wanted && wanted[0] && strcmp(wanted, isas[i].name) != 0) continue;
    if (is_supported(&isas[i])) {
      *kernels = &isas[i];
      return ASPARSE_OK;
    }
    if (wanted && wanted[0])
      return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "ASPARSE_ISA=%s: this processor has no %s; unset it", wanted, wanted);
  }
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "ASPARSE_ISA=%s is not avx512, avx2 or baseline; unset it", wanted);
}

asparse_status asparse_host_kernels_get(const asparse_host_isa_kernels **kernels) {
  static _Atomic(const asparse_host_isa_kernels *) chosen;
  *kernels = atomic_load(&chosen);
  if (*kernels) return ASPARSE_OK;
  PASS(find(kernels));
  atomic_store(&chosen, *kernels);
  return ASPARSE_OK;
}

const char *asparse_host_isa(void) {
  const asparse_host_isa_kernels *kernels;
  return asparse_host_kernels_get(&kernels) == ASPARSE_OK ? kernels->name : "unknown";
}
