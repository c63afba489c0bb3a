#include "data/options.h"

#include "base/files.h"
#include "data/partition.h"
#include "data/record_ops.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>

namespace sotto::data {
namespace {

constexpr const char* kInferred = "inferred";

// A table as it stands; a text names a file or asks for an inferred schema. Resolved, it is a table: a run does not
// depend on a file that may change.
SchemaChoice read_schema_choice(settings::Section& section) {
  const nlohmann::json value = section.any("schema");
  SchemaChoice choice;
  if (value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty())) return choice;
  if (value.is_object()) {
    choice.declared = schema_from(value, "data.schema");
    check_schema(*choice.declared, "data.schema");
    return choice;
  }
  if (!value.is_string()) {
    section.fail("schema", "must be the file of a schema, a table [data.schema] with columns, or \"inferred\"");
  }
  if (value == kInferred) {
    choice.inferred = true;
    return choice;
  }
  const fs::path file = section.file_beside(value.get<std::string>());
  if (!fs::is_regular_file(file)) {
    section.fail("schema", fmt::format("names {}, which is no file; `sotto data show TABLE --schema` writes a template",
                                       file.string()));
  }
  choice.declared = read_schema(file);
  return choice;
}

// Names, or how many there are.
std::vector<std::string> read_classes(settings::Section& section) {
  constexpr int64_t kMostClasses = 100000;
  const nlohmann::json value = section.any("classes");
  if (value.is_null()) return {};
  std::vector<std::string> names;
  if (value.is_number_integer() && value >= 1 && value <= kMostClasses) {
    names = numbered_names(value.get<int64_t>());
  } else if (value.is_array()) {
    for (const nlohmann::json& name : value) {
      if (!name.is_string()) section.fail("classes", "must hold names: classes = [\"cat\", \"dog\"]");
      names.push_back(name.get<std::string>());
    }
  } else {
    section.fail("classes", "must be a list of names, or how many classes there are: classes = [\"cat\", \"dog\"]");
  }
  if (std::set(names.begin(), names.end()).size() != names.size()) section.fail("classes", "names a class twice");
  return names;
}

}  // namespace

DataOptions read_data_options(settings::Section section) {
  DataOptions o;
  o.name = section.text("name", o.name);
  o.otherwise = section.texts("otherwise", o.otherwise);
  o.path = section.text("path", o.path);
  o.classes = read_classes(section);
  o.schema = read_schema_choice(section);
  o.features = section.text("features", o.features);
  o.project_on = section.text("project_on", o.project_on);
  o.project = section.integer("project", o.project, settings::between(0, 1 << 20));
  o.centre = section.text("centre", o.centre);
  if (!o.centre.empty() && o.centre != "record" && o.centre != "own") o.centre = section.file_beside(o.centre);
  o.normalise = section.boolean("normalise", o.normalise);
  o.domains = section.texts("domains", o.domains);
  o.image_size = section.integer("image_size", o.image_size, settings::between(0, 1024));
  o.limit = section.integer("limit", o.limit, settings::at_least(0));
  o.test_limit = section.integer("test_limit", o.test_limit, settings::at_least(0));
  o.clients = section.integer("clients", o.clients, settings::between(1, 1e9));
  o.partition = section.one_of("partition", o.partition, partition_names());
  o.alpha = section.number("alpha", o.alpha, settings::kPositive);
  o.classes_per_client = section.integer("classes_per_client", o.classes_per_client, settings::at_least(1));
  o.records_per_client = section.integer("records_per_client", o.records_per_client, settings::at_least(1));
  o.private_label = section.integer("private_label", o.private_label, settings::at_least(0));
  o.train_fraction = section.number("train_fraction", o.train_fraction, {.low = 0, .high = 1, .low_excluded = true});
  o.test_fraction = section.number("test_fraction", o.test_fraction, {.low = 0, .high = 1, .high_excluded = true});
  o.validation = section.number("validation", o.validation, {.low = 0, .high = 1, .high_excluded = true});
  o.min_records = section.integer("min_records", o.min_records, settings::at_least(1));
  if (o.centre == "own" && o.partition == "resample") {
    section.fail("centre", "is \"own\", which needs records that belong to one client each; 'resample' deals no such");
  }
  section.finish();
  if (o.project > 0 && o.project_on.empty()) {
    section.fail("project",
                 "needs data.project_on: the public dataset whose axes are used, or \"random\" for images of noise");
  }
  if (!o.project_on.empty() && o.features.empty()) section.fail("project_on", "is for features: set data.features too");
  const PartitionEntry& rule = find_partition(o.partition);
  const DataOptions fallback;
  const auto only_if = [&](const char* key, bool is_default) {
    section.only_if(rule.has(key), key, is_default, fmt::format("with partition '{}'", o.partition));
  };
  only_if("alpha", o.alpha == fallback.alpha);
  only_if("classes_per_client", o.classes_per_client == fallback.classes_per_client);
  only_if("records_per_client", o.records_per_client == fallback.records_per_client);
  only_if("private_label", o.private_label == fallback.private_label);
  return o;
}

nlohmann::json to_json(const DataOptions& o) {
  nlohmann::json value = {{"name", o.name},
                          {"otherwise", o.otherwise},
                          {"path", o.path},
                          {"features", o.features},
                          {"domains", o.domains},
                          {"image_size", o.image_size},
                          {"limit", o.limit},
                          {"test_limit", o.test_limit},
                          {"clients", o.clients},
                          {"partition", o.partition},
                          {"train_fraction", o.train_fraction},
                          {"test_fraction", o.test_fraction},
                          {"min_records", o.min_records}};
  if (!o.project_on.empty()) {
    value["project_on"] = o.project_on;
    value["project"] = o.project;
  }
  if (!o.classes.empty()) value["classes"] = o.classes;
  if (o.schema.declared) value["schema"] = to_json(*o.schema.declared);
  if (o.schema.inferred) value["schema"] = kInferred;
  // Only where they are asked for: hashes of other runs stay what they were.
  if (!o.centre.empty()) value["centre"] = o.centre;
  if (o.normalise) value["normalise"] = true;
  if (o.validation > 0) value["validation"] = o.validation;
  const PartitionEntry& rule = find_partition(o.partition);
  if (rule.has("alpha")) value["alpha"] = o.alpha;
  if (rule.has("classes_per_client")) value["classes_per_client"] = o.classes_per_client;
  if (rule.has("records_per_client")) value["records_per_client"] = o.records_per_client;
  if (rule.has("private_label")) value["private_label"] = o.private_label;
  return value;
}

}  // namespace sotto::data
