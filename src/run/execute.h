// A federation in this process that leaves a run directory behind.
#pragma once

#include "artifacts/run_directory.h"
#include "federation/setup.h"
#include "privacy/home.h"
#include "transport/ranks.h"
#include "transport/simulation.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

namespace sotto::run {

struct RunOptions {
  std::filesystem::path folder;
  bool resume = false;
  int threads = 1;
  std::function<void(int64_t round)> client_done = {};  // a client of this round has answered; may be empty
  privacy::Home* home = nullptr;                        // that every release is charged to as well; outlives the run
  transport::Ranks* ranks = nullptr;  // that share the work, this one being rank 0; they outlive the run. No home then.
};

// Rounds are pulled; each is on disk before it is handed out.
//
//   for (Run run(setup, options); const auto record = run.next_round();) …
class Run {
 public:
  // What cannot be begun or continued, or charged to its home, is a UserError and leaves nothing behind.
  Run(const federation::Setup& setup, const RunOptions& options);

  // The next round, written and, if due, checkpointed. Nothing if all are done, or if the process was interrupted: then
  // the run stands at a checkpoint.
  std::optional<federation::RoundRecord> next_round();
  bool finished() const { return simulation_->broadcast().round == setup_.spec().rounds; }
  const privacy::Ledger& ledger() const { return directory_.ledger(); }
  // As transport::Simulation.
  transport::Traffic traffic() const { return simulation_->traffic(); }
  // What the server sent last.
  const methods::Broadcast& broadcast() const { return simulation_->broadcast(); }

  // Writes summary.json and who holds which classes, and returns the former. All rounds must be done.
  artifacts::RunSummary finish();

 private:
  const federation::Setup setup_;
  std::filesystem::path folder_;
  artifacts::RunDirectory directory_;
  std::unique_ptr<federation::StateStore> states_;
  std::unique_ptr<transport::Simulation> simulation_;
  bool stopped_ = false;
};

// At every rank but 0: helps with the run that rank 0 has begun in this folder, which all of them see, until it is over.
void help(const federation::Setup& setup, const std::filesystem::path& folder, transport::Ranks& ranks, int threads);

// All rounds: the summary of the finished run, or nothing if it was interrupted and can be resumed.
std::optional<artifacts::RunSummary> execute(const federation::Setup& setup, const RunOptions& options);

}  // namespace sotto::run
