#include "privacy/noise/aes_kernel.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace sotto::privacy {

#if defined(__x86_64__)
extern const AesKernel kVectorAes;

namespace {

// Not every compiler's __builtin_cpu_supports knows "vaes".
bool has_vaes() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kVaes = 1U << 9;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 1 && (ecx & kVaes) != 0;
}

}  // namespace

const AesKernel* vector_aes() {
  static const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("aes") && has_vaes();
  return supported ? &kVectorAes : nullptr;
}
#else
const AesKernel* vector_aes() {
  return nullptr;
}
#endif

}  // namespace sotto::privacy
