#include "settings/toml.h"

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"

#include <toml++/toml.h>

#include <cmath>
#include <sstream>
#include <string_view>

namespace sotto::settings {
namespace {

using nlohmann::json;

json to_json(const toml::node& node, const std::string& path, Source& source) {
  source.line[path] = static_cast<int>(node.source().begin.line);
  if (const auto* table = node.as_table()) {
    json object = json::object();
    for (const auto& [key, value] : *table) {
      const std::string name(key.str());
      object[name] = to_json(value, path.empty() ? name : path + "." + name, source);
    }
    return object;
  }
  if (const auto* array = node.as_array()) {
    json list = json::array();
    for (const auto& value : *array) list.push_back(to_json(value, path, source));
    return list;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* boolean = node.as_boolean()) return boolean->get();
  if (const auto* number = node.as_floating_point()) {
    if (!std::isfinite(number->get())) {
      fail_user("{}:{}: {} must be a finite number", source.file, node.source().begin.line, path);
    }
    return number->get();
  }
  fail_user("{}:{}: {} is a date or time, which no setting takes", source.file, node.source().begin.line, path);
}

toml::table to_toml(const json& object);

toml::array to_toml_array(const json& list) {
  toml::array array;
  for (const json& item : list) {
    if (item.is_string())
      array.push_back(item.get<std::string>());
    else if (item.is_boolean())
      array.push_back(item.get<bool>());
    else if (item.is_number_integer())
      array.push_back(item.get<int64_t>());
    else if (item.is_number())
      array.push_back(item.get<double>());
    else if (item.is_array())
      array.push_back(to_toml_array(item));
    else
      array.push_back(to_toml(item));
  }
  return array;
}

toml::table to_toml(const json& object) {
  toml::table table;
  for (const auto& [key, value] : object.items()) {
    if (value.is_object())
      table.insert(key, to_toml(value));
    else if (value.is_array())
      table.insert(key, to_toml_array(value));
    else if (value.is_string())
      table.insert(key, value.get<std::string>());
    else if (value.is_boolean())
      table.insert(key, value.get<bool>());
    else if (value.is_number_integer())
      table.insert(key, value.get<int64_t>());
    else if (value.is_number())
      table.insert(key, value.get<double>());
  }
  return table;
}

// Tables within tables are walked by recursion, here and in the parser: a key has at most this many parts.
constexpr int kDeepest = 64;

void require_shallow_keys(const std::string& text, const std::string& name) {
  int line = 1;
  int dots = 0;  // since the last character that ends a key
  for (const char c : text) {
    if (c == '.') {
      if (++dots == kDeepest) fail_user("{}:{}: a key has more than {} parts", name, line, kDeepest);
    } else if (std::string_view("\n,=[]{}").find(c) != std::string_view::npos) {
      dots = 0;
    }
    if (c == '\n') ++line;
  }
}

toml::table parse_or_fail(const std::string& text, const std::string& name) {
  require_shallow_keys(text, name);
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    fail_user("{}:{}: not valid TOML: {}", name, error.source().begin.line, error.description());
  }
}

}  // namespace

ParsedToml parse_toml(const std::string& text, const std::string& name) {
  ParsedToml parsed;
  parsed.source = std::make_shared<Source>();
  parsed.source->file = name;
  parsed.value = to_json(parse_or_fail(text, name), "", *parsed.source);
  return parsed;
}

void apply_override(ParsedToml& config, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail_user("--set {}: write it as key=value, for example --set federation.lr=0.1", assignment);
  }
  const std::string key = trim(assignment.substr(0, equals));
  const std::string text = trim(assignment.substr(equals + 1));
  if (!is_utf8(assignment)) fail_user("--set {}: this is not UTF-8 text", key);
  require_shallow_keys(assignment, "--set");
  Source scratch{.file = "--set " + assignment, .line = {}};
  json value;
  try {
    value = to_json(*toml::parse("value = " + text).get("value"), key, scratch);
  } catch (const toml::parse_error&) {
    value = text;
  }
  json* target = &config.value;
  for (const std::string& part : split(key, '.')) {
    if (!target->is_object()) fail_user("--set {}: {} is not a table", assignment, key);
    target = &(*target)[part];
    if (target->is_null()) *target = json::object();
  }
  *target = std::move(value);
  config.source->line.erase(key);
}

std::string format_toml(const json& value) {
  std::ostringstream stream;
  stream << toml::toml_formatter(to_toml(value)) << "\n";
  return stream.str();
}

}  // namespace sotto::settings
