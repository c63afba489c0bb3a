// A federation in this process, as `sotto run` makes it: a config in, a run directory and typed results out.
//
//   Run run({.config = "federation.toml"});
//   while (const auto round = run.next_round()) …
//   const RunSummary summary = run.finish();
#pragma once

#include "sotto/sotto.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sotto {

inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

struct RunOptions {
  std::string config;                 // a TOML file, or a run directory whose settings are taken
  std::vector<std::string> set = {};  // "table.key=value", as --set
  std::filesystem::path folder = {};  // the run directory; empty: runs/NAME-HASH, one for each distinct setting
  bool resume = false;                // go on with what is in the folder, which must be new otherwise
  int threads = 0;                    // 0: all cores; results do not depend on it
  std::filesystem::path home = {};    // whose budget every release is charged to as well; empty: none
};

// How good a client's model is on held-out records. NaN where a score is not defined.
struct ClientScore {
  int64_t client = 0;
  int64_t records = 0;
  double accuracy = kUndefined;
  double balanced_accuracy = kUndefined;
  double auroc = kUndefined;  // binary tasks
};

struct Evaluation {
  std::vector<ClientScore> clients;
  double mean_accuracy = kUndefined;  // over the clients, of personal models where the method has them
  double accuracy_std = kUndefined;
  double worst_accuracy = kUndefined;
  double global_accuracy = kUndefined;  // of the global model, on all held-out records
};

struct RoundRecord {
  int64_t round = 0;  // from 1
  int64_t cohort = 0;
  int64_t uploads = 0;
  int64_t upload_bytes = 0;
  int64_t samples = 0;
  double train_loss = kUndefined;
  double seconds = 0;
  std::vector<int64_t> diverged;   // clients whose training became non-finite
  std::vector<int64_t> abstained;  // clients whose budget is spent
  std::optional<Evaluation> evaluation;
};

// ε over the clients of a run.
struct EpsilonSpread {
  double min = 0;
  double median = 0;
  double max = 0;
};

// What clients have spent in the eyes of one observer.
struct SpentAgainst {
  std::string observer;
  std::optional<EpsilonSpread> claimed;  // absent if some client has no finite ε
  std::optional<EpsilonSpread> proven;
  std::string why_unproven;  // "" if there is a proven ε
};

// What summary.json holds.
struct RunSummary {
  std::string name, dataset, model, method, variant;
  std::string noise;  // secure, replay or none
  std::string config_hash;
  uint64_t seed = 0;
  int64_t rounds = 0;
  double seconds = 0;
  double samples_per_second = 0;
  int64_t upload_bytes = 0;
  int64_t diverged_steps = 0;
  std::map<std::string, int64_t> abstained;  // how often, by the client's name
  Evaluation evaluation;                     // of the last round
  SpentAgainst privacy;                      // in the eyes of the observer whom the run protects its clients from
  std::vector<SpentAgainst> observers;
  bool proven_basis = false;  // false: ε is simulated, since noise can be drawn again from the seed, or for basis_why
  std::string basis_why;
  std::optional<double> delta;  // absent without [privacy]
};

// Rounds are pulled; each is on disk before it is handed out. Signals are left to the program: see stop_runs.
class SOTTO_API Run {
 public:
  // Reads the config and loads the data. What cannot be begun or continued is an Error and leaves nothing behind.
  explicit Run(const RunOptions& options);
  ~Run();
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;

  const std::filesystem::path& folder() const;
  // The next round; nothing if all are done, or after stop_runs: then the run stands at a checkpoint.
  std::optional<RoundRecord> next_round();
  bool finished() const;
  // What the server sent last: of most methods, the global model's parameters.
  Tensors broadcast() const;
  // Writes what a finished run leaves behind, and returns the summary. An Error before the last round.
  RunSummary finish();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// Asks all runs of this process to stop after their round in progress, or takes that back. May be called from a signal
// handler.
SOTTO_API void stop_runs(bool stop = true);

// Of a run directory; nothing while the run is not finished. One that was damaged is an Error.
SOTTO_API std::optional<RunSummary> read_summary(const std::filesystem::path& folder);

// What one client will release over a run, each kind once.
struct PlannedRelease {
  std::string what;
  std::string mechanism;
  std::string how_often;
  std::string why_unproven;  // "" if an ε can be proven
  int64_t times = 0;
  double noise_multiplier = 0;  // 0: there is no noise
};
// Before anything is spent. Loads the data.
SOTTO_API std::vector<PlannedRelease> plan(const RunOptions& options, int64_t client = 0);

}  // namespace sotto
