// A method's own options, read back from the resolved spec.
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

}  // namespace sotto::methods
