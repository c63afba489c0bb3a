#include "settings/section.h"

#include "base/error.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

namespace sotto::settings {
namespace {

using nlohmann::json;

std::string describe(const Range& range) {
  const bool low = std::isfinite(range.low);
  const bool high = std::isfinite(range.high);
  if (low && high) {
    return fmt::format("in {}{}, {}{}", range.low_excluded ? '(' : '[', range.low, range.high,
                       range.high_excluded ? ')' : ']');
  }
  if (low) return fmt::format("{} {}", range.low_excluded ? "greater than" : "at least", range.low);
  return fmt::format("{} {}", range.high_excluded ? "less than" : "at most", range.high);
}

bool inside(const Range& range, double value) {
  return (range.low_excluded ? value > range.low : value >= range.low) &&
         (range.high_excluded ? value < range.high : value <= range.high);
}

std::string show(const json& value) {
  return value.dump();
}

}  // namespace

Section::Section(json table, std::string path, std::shared_ptr<const Source> source)
    : table_(std::move(table)), path_(std::move(path)), source_(std::move(source)) {}

bool Section::has(const std::string& key) const {
  return table_.contains(key);
}

const json* Section::find(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
  const auto found = table_.find(key);
  return found == table_.end() ? nullptr : &*found;
}

std::string Section::dotted(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

void Section::fail(const std::string& key, const std::string& problem) const {
  const auto line = source_->line.find(dotted(key));
  const std::string where =
      line == source_->line.end() ? source_->file : fmt::format("{}:{}", source_->file, line->second);
  fail_user("{}: {} {}", where, dotted(key), problem);
}

double Section::checked_number(const std::string& key, const json& value, const Range& range) const {
  if (!value.is_number()) fail(key, fmt::format("must be a number, not {}", show(value)));
  const double number = value.get<double>();
  if (!std::isfinite(number)) fail(key, "must be a finite number");
  // Settings end up in tensors of single precision.
  if (std::abs(number) > std::numeric_limits<float>::max()) {
    fail(key, fmt::format("must be at most {:.2g} in size, not {}", std::numeric_limits<float>::max(), show(value)));
  }
  if (!inside(range, number)) fail(key, fmt::format("must be {}, not {}", describe(range), show(value)));
  return number;
}

int64_t Section::checked_integer(const std::string& key, const json& value, const Range& range) const {
  if (!value.is_number_integer()) fail(key, fmt::format("must be a whole number, not {}", show(value)));
  checked_number(key, value, range);
  return value.get<int64_t>();
}

std::string Section::text(const std::string& key, const std::string& fallback) {
  const json* value = find(key);
  if (value != nullptr && !value->is_string()) fail(key, fmt::format("must be text in quotes, not {}", show(*value)));
  resolved_[key] = value == nullptr ? json(fallback) : *value;
  return resolved_[key];
}

std::string Section::one_of(const std::string& key, const std::string& fallback,
                            const std::vector<std::string>& choices) {
  const std::string chosen = text(key, fallback);
  if (std::find(choices.begin(), choices.end(), chosen) == choices.end()) {
    fail(key, fmt::format("must be one of {}, not '{}'{}", join(choices, ", "), chosen, did_you_mean(chosen, choices)));
  }
  return chosen;
}

int64_t Section::integer(const std::string& key, int64_t fallback, const Range& range) {
  const json* value = find(key);
  const int64_t chosen = value == nullptr ? fallback : checked_integer(key, *value, range);
  resolved_[key] = chosen;
  return chosen;
}

double Section::number(const std::string& key, double fallback, const Range& range) {
  const json* value = find(key);
  const double chosen = value == nullptr ? fallback : checked_number(key, *value, range);
  resolved_[key] = chosen;
  return chosen;
}

bool Section::boolean(const std::string& key, bool fallback) {
  const json* value = find(key);
  if (value != nullptr && !value->is_boolean()) fail(key, fmt::format("must be true or false, not {}", show(*value)));
  resolved_[key] = value == nullptr ? json(fallback) : *value;
  return resolved_[key];
}

std::vector<std::string> Section::texts(const std::string& key, const std::vector<std::string>& fallback) {
  const json* value = find(key);
  if (value != nullptr) {
    const bool fits =
        value->is_array() && std::all_of(value->begin(), value->end(), [](const json& v) { return v.is_string(); });
    if (!fits) fail(key, fmt::format("must be a list of texts, not {}", show(*value)));
  }
  resolved_[key] = value == nullptr ? json(fallback) : *value;
  return resolved_[key];
}

std::vector<int64_t> Section::integers(const std::string& key, const std::vector<int64_t>& fallback,
                                       const Range& range) {
  const json* value = find(key);
  if (value != nullptr) {
    if (!value->is_array()) fail(key, fmt::format("must be a list of whole numbers, not {}", show(*value)));
    for (const json& item : *value) checked_integer(key, item, range);
  }
  resolved_[key] = value == nullptr ? json(fallback) : *value;
  return resolved_[key];
}

std::vector<double> Section::numbers(const std::string& key, const std::vector<double>& fallback, const Range& range) {
  const json* value = find(key);
  if (value != nullptr) {
    if (!value->is_array()) fail(key, fmt::format("must be a list of numbers, not {}", show(*value)));
    for (const json& item : *value) checked_number(key, item, range);
  }
  resolved_[key] = value == nullptr ? json(fallback) : *value;
  return resolved_[key];
}

double Section::required_number(const std::string& key, const Range& range, const std::string& example) {
  if (!has(key)) fail(key, fmt::format("has no default; write for example {} = {}", key, example));
  return number(key, 0.0, range);
}

std::string Section::required_one_of(const std::string& key, const std::vector<std::string>& choices) {
  if (!has(key)) fail(key, fmt::format("has no default; choose one of {}", join(choices, ", ")));
  return one_of(key, choices.front(), choices);
}

json Section::any(const std::string& key) {
  const json* value = find(key);
  return value == nullptr ? json() : *value;
}

std::string Section::file_beside(const std::string& name) const {
  const std::filesystem::path beside = std::filesystem::path(source_->file).parent_path() / name;
  std::error_code ignored;
  return std::filesystem::exists(beside, ignored) ? beside.string() : name;
}

void Section::only_if(bool applies, const std::string& key, bool is_default, const std::string& where) const {
  if (!applies && !is_default) fail(key, fmt::format("does nothing {}; leave it out", where));
}

Section Section::child(const std::string& key) {
  const json* value = find(key);
  if (value != nullptr && !value->is_object()) fail(key, fmt::format("must be a table [{}]", dotted(key)));
  return Section(value == nullptr ? json::object() : *value, dotted(key), source_);
}

std::vector<Section> Section::children(const std::string& key) {
  const json* value = find(key);
  std::vector<Section> tables;
  if (value == nullptr) return tables;
  if (!value->is_array()) fail(key, fmt::format("must be a list of tables [[{}]]", dotted(key)));
  for (const json& item : *value) {
    if (!item.is_object()) fail(key, fmt::format("must be a list of tables [[{}]]", dotted(key)));
    tables.emplace_back(item, fmt::format("{}[{}]", dotted(key), tables.size()), source_);
  }
  return tables;
}

void Section::finish() const {
  for (const auto& [key, value] : table_.items()) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      fail(key, fmt::format("is not a known key{}; known here: {}", did_you_mean(key, known_), join(known_, ", ")));
    }
  }
}

}  // namespace sotto::settings
