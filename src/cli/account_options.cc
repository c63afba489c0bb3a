#include "cli/account_options.h"

#include "base/error.h"
#include "cli/account_query.h"
#include "cli/command.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>

namespace sotto::cli {

using nlohmann::json;

QuestionOptions::Entry& QuestionOptions::add(Command& command, const std::string& key, const std::string& help,
                                             bool number) {
  entries_.push_back(std::make_unique<Entry>());
  Entry& entry = *entries_.back();
  entry.key = key;
  entry.number = number;
  std::string option = key;
  std::replace(option.begin(), option.end(), '_', '-');
  option.insert(0, "--");
  command.option(option, entry.value, help).type_name(number ? "NUMBER" : "NAME");
  return entry;
}

void QuestionOptions::add_number(Command& command, const std::string& key, const std::string& help) {
  add(command, key, help, true);
}

void QuestionOptions::add_text(Command& command, const std::string& key, const std::string& help) {
  add(command, key, help, false);
}

void QuestionOptions::add_compose(Command& command) {
  command.option("--compose", compose_, "File of further events: a JSON list, or a JSON object a line")
      .type_name("FILE");
}

json QuestionOptions::question() const {
  json result = json::object();
  for (const auto& entry : entries_) {
    if (entry->value.empty()) continue;
    if (!entry->number) {
      result[entry->key] = entry->value;
      continue;
    }
    char* end = nullptr;
    const double value = std::strtod(entry->value.c_str(), &end);
    if (end == entry->value.c_str() || *end != '\0')
      fail_user("{} must be a number, not '{}'", entry->key, entry->value);
    result[entry->key] = value;
  }
  if (!compose_.empty()) result["compose"] = read_events(compose_);
  return result;
}

}  // namespace sotto::cli
