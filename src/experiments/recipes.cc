#include "experiments/recipes.h"

#include "methods/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sotto::experiments {
namespace {

using nlohmann::json;

constexpr int64_t kHeadRounds = 20;
constexpr int64_t kAloneRounds = 5;
constexpr const char* kOwnRecipe = "as configured";
// What a recipe may not change of [federation].
constexpr const char* kWhoTakesPart[] = {"cohort", "sampling", "state", "eval_clients"};

bool serves(const std::string& method, const privacy::PrivacyTerms& terms) {
  const methods::MethodEntry& entry = methods::find_method(method);
  const auto has = [](const auto& list, auto item) { return std::find(list.begin(), list.end(), item) != list.end(); };
  // Noise at the client protects against everybody behind the server, too.
  return has(entry.units, terms.unit) &&
         (has(entry.observers, terms.observer) || has(entry.observers, privacy::Observer::kServer));
}

Recipe recipe(std::string what, const std::string& features, int64_t rounds, json model, json federation, json method) {
  return {.what = std::move(what),
          .settings = {{"rounds", rounds},
                       {"features", features},
                       {"model", std::move(model)},
                       {"federation", std::move(federation)},
                       {"method", std::move(method)}}};
}

Recipe as_configured(const config::RunSpec& spec) {
  json settings = spec.to_json();
  json federation = settings["federation"];
  for (const char* key : kWhoTakesPart) federation.erase(key);
  return recipe(kOwnRecipe, spec.data.features, spec.rounds, settings["model"], federation, settings["method"]);
}

// The same method on the same features: the config says how, and one of the two is enough.
bool is_kind_of(const Recipe& recipe, const Recipe& other) {
  const auto same = [&](const char* table) { return recipe.settings[table]["name"] == other.settings[table]["name"]; };
  return recipe.features() == other.features() && same("method") && same("model");
}

void add_alone(std::string what, const std::string& features, json model, json federation,
               std::vector<Recipe>& recipes) {
  recipes.push_back(recipe(std::move(what), features, kAloneRounds, std::move(model), std::move(federation),
                           {{"name", "local-only"}}));
  recipes.back().alone = true;
}

}  // namespace

std::vector<std::string> feature_sets(const config::RunSpec& spec, data::Kind kind) {
  std::vector<std::string> sets;
  if (kind == data::Kind::kImages) sets = {"hog", "hog+scatter"};
  if (kind == data::Kind::kText) sets = {"minilm"};
  const std::string& own = spec.data.features;
  if (!own.empty() && std::find(sets.begin(), sets.end(), own) == sets.end()) sets.push_back(own);
  if (sets.empty()) sets.emplace_back("");
  return sets;
}

// What joins is tried on quick features first, but for dp-head, which is what good ones are for.
std::vector<Recipe> candidate_recipes(const config::RunSpec& spec, data::Kind kind) {
  const json linear = {{"name", "linear"}}, network = {{"name", "adapter"}};
  const std::vector<std::string> sets = feature_sets(spec, kind);
  const std::string &quick = sets.front(), &best = sets.back();
  std::vector<Recipe> recipes;
  for (const std::string& features : sets) {
    recipes.push_back(recipe("dp-head", features, kHeadRounds, linear, json::object(), {{"name", "dp-head"}}));
  }
  for (const double lambda : {1.0, 10.0}) {
    recipes.push_back(recipe(fmt::format("mr-mtl, λ {:g}", lambda), quick, kHeadRounds, linear, json::object(),
                             {{"name", "mr-mtl"}, {"descent", "normalised"}, {"lambda", lambda}}));
  }
  recipes.push_back(recipe("ditto", quick, kHeadRounds, linear, {{"lr", 2.0}, {"batch", 128}},
                           {{"name", "ditto"}, {"descent", "normalised"}, {"lambda", 0.1}}));
  recipes.push_back(recipe("fedproto", quick, 5, network, {{"batch", 256}, {"optimizer", "adamw"}, {"lr", 1e-3}},
                           {{"name", "fedproto"}}));
  if (kind == data::Kind::kImages) {
    recipes.push_back(recipe("ldp-fedavg, cnn", "", 10, {{"name", "cnn"}}, {{"batch", 256}, {"lr", 2.0}},
                             {{"name", "ldp-fedavg"}, {"clip", 1.0}}));
  }
  for (const double clip : {0.1, 1.0}) {
    recipes.push_back(recipe(fmt::format("dp-fedavg, clip {:g}", clip), quick, kHeadRounds, linear, {{"lr", 2.0}},
                             {{"name", "dp-fedavg"}, {"clip", clip}}));
  }
  std::erase_if(recipes, [&](const Recipe& r) {
    return !serves(r.settings["method"]["name"].get<std::string>(), *spec.privacy);
  });
  if (serves(spec.method, *spec.privacy)) {
    const Recipe own = as_configured(spec);
    std::erase_if(recipes, [&](const Recipe& other) { return is_kind_of(other, own); });
    recipes.insert(recipes.begin(), own);
  }
  add_alone("alone, adapter", quick, network, {{"optimizer", "adamw"}, {"lr", 1e-3}}, recipes);
  for (const double lr : {2.0, 20.0}) {
    add_alone(fmt::format("alone, step {:g}", lr), best, linear, {{"lr", lr}}, recipes);
  }
  return recipes;
}

Recipe on_features(Recipe recipe, const std::string& features) {
  recipe.settings["features"] = features;
  return recipe;
}

Recipe unheard(const Recipe& recipe) {
  Recipe twin = recipe;
  twin.what += ", unheard";
  twin.alone = twin.unheard = true;
  return twin;
}

json with_recipe(const config::RunSpec& spec, const Recipe& recipe) {
  json settings = spec.to_json();
  json federation = recipe.settings["federation"];
  for (const char* key : kWhoTakesPart) federation[key] = settings["federation"][key];
  federation["eval_every"] = recipe.settings["rounds"];
  settings["rounds"] = recipe.settings["rounds"];
  settings["data"]["features"] = recipe.settings["features"];
  if (recipe.features().empty()) {
    settings["data"].erase("project_on");
    settings["data"].erase("project");
  }
  settings["model"] = recipe.settings["model"];
  settings["federation"] = std::move(federation);
  settings["method"] = recipe.settings["method"];
  return settings;
}

}  // namespace sotto::experiments
