#include "privacy/noise/kernels.h"

namespace sotto::privacy::baseline {
namespace {

#include "privacy/noise/kernels.inc"

size_t find(const uint16_t* intervals, size_t count, uint16_t wanted, uint16_t* positions) {
  return find_plainly(intervals, 0, count, wanted, positions);
}

}  // namespace

extern const NoiseKernels kKernels;
const NoiseKernels kKernels = {"baseline",
                               find,
                               to_integers,
                               add_plainly<float>,
                               add_plainly<double>,
                               within<float, int32_t>,
                               within<double, int64_t>};

}  // namespace sotto::privacy::baseline
