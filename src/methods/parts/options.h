// What methods read off a resolved spec: their own options among it.
#pragma once

#include "config/run_spec.h"
#include "config/section.h"

#include <nlohmann/json.hpp>

#include <memory>

namespace sotto::methods {

// Applies the method's reader to spec.method_options, which were validated by the same reader when the config was
// loaded.
template <typename Reader>
auto options_of(const config::RunSpec& spec, Reader read) {
  config::Section section(nlohmann::json::parse(spec.method_options), "method",
                          std::make_shared<config::Source>(config::Source{.file = "the resolved config", .line = {}}));
  return read(section);
}

// How many clients a round asks, on average.
inline int64_t expected_cohort(const config::RunSpec& spec) {
  return spec.federation.cohort == 0 ? spec.data.clients : spec.federation.cohort;
}

}  // namespace sotto::methods
