// The least noise that keeps a plan within (ε, δ).
#pragma once

#include "privacy/accounting/accountant.h"

#include <cstdint>
#include <span>

namespace sotto::privacy {

struct CalibrationTarget {
  double epsilon = 0;
  double delta = 0;
  Method method = Method::kExact;
};

// The smallest noise multiplier z, rounded up, with which `count` steps like `shape` (whose multiplier is ignored)
// together with `others` are (ε, δ) by the method: the method's own answer at z is at most ε. A UserError says why if
// there is none. `shape` must be gaussian or laplace.
double calibrate(const CalibrationTarget& target, const Step& shape, int64_t count, std::span<const Steps> others = {});

}  // namespace sotto::privacy
