#include "models/ops/kernels.h"

namespace sotto::models::ops {

namespace baseline {
extern const Kernels kKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
#endif

std::vector<const Kernels*> runnable_kernels() {
  std::vector<const Kernels*> sets = {&baseline::kKernels};
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2) sets.push_back(&avx2::kKernels);
  if (has_avx2 && __builtin_cpu_supports("avx512f")) sets.push_back(&avx512::kKernels);
#endif
  return sets;
}

const Kernels& kernels() {
  static const Kernels& best = *runnable_kernels().back();
  return best;
}

}  // namespace sotto::models::ops
