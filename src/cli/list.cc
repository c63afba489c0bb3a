// sotto list: what there is to choose from, for people and for programs.
#include "attacks/catalogue.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "data/partition.h"
#include "data/source.h"
#include "methods/catalogue.h"
#include "models/catalogue.h"
#include "privacy/mechanisms/catalogue.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sotto::cli {
namespace {

using nlohmann::json;

template <typename E>
json words_of(const std::vector<E>& choices) {
  json all = json::array();
  for (const E choice : choices) all.push_back(settings::word(choice));
  return all;
}

json methods_json() {
  json items = json::array();
  for (const methods::MethodEntry& entry : methods::catalogue()) {
    items.push_back({{"name", entry.name},
                     {"what", entry.what},
                     {"citation", entry.citation},
                     {"family", entry.family},
                     {"units", words_of(entry.units)},
                     {"observers", words_of(entry.observers)},
                     {"variants", words_of(entry.variants)}});
  }
  return items;
}

json models_json() {
  json items = json::array();
  for (const models::CatalogueEntry& entry : models::catalogue()) {
    items.push_back({{"name", entry.name},
                     {"what", entry.what},
                     {"citation", entry.citation},
                     {"reads", entry.tokens ? "tokens" : "images or features"},
                     {"keys", *entry.keys == '\0' ? json::array() : json(split(entry.keys, ' '))}});
  }
  return items;
}

json datasets_json() {
  json items = json::array();
  for (const data::DatasetInfo& info : data::list_datasets()) {
    items.push_back({{"name", info.name}, {"what", info.what}, {"installed", info.location.has_value()}});
  }
  return items;
}

json partitions_json() {
  json items = json::array();
  for (const data::PartitionEntry& entry : data::partition_catalogue()) {
    items.push_back({{"name", entry.name}, {"what", entry.what}, {"keys", entry.keys}});
  }
  return items;
}

json attacks_json() {
  json items = json::array();
  for (const attacks::AttackEntry& entry : attacks::catalogue()) {
    items.push_back({{"name", entry.name}, {"what", entry.what}, {"citation", entry.citation}});
  }
  return items;
}

json mechanisms_json() {
  json items = json::array();
  for (const privacy::MechanismEntry& entry : privacy::mechanism_catalogue()) {
    items.push_back({{"name", entry.name}, {"what", entry.what}, {"citation", entry.citation}});
  }
  return items;
}

struct Listing {
  const char* name;
  const char* help;
  json (*items)();
  std::vector<std::string> columns;  // shown in a terminal
};

const std::vector<Listing>& listings() {
  static const std::vector<Listing> all = {
      {"methods",
       "Methods, what they protect and against whom",
       methods_json,
       {"name", "family", "units", "observers", "variants", "what"}},
      {"models", "Models, and the keys of [model] that each has", models_json, {"name", "keys", "what"}},
      {"datasets", "Datasets known by name (more: sotto data list)", datasets_json, {"name", "installed", "what"}},
      {"partitions", "How records are dealt to clients", partitions_json, {"name", "keys", "what"}},
      {"attacks", "Attacks on what a run released", attacks_json, {"name", "what"}},
      {"mechanisms", "Mechanisms that the ledger knows", mechanisms_json, {"name", "what"}},
  };
  return all;
}

std::string cell(const json& value) {
  if (value.is_string()) return value;
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.empty() ? "–" : join(value.get<std::vector<std::string>>(), ", ");
}

void list(const Listing& listing, const OutputOptions& output) {
  const json items = listing.items();
  if (output.json) return print_json(items);
  Table table(listing.columns);
  for (const json& item : items) {
    std::vector<std::string> row;
    for (const std::string& column : listing.columns) row.push_back(cell(item.at(column)));
    table.add_row(row);
  }
  print_text(table.to_string(kLine));
}

}  // namespace

void add_list(Command& program) {
  Command group = program.subcommand("list", "What there is to choose from: methods, models, datasets, …");
  group.require_subcommand();
  for (const Listing& listing : listings()) {
    auto output = std::make_shared<OutputOptions>();
    Command command = group.subcommand(listing.name, listing.help);
    add_output_options(command, *output, "Print the list as JSON");
    add_example(command, std::string("sotto list ") + listing.name + " --json");
    command.callback([&listing, output] { list(listing, *output); });
  }
}

}  // namespace sotto::cli
