#include "config/run_spec.h"

#include "base/files.h"
#include "settings/choice_json.h"
#include "settings/toml.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sotto::config {

nlohmann::json RunSpec::to_json() const {
  nlohmann::json method_table = nlohmann::json::parse(method_options);
  method_table["name"] = method;
  method_table["variant"] = variant;
  nlohmann::json value = {{"name", name},
                          {"seed", seed},
                          {"rounds", rounds},
                          {"data", data::to_json(data)},
                          {"model", models::to_json(model)},
                          {"federation", methods::to_json(federation)},
                          {"method", method_table},
                          {"record",
                           {{"uploads", record.uploads},
                            {"checkpoint_every", record.checkpoint_every},
                            {"keep_states", settings::word(record.keep_states)}}}};
  for (const std::string& client : client_names) value["clients"].push_back({{"name", client}});
  if (most_rounds > 0) value["most_rounds"] = most_rounds;
  if (privacy) value["privacy"] = privacy::to_json(*privacy);
  return value;
}

std::string RunSpec::client_name(int64_t id) const {
  return client_names.empty() ? fmt::format("client {}", id) : client_names.at(static_cast<size_t>(id));
}

std::string RunSpec::hash() const {
  nlohmann::json value = to_json();
  value.erase("name");
  value.erase("clients");
  value.erase("record");
  value["federation"].erase("state");
  return sha256(value.dump());
}

RunSpec RunSpec::with_rounds(int64_t count) const {
  RunSpec changed = *this;
  changed.rounds = count;
  return changed;
}

std::string RunSpec::to_toml() const {
  return settings::format_toml(to_json());
}

}  // namespace sotto::config
