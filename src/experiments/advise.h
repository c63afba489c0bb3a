// Which recipe suits a federation, found on public data that stands in for the clients'.
//
// The clients' records are never opened. What is known of them is what is public: how many clients there are, how many
// records each has, how labels are dealt, what is promised to whom. A public proxy is dealt in the same way, and every
// candidate is simulated on it with the noise that the promise costs. Clients alone are simulated beside them, since a
// federation whose noise drowns what clients have to say to each other is not worth joining.
#pragma once

#include "config/run_spec.h"
#include "experiments/recipes.h"
#include "run/config_source.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sotto::experiments {

struct AdviceRequest {
  run::ConfigSource config;
  std::string proxy;             // a public dataset by name or path
  int64_t records = 0;           // of a client; 0: as declared, or as many as the proxy has for each
  std::filesystem::path folder;  // for the runs, advice.json and advice.png
  int threads = 1;               // runs at once
};

// What became of one recipe.
struct RecipeResult {
  Recipe recipe;
  std::vector<uint64_t> seeds = {};
  std::vector<double> accuracies = {};  // mean over clients, by seed
  std::string failure = {};             // why there are none

  bool simulated() const { return !accuracies.empty(); }
  double mean() const;
  double std() const;  // over seeds; 0 of one
};

// The recommended way to join under another condition, against clients alone under the same.
struct WhatIf {
  std::string key;  // "epsilon", "clients", "records"
  double value = 0;
  double joined = 0;
  double alone = 0;
};

struct Advice {
  RecipeResult best;  // of those that join
  RecipeResult stay;  // the best of those that do not
  // The same; or the best with its clients hearing nothing of each other, if they do better so.
  RecipeResult alone;
  std::vector<RecipeResult> table;  // by falling accuracy; what failed comes last
  std::vector<WhatIf> what_if;      // the simulated condition among them
  bool worth_joining = false;       // the gain is more than twice its standard error
  std::vector<std::string> notes;   // in what the proxy differs from what was asked for
  int64_t records = 0;              // of a client, as simulated
  config::RunSpec spec;             // what was asked about
  nlohmann::json proxy;             // what stood in

  const RecipeResult& recommended() const { return worth_joining ? best : stay; }
  // The least simulated value from which on, upwards, joining gains; nothing if it does not even at the largest.
  std::optional<double> worth_from(const std::string& key) const;
  // The config with the recommended recipe in it, as TOML.
  std::string config() const;
};

// Simulates what is not there yet in the folder, and writes advice.json and advice.png. Settings that nothing can be
// advised on are UserErrors. Throws Interrupted after Ctrl-C: the same request continues.
Advice advise(const AdviceRequest& request);

// What advice.json holds.
nlohmann::ordered_json to_json(const Advice& advice);

}  // namespace sotto::experiments
