// What an attack is: what it asks of a run and how it answers.
//
// A new attack is one small file that defines an AttackEntry, and one line in catalogue.cc.
#pragma once

#include "attacks/target.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace sotto::attacks {

struct AttackOptions {
  std::optional<int64_t> client = {};  // whose model or upload; without one the global model, or client 0
  int64_t round = 0;                   // of uploads; 0 = the one whose model is known
  int64_t records = 400;               // members, and as many others, at most
  int64_t shadows = 50;
  int64_t steps = 0;                     // of reconstructions, at most; 0 = 400, as printed 10,000
  std::string optimizer = "adam";        // of reconstructions: adam, lbfgs
  bool as_printed = false;               // with the paper's loss and settings, where the attack has such a form
  std::filesystem::path extractor = {};  // TorchScript, for Fréchet distances; without one the model's own features
  uint64_t seed = 1;
  int threads = 1;

  int64_t most_steps() const { return steps != 0 ? steps : as_printed ? 10'000 : 400; }
};

struct AttackEntry {
  std::string name;
  std::string what;          // one line for people
  std::string citation;      // "" for the project's own
  std::string needs;         // what it reads of a run, for people
  bool shared = false;       // several processes share its shadow models; without such rank 0 does it by itself
  bool needs_model = false;  // a model that sees records: runs of methods that train something else are refused
  bool is_printed = false;   // has a form with its paper's loss and settings
  // The keys of docs/run-directory.md without `name` and `what`, and under `baseline` the same figures for the same
  // federation without privacy. Pictures go into the run's folder attacks/. A run that it cannot attack is a UserError.
  nlohmann::json (*run)(const Target&, const AttackOptions&);
};

// Runs it, writes attacks/NAME.json into the run's folder and returns what it holds. A client that is not there, a printed
// form that the attack does not have, and a run that has not what the attack needs, are UserErrors.
nlohmann::json attack(const AttackEntry& entry, const Target& target, const AttackOptions& options);

}  // namespace sotto::attacks
