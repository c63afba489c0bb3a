#include "privacy/row_bounds.h"

#include "base/error.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <array>
#include <cmath>

namespace sotto::privacy {
namespace {

constexpr double kLeastBound = 1e-9;

template <typename Number>
double sum_of(const Number* row, int64_t width) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> lanes = {};
  int64_t i = 0;
  for (; i + static_cast<int64_t>(kLanes) <= width; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += static_cast<double>(row[i + static_cast<int64_t>(lane)]);
  }
  for (; i < width; ++i) lanes[static_cast<size_t>(i) % kLanes] += static_cast<double>(row[i]);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

}  // namespace

void require_clip_bound(const std::string& name, double bound) {
  if (bound >= kLeastBound && std::isfinite(bound)) return;
  fail_user("the clipping bound of '{}' is {}; it must be a number from {} on", name, bound, kLeastBound);
}

at::Tensor row_sums(const at::Tensor& rows) {
  SOTTO_INVARIANT(rows.dim() == 2);
  const at::Tensor whole = (rows.is_floating_point() ? rows : rows.to(at::kDouble)).contiguous();
  at::Tensor sums = at::empty({whole.size(0)}, at::kDouble);
  auto* out = sums.data_ptr<double>();
  AT_DISPATCH_FLOATING_TYPES(whole.scalar_type(), "row_sums", [&] {
    const auto* row = whole.data_ptr<scalar_t>();
    for (int64_t i = 0; i < whole.size(0); ++i, row += whole.size(1)) out[i] = sum_of(row, whole.size(1));
  });
  return sums;
}

}  // namespace sotto::privacy
