// Reading one table of a config, strictly.
//
// Every read names its default and its limits. What was read, defaults included, is kept as the resolved settings; what
// was not read is an error that names the nearest key the reader knows. Errors say file, line and key.
#pragma once

#include "settings/choice.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sotto::settings {

// Where values came from, for error messages.
struct Source {
  std::string file;                 // "run.toml", or "--set"
  std::map<std::string, int> line;  // dotted key → line
};

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_excluded = false;
  bool high_excluded = false;
};

inline constexpr Range kAny{};
inline constexpr Range kPositive{.low = 0.0, .low_excluded = true};
inline constexpr Range kNonNegative{.low = 0.0};
inline constexpr Range kFraction{.low = 0.0, .high = 1.0};
constexpr Range at_least(double low) {
  return {.low = low};
}
constexpr Range between(double low, double high) {
  return {.low = low, .high = high};
}

class Section {
 public:
  // `path` is the dotted name of the table, "" for the root.
  Section(nlohmann::json table, std::string path, std::shared_ptr<const Source> source);

  bool has(const std::string& key) const;

  std::string text(const std::string& key, const std::string& fallback);
  std::string one_of(const std::string& key, const std::string& fallback, const std::vector<std::string>& choices);
  // One of an enum's words (see choice.h).
  template <HasChoices E>
  E choice(const std::string& key, E fallback) {
    return from_word<E>(one_of(key, word(fallback), words<E>()));
  }
  int64_t integer(const std::string& key, int64_t fallback, const Range& range = kAny);
  double number(const std::string& key, double fallback, const Range& range = kAny);
  bool boolean(const std::string& key, bool fallback);
  std::vector<std::string> texts(const std::string& key, const std::vector<std::string>& fallback);
  std::vector<int64_t> integers(const std::string& key, const std::vector<int64_t>& fallback,
                                const Range& range = kAny);
  std::vector<double> numbers(const std::string& key, const std::vector<double>& fallback, const Range& range = kAny);

  // The same for keys without a default: absent is an error that says what to write.
  double required_number(const std::string& key, const Range& range, const std::string& example);
  std::string required_one_of(const std::string& key, const std::vector<std::string>& choices);
  template <HasChoices E>
  E required_choice(const std::string& key) {
    return from_word<E>(required_one_of(key, words<E>()));
  }

  // A value of any type, null if absent. What stands for it among the resolved settings is for the caller to say.
  nlohmann::json any(const std::string& key);
  void resolve(const std::string& key, nlohmann::json value) { resolved_[key] = std::move(value); }

  // A file that the config names: beside the config if there is one, otherwise as it is written.
  std::string file_beside(const std::string& name) const;

  // An error if the key says something that means nothing here, e.g. "with partition 'iid'".
  void only_if(bool applies, const std::string& key, bool is_default, const std::string& where) const;

  // Somebody else's key.
  void ignore(const std::string& key) { find(key); }

  // A table inside this one; empty if absent.
  Section child(const std::string& key);

  // The tables of a list [[key]], in order.
  std::vector<Section> children(const std::string& key);

  // Throws for keys that nobody asked for.
  void finish() const;

  // Everything read so far, with defaults filled in.
  const nlohmann::json& resolved() const { return resolved_; }

  // A UserError that points at the key: "run.toml:12: data.alpha …".
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;

 private:
  const nlohmann::json* find(const std::string& key);
  double checked_number(const std::string& key, const nlohmann::json& value, const Range& range) const;
  int64_t checked_integer(const std::string& key, const nlohmann::json& value, const Range& range) const;
  std::string dotted(const std::string& key) const;

  nlohmann::json table_;
  std::string path_;
  std::shared_ptr<const Source> source_;
  nlohmann::json resolved_ = nlohmann::json::object();
  std::vector<std::string> known_;
};

}  // namespace sotto::settings
