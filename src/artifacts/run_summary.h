// The result of a finished run, as programs use it; summary.json is its written form.
#pragma once

#include "federation/evaluator.h"
#include "privacy/basis.h"
#include "privacy/ledger.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sotto::artifacts {

// ε over the clients of a run.
struct EpsilonSpread {
  double min = 0;
  double median = 0;
  double max = 0;

  bool operator==(const EpsilonSpread&) const = default;
};

// What clients have spent in the eyes of one observer.
struct SpentAgainst {
  std::string observer = {};
  // Absent if some client has no finite ε.
  std::optional<EpsilonSpread> claimed = {};
  std::optional<EpsilonSpread> proven = {};
  std::string why_unproven = {};  // "" if there is a proven ε

  bool operator==(const SpentAgainst&) const = default;
};

struct PrivacySummary {
  SpentAgainst declared = {};  // the observer whom the run promises to protect its clients from
  std::vector<SpentAgainst> observers = {};
  privacy::Basis basis = privacy::Basis::kSimulated;  // what `proven` is worth
  std::string basis_why = {};                         // why it is simulated; "" if it is proven
  // Absent without [privacy].
  std::optional<double> delta = {};
  std::optional<std::string> adjacency = {};
  std::optional<std::string> unit = {};
  std::optional<privacy::LedgerEnd> ledger = {};  // earlier versions did not write it down

  bool operator==(const PrivacySummary&) const = default;
};

// Means over the evaluations of the last ten rounds.
struct LastTen {
  int64_t evaluations = 0;  // ten where every round was evaluated
  double accuracy = federation::kUndefined;
  double accuracy_global = federation::kUndefined;
  double global_test_accuracy = federation::kUndefined;
  double local_accuracy = federation::kUndefined;
  double neighbour_accuracy = federation::kUndefined;
};

struct RunSummary {
  // What was run.
  std::string name = {};
  std::string dataset = {};
  std::string model = {};
  std::string method = {};
  std::string variant = "sound";
  std::string noise = {};  // in the words of Ledger::generator
  std::string config_hash = {};
  uint64_t seed = 0;

  // How it went.
  int64_t rounds = 0;
  double seconds = 0;  // training, transport and aggregation; not evaluation
  double samples_per_second = 0;
  int64_t upload_bytes = 0;
  int64_t diverged_steps = 0;
  double noise_total = federation::kUndefined;    // Σ over uploads of the norm of the noise in them
  std::map<std::string, int64_t> abstained = {};  // how often, by the client's name

  federation::Evaluation evaluation = {};  // of the last round; without clients where models are tested elsewhere
  LastTen last_ten = {};
  PrivacySummary privacy = {};
};

// Fields as documented in docs/run-directory.md.
nlohmann::json to_json(const PrivacySummary& privacy);
nlohmann::json to_json(const RunSummary& summary);

// The other way round, also of what earlier versions wrote. What lacks a field that all versions have is a UserError
// that names it.
RunSummary run_summary(const nlohmann::json& value);

}  // namespace sotto::artifacts
