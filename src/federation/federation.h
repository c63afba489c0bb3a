// The server's side of a federation, one round at a time.
#pragma once

#include "federation/evaluator.h"
#include "federation/public_setup.h"
#include "federation/transport.h"
#include "privacy/ledger.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace sotto::federation {

struct RoundRecord {
  int64_t round = 0;               // 1 … rounds
  int64_t cohort = 0;              // clients asked
  int64_t uploads = 0;             // releases received
  int64_t upload_bytes = 0;        // of the tensors in those
  int64_t samples = 0;             // training records seen, with repetition
  double noise_norm = 0;           // Σ over uploads of the norm of the noise in them; kUndefined if one is not known
  double train_loss = kUndefined;  // mean over the records seen by clients that did not diverge
  double seconds = 0.0;            // training, transport and aggregation
  double evaluation_seconds = 0.0;
  std::map<std::string, double> measures;  // what the method measured, mean over the clients that say it
  std::vector<int64_t> diverged;           // clients whose training became non-finite
  std::vector<int64_t> abstained;          // clients whose budget is spent
  std::optional<Evaluation> evaluation;    // on evaluation rounds
};

// What a run can be continued from: the server's side after `round`. Clients' states are their own affair.
struct Checkpoint {
  int64_t round = 0;
  methods::Broadcast broadcast;
  NamedTensors server_state;
};

// A client of the round in progress has answered. Rows of the ledger that an upload rests on are durable by then.
using ReplyWatcher = std::function<void(int64_t round, const Reply& reply)>;

// Who takes part in a round, ascending.
using Cohorts = std::function<std::vector<int64_t>(int64_t round)>;

class Federation {
 public:
  // Continues after `resume`. The evaluator may be null: then models are tested elsewhere. Transport, evaluator and ledger
  // must outlive it; the watcher may be empty.
  Federation(const PublicSetup& setup, Cohorts cohorts, Transport& transport, Evaluator* evaluator,
             privacy::Ledger& ledger, const std::optional<Checkpoint>& resume = std::nullopt,
             ReplyWatcher watcher = {});

  // Runs one more round; nothing if all are done. The result depends on the setup alone: not on threads or transports,
  // nor on how often the run was resumed. After the last round the ledger's rows are compared with the method's plan: a
  // release that was not planned is an internal error.
  std::optional<RoundRecord> next_round();

  // A process before this one may have ended in the middle of the next round, before anybody saw what it made of it. Rows
  // of the server's own releases that it left in the ledger are taken for those that are made instead: they are not paid
  // for again.
  void resume_unseen_round();

  // What the server sent last.
  const methods::Broadcast& broadcast() const { return broadcast_; }
  Checkpoint checkpoint() const;
  // Whether the settings ask for a checkpoint after the round that was run last.
  bool checkpoint_due() const;

 private:
  RoundRecord train(int64_t round);
  void check_plan() const;

  const PublicSetup setup_;
  const Cohorts cohorts_;
  Transport& transport_;
  Evaluator* evaluator_;
  privacy::Ledger& ledger_;
  ReplyWatcher watcher_;
  std::unique_ptr<methods::ServerMethod> server_;
  methods::Broadcast broadcast_;
  std::set<int64_t> abstained_;
  std::vector<privacy::Event> unseen_;  // rows of the server for the next round, whose results are lost
};

}  // namespace sotto::federation
