// Numbers as JSON has them: there is no infinity.
#pragma once

#include <nlohmann/json.hpp>

#include <cmath>

namespace sotto {

// Null for what is not finite, already in memory and not only when it is written.
inline nlohmann::json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

}  // namespace sotto
