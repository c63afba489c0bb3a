// The attacks by name: each reads a run and writes attacks/NAME.json, with pictures beside it.
#pragma once

#include "attacks/target.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sotto::attacks {

struct AttackOptions {
  std::optional<int64_t> client = {};  // whose model or upload; without one the global model, or client 0
  int64_t round = 0;                   // of uploads; 0 = the one whose model is known
  int64_t records = 400;               // members, and as many others, at most
  int64_t shadows = 50;
  int64_t steps = 400;
  std::string optimizer = "adam";        // of reconstructions: adam, lbfgs
  std::filesystem::path extractor = {};  // TorchScript, for Fréchet distances; without one the model's own features
  uint64_t seed = 1;
  int threads = 1;
};

struct AttackEntry {
  std::string name;
  std::string what;  // one line for people
  nlohmann::json (*run)(const Target&, const AttackOptions&);
};

// A new attack is one function and one line here.
const std::vector<AttackEntry>& attack_list();
// An unknown name is a UserError.
const AttackEntry& find_attack(const std::string& name);

// Runs it, writes its file and returns what it holds: the keys of docs/run-directory.md, and under `baseline` the same
// figures for the same federation without privacy.
nlohmann::json attack(const Target& target, const std::string& name, const AttackOptions& options);

}  // namespace sotto::attacks
