#include "privacy/noise/kernels.h"

namespace sotto::privacy {

namespace baseline {
extern const NoiseKernels kKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const NoiseKernels kKernels;
}
#endif

std::vector<const NoiseKernels*> runnable_noise_kernels() {
  std::vector<const NoiseKernels*> sets = {&baseline::kKernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) sets.push_back(&avx2::kKernels);
#endif
  return sets;
}

const NoiseKernels& noise_kernels() {
  static const NoiseKernels& best = *runnable_noise_kernels().back();
  return best;
}

}  // namespace sotto::privacy
