// Recipes: whole ways to train, as settings that take the place of a config's.
#pragma once

#include "config/run_spec.h"
#include "data/dataset.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace sotto::experiments {

struct Recipe {
  std::string what;      // "mr-mtl, λ 10"
  bool alone = false;    // clients do not join: nothing leaves them, or nothing that could be heard
  bool unheard = false;  // the recipe at a budget so small that all that is sent is noise
  // rounds, features, and the tables model, federation and method: what a recipe says of a config. What clients and
  // their data are, who takes part and what is promised stay the config's.
  nlohmann::json settings;

  std::string features() const { return settings.value("features", ""); }
  // "mr-mtl, λ 10 on hog"
  std::string name() const { return features().empty() ? what : what + " on " + features(); }
  bool operator==(const Recipe&) const = default;
};

// Features that records of this kind can be had as, from what is quick to what is good; the config's own among them.
std::vector<std::string> feature_sets(const config::RunSpec& spec, data::Kind kind);

// Those that could serve a federation with such promises on records of this kind, clients alone among them. Looks at
// settings only. The first is the config's own, if it says how to train.
std::vector<Recipe> candidate_recipes(const config::RunSpec& spec, data::Kind kind);

// The same on other features.
Recipe on_features(Recipe recipe, const std::string& features);

// A recipe whose clients hear nothing of each other. What a model of the client's own reaches by it, it owes to nobody
// else.
Recipe unheard(const Recipe& recipe);

// The settings `spec` with the recipe's in place of its own.
nlohmann::json with_recipe(const config::RunSpec& spec, const Recipe& recipe);

}  // namespace sotto::experiments
