// A whole federation: server, clients and test records, in one process or over the ranks of one job.
#pragma once

#include "federation/cohort.h"
#include "federation/evaluator.h"
#include "federation/federation.h"
#include "federation/state_store.h"
#include "transport/ranks.h"

#include <memory>
#include <optional>

namespace sotto::transport {

class OverRanks;

struct SimulationOptions {
  int threads = 1;
  std::optional<federation::Checkpoint> resume = std::nullopt;
  federation::ReplyWatcher watcher = {};
  Ranks* ranks = nullptr;  // this process is rank 0 of these; null: it is alone
};

class Simulation {
 public:
  // States are brought to where the run begins. `states` (over ranks: those of rank 0), `ledger` and ranks must outlive
  // it.
  Simulation(const federation::Setup& setup, federation::StateStore& states, privacy::Ledger& ledger,
             const SimulationOptions& options = {});
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation();

  // As federation::Federation.
  std::optional<federation::RoundRecord> next_round() { return federation_->next_round(); }
  const methods::Broadcast& broadcast() const { return federation_->broadcast(); }
  federation::Checkpoint checkpoint() const { return federation_->checkpoint(); }
  bool checkpoint_due() const { return federation_->checkpoint_due(); }

  // Makes all clients' states durable, wherever they are, as those after the round that was run last.
  void commit_states();
  // Of a federation in one process there is none.
  Traffic traffic() const;

 private:
  const federation::Setup setup_;
  federation::StateStore& states_;
  federation::CohortSchedule cohorts_;
  federation::HeldOut held_out_;
  federation::Workers workers_;
  std::unique_ptr<federation::Transport> transport_;
  OverRanks* over_ranks_ = nullptr;  // the same, if that is what it is
  std::unique_ptr<federation::Evaluator> evaluator_;
  std::unique_ptr<federation::Federation> federation_;
};

}  // namespace sotto::transport
