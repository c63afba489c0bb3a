// A whole federation in one process: server, clients and test records.
#pragma once

#include "federation/federation.h"
#include "federation/state_store.h"
#include "transport/inprocess.h"

#include <optional>

namespace sotto::transport {

struct SimulationOptions {
  int threads = 1;
  std::optional<federation::Checkpoint> resume = std::nullopt;
  federation::ReplyWatcher watcher = {};
};

class Simulation {
 public:
  // States are brought to where the run begins. `states` and `ledger` must outlive it.
  Simulation(const federation::Setup& setup, federation::StateStore& states, privacy::Ledger& ledger,
             const SimulationOptions& options = {});
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // As federation::Federation.
  std::optional<federation::RoundRecord> next_round() { return federation_.next_round(); }
  const methods::Broadcast& broadcast() const { return federation_.broadcast(); }
  federation::Checkpoint checkpoint() const { return federation_.checkpoint(); }
  bool checkpoint_due() const { return federation_.checkpoint_due(); }

 private:
  const federation::Setup setup_;
  federation::CohortSchedule cohorts_;
  federation::HeldOut held_out_;
  federation::Workers workers_;
  InProcess transport_;
  federation::Evaluator evaluator_;
  federation::Federation federation_;
};

}  // namespace sotto::transport
