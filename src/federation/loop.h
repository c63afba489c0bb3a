// The round loop.
#pragma once

#include "federation/evaluation.h"
#include "federation/setup.h"
#include "federation/state_store.h"
#include "privacy/ledger.h"

#include <map>
#include <optional>
#include <vector>

namespace sotto::federation {

struct RoundRecord {
  int64_t round = 0;               // 1 … rounds
  int64_t cohort = 0;              // clients asked
  int64_t uploads = 0;             // releases received
  int64_t upload_bytes = 0;        // of the tensors in those
  int64_t samples = 0;             // training records seen, with repetition
  double noise = 0;                // Σ over uploads of the norm of the noise in them; kUndefined if one is not known
  double train_loss = kUndefined;  // mean over the records seen by clients that did not diverge
  double seconds = 0.0;            // training, transport and aggregation
  double evaluation_seconds = 0.0;
  std::map<std::string, double> measures;  // what the method measured, mean over the clients that say it
  std::vector<int64_t> diverged;           // clients whose training became non-finite
  std::vector<int64_t> abstained;          // clients whose budget is spent
  std::optional<Evaluation> evaluation;    // on evaluation rounds
};

// What a run can be continued from: the server's side after `round`. Clients' states are committed to the StateStore.
struct Checkpoint {
  int64_t round = 0;
  methods::Broadcast broadcast;
  NamedTensors server_state;
};

// Where a run's results go. Calls come from one thread at a time, in round order.
class RunSink {
 public:
  virtual ~RunSink() = default;
  // A client of the round in progress has answered.
  virtual void client_done(int64_t /*round*/, int64_t /*client*/) {}
  // A recorded upload (record.uploads).
  virtual void upload(int64_t round, int64_t client, const privacy::Upload& upload) = 0;
  virtual void round(const RoundRecord& record) = 0;
  // All rounds up to checkpoint.round have been reported, and the state store has committed that round.
  virtual void checkpoint(const Checkpoint& checkpoint) = 0;
};

struct RunParts {
  StateStore& states;
  privacy::Ledger& ledger;
  RunSink& sink;
  int threads = 1;
};

enum class Outcome { kFinished, kInterrupted };

// Runs rounds (resume ? resume->round : 0)+1 … spec.rounds. After an interrupt the round in progress is completed and
// checkpointed. The result depends on the spec alone: not on threads, nor on how often the run was resumed. When the
// run is finished the ledger's rows are compared with the method's release plan; a release that was not planned is an
// internal error.
Outcome run_rounds(const Setup& setup, const RunParts& parts, const std::optional<Checkpoint>& resume);

}  // namespace sotto::federation
