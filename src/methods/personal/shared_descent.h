// How personal methods train what they send.
#pragma once

#include "settings/choice.h"

#include <array>

namespace sotto::methods {

// Key descent: "clipped" is the descent of ldp-fedavg (keys clip, batches, weights; step and optimiser are
// federation's), "normalised" that of dp-head.
enum class Descent { kClipped, kNormalised };
constexpr auto choices(Descent) {
  return std::to_array<settings::Choice<Descent>>(
      {{Descent::kClipped, "clipped"}, {Descent::kNormalised, "normalised"}});
}

}  // namespace sotto::methods
