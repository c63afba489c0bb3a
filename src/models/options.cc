#include "models/options.h"

#include "models/catalogue.h"
#include "settings/choice_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace sotto::models {
namespace {

LoraOptions read_lora(settings::Section section) {
  LoraOptions o;
  o.rank = section.integer("rank", o.rank, settings::at_least(0));
  o.targets = section.texts("targets", o.targets);
  section.finish();
  const bool is_named = std::all_of(o.targets.begin(), o.targets.end(), [](const auto& t) { return !t.empty(); });
  if (!is_named) section.fail("targets", "has an empty name; name layers, for example [\"qkv\"]");
  if (o.rank > 0 && o.targets.empty()) section.fail("targets", "is missing: name layers, for example [\"qkv\"]");
  if (o.rank == 0 && !o.targets.empty()) section.fail("rank", "is missing: write for example rank = 4");
  return o;
}

}  // namespace

ModelOptions read_model_options(settings::Section section) {
  ModelOptions o;
  o.name = section.text("name", o.name);
  o.weights = section.text("weights", o.weights);
  o.norm = section.choice("norm", o.norm);
  o.hidden = section.integers("hidden", o.hidden, settings::at_least(1));
  o.width = section.integer("width", o.width, settings::at_least(0));
  o.depth = section.integer("depth", o.depth, settings::at_least(0));
  o.heads = section.integer("heads", o.heads, settings::at_least(0));
  o.patch = section.integer("patch", o.patch, settings::at_least(1));
  o.adapter = section.integer("adapter", o.adapter, settings::at_least(0));
  o.dropout = section.number("dropout", o.dropout, {.low = 0, .high = 1, .high_excluded = true});
  o.freeze_backbone = section.boolean("freeze_backbone", o.freeze_backbone);
  o.lora = read_lora(section.child("lora"));
  o.personal = section.texts("personal", o.personal);
  section.finish();
  const ModelOptions fallback;
  const auto only_if = [&](const char* key, bool is_default) {
    section.only_if(has_key(o.name, key), key, is_default, fmt::format("with model '{}'", o.name));
  };
  only_if("norm", o.norm == fallback.norm);
  only_if("hidden", o.hidden == fallback.hidden);
  only_if("width", o.width == fallback.width);
  only_if("depth", o.depth == fallback.depth);
  only_if("heads", o.heads == fallback.heads);
  only_if("patch", o.patch == fallback.patch);
  only_if("adapter", o.adapter == fallback.adapter);
  const bool head_alone = o.name == "logistic" || o.name == "linear" || o.name == "hog" || o.name == "scatter";
  section.only_if(!head_alone, "freeze_backbone", !o.freeze_backbone,
                  fmt::format("with model '{}', which is a head alone", o.name));
  return o;
}

nlohmann::json to_json(const ModelOptions& o) {
  nlohmann::json value = {{"name", o.name},
                          {"weights", o.weights},
                          {"dropout", o.dropout},
                          {"freeze_backbone", o.freeze_backbone},
                          {"personal", o.personal}};
  if (o.lora.rank > 0) value["lora"] = {{"rank", o.lora.rank}, {"targets", o.lora.targets}};
  const nlohmann::json own = {{"norm", o.norm},   {"hidden", o.hidden}, {"width", o.width},    {"depth", o.depth},
                              {"heads", o.heads}, {"patch", o.patch},   {"adapter", o.adapter}};
  for (const auto& [key, setting] : own.items()) {
    if (has_key(o.name, key)) value[key] = setting;
  }
  return value;
}

}  // namespace sotto::models
