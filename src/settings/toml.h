// TOML to and from JSON values.
#pragma once

#include "settings/section.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace sotto::settings {

struct ParsedToml {
  nlohmann::json value;
  std::shared_ptr<Source> source;
};

// `name` is used in error messages. Syntax errors, dates and non-finite numbers are UserErrors with their line.
ParsedToml parse_toml(const std::string& text, const std::string& name);

// Applies one override of the form a.b.c=value. The value is TOML; a bare word counts as text.
void apply_override(ParsedToml& config, const std::string& assignment);

std::string format_toml(const nlohmann::json& value);

}  // namespace sotto::settings
