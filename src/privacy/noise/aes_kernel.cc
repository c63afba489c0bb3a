#include "privacy/noise/aes_kernel.h"

namespace sotto::privacy {

#if defined(__x86_64__)
extern const AesKernel kVectorAes;

const AesKernel* vector_aes() {
  static const bool supported =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("vaes");
  return supported ? &kVectorAes : nullptr;
}
#else
const AesKernel* vector_aes() {
  return nullptr;
}
#endif

}  // namespace sotto::privacy
