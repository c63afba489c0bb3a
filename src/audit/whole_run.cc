#include "audit/whole_run.h"

#include "audit/movement.h"
#include "base/error.h"
#include "base/progress.h"
#include "base/random.h"
#include "federation/loop.h"
#include "federation/state_store.h"
#include "methods/local_trainer.h"
#include "models/flat.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>

namespace sotto::audit {
namespace {

constexpr double kDefaultDelta = 1e-5;

struct Placed {
  int64_t client = 0;
  int64_t row = 0;    // of the training records: the slot that the canary takes, or leaves as it is
  int64_t label = 0;  // the canary's
  bool in = false;
};

// Some of each client's own records become canaries: the picture stays, the label is another.
std::vector<Placed> place(const federation::Setup& setup, const WholeRunOptions& options) {
  const data::Records& train = setup.data.dataset.train;
  const int64_t clients = setup.spec.data.clients;
  const int64_t each = std::max<int64_t>(1, options.canaries / clients);
  std::vector<Placed> placed;
  for (int64_t client = 0; client < clients; ++client) {
    RandomStream stream(options.seed, "audit-canaries", 0, static_cast<uint64_t>(client));
    const at::Tensor rows = setup.partition->shard(client).train;
    const int64_t count = std::min(each, rows.size(0) / 2);
    for (const int64_t position : stream.sample_without_replacement(rows.size(0), count)) {
      const int64_t row = rows[position].item<int64_t>();
      const int64_t shift = 1 + static_cast<int64_t>(stream.below(static_cast<uint64_t>(setup.data.task.classes - 1)));
      placed.push_back(
          {client, row, (train.y[row].item<int64_t>() + shift) % setup.data.task.classes, stream.bernoulli(0.5)});
    }
  }
  return placed;
}

// The gradient of every canary's loss at a broadcast, and what an upload says along it.
class Scorer {
 public:
  Scorer(const federation::Setup& setup, const std::vector<Placed>& canaries)
      : setup_(setup), canaries_(canaries), model_(methods::initial_model(setup.context())), flat_(*model_) {
    model_->eval();
    scores_.assign(canaries.size(), 0.0);
    for (size_t i = 0; i < canaries.size(); ++i) of_client_[canaries[i].client].push_back(i);
  }

  void start_from(const NamedTensors& broadcast) {
    for (auto& [name, value] : model_->shared_parameters()) {
      if (const at::Tensor sent = find_tensor(broadcast, name); sent.defined()) value.detach().copy_(sent);
    }
  }

  void add(int64_t client, const NamedTensors& upload) {
    const at::Tensor moved = movement(upload, model_->shared_parameters());
    for (const size_t i : of_client_[client]) {
      const at::Tensor gradient = gradient_of(canaries_[i]);
      const double norm = gradient.norm().item<double>();
      if (norm > 0) scores_[i] -= moved.dot(gradient).item<double>() / norm;
    }
  }

  const std::vector<double>& scores() const { return scores_; }

 private:
  at::Tensor gradient_of(const Placed& canary) {
    data::gather(setup_.data.dataset.train, at::tensor({canary.row}, at::kLong), batch_);
    flat_.zero_gradient();
    const at::Tensor label = at::tensor({canary.label}, at::kLong);
    at::cross_entropy_loss(model_->logits(batch_.x), label).backward();
    return flat_.shared_gradient();
  }

  const federation::Setup& setup_;
  const std::vector<Placed>& canaries_;
  std::shared_ptr<models::Model> model_;
  models::FlatParameters flat_;
  data::Batch batch_;
  std::map<int64_t, std::vector<size_t>> of_client_;
  std::vector<double> scores_;
};

class Watcher : public federation::RunSink {
 public:
  Watcher(Scorer& scorer, const NamedTensors& first, int64_t rounds) : scorer_(scorer), progress_("whole run", rounds) {
    scorer_.start_from(first);
  }
  void upload(int64_t, int64_t client, const privacy::Upload& upload) override { scorer_.add(client, upload.values()); }
  void round(const federation::RoundRecord&) override { progress_.advance(); }
  void checkpoint(const federation::Checkpoint& point) override { scorer_.start_from(point.broadcast.values); }

 private:
  Scorer& scorer_;
  Progress progress_;
};

nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

}  // namespace

nlohmann::json WholeRunOutcome::to_json() const {
  return {{"what", "whole run: mislabelled records, in or out by coins"},
          {"observer", "server"},
          {"delta", delta},
          {"claimed_epsilon", number(claimed)},
          {"proven_epsilon", number(proven)},
          {"audited_epsilon", bound.epsilon},
          {"canaries", canaries},
          {"guesses", bound.guesses.made},
          {"right", bound.guesses.right},
          {"trials", 1},
          {"seconds", seconds}};
}

WholeRunOutcome audit_whole_run(const federation::Setup& setup, const WholeRunOptions& options) {
  if (setup.spec.privacy && (setup.spec.privacy->unit != "record" || setup.spec.privacy->trusts_server())) {
    fail_user("audit: a whole run is audited for records, against the server; this config protects a {} against {}",
              setup.spec.privacy->unit, setup.spec.privacy->observer);
  }
  if (setup.spec.privacy && setup.spec.privacy->adjacency == "replace-same-label") {
    fail_user(
        "audit: canaries of a whole run have labels that are not theirs, which privacy.adjacency = "
        "\"replace-same-label\" does not promise to hide");
  }
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Placed> canaries = place(setup, options);

  federation::Setup run;
  run.spec = setup.spec;
  run.spec.record.uploads = true;
  run.spec.record.checkpoint_every = 1;
  run.spec.federation.eval_every = run.spec.rounds;
  run.spec.federation.eval_clients = 1;
  run.method = setup.method;
  run.data = setup.data;
  run.data.dataset.train.y = setup.data.dataset.train.y.clone();
  for (const Placed& canary : canaries) {
    if (canary.in) run.data.dataset.train.y[canary.row] = canary.label;
  }
  // Who holds what was dealt before: a partition by labels must not move because of the canaries.
  run.partition = data::make_partition(setup.spec.data, setup.data.dataset, setup.spec.seed);
  run.participations = setup.participations;

  Scorer scorer(setup, canaries);
  Watcher watcher(scorer, run.method->make_server(run.context())->open().values, run.spec.rounds);
  privacy::Ledger ledger;
  const auto states = federation::make_memory_store({});
  federation::run_rounds(run, {*states, ledger, watcher, options.threads}, std::nullopt);

  WholeRunOutcome outcome;
  outcome.canaries = static_cast<int64_t>(canaries.size());
  outcome.delta = setup.spec.privacy ? setup.spec.privacy->delta : kDefaultDelta;
  for (const auto& [client, tally] : ledger.tallies("server")) {
    outcome.claimed = std::max(outcome.claimed, tally.claimed(outcome.delta));
    outcome.proven = std::max(outcome.proven, tally.proven(outcome.delta));
  }
  std::vector<bool> in;
  for (const Placed& canary : canaries) in.push_back(canary.in);
  const bool replaced = !setup.spec.privacy || setup.spec.privacy->adjacency == "replace";
  outcome.bound =
      one_run_bound(scorer.scores(), in, outcome.delta, options.alpha, replaced ? Coin::kWithin : Coin::kTwoChanges);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

}  // namespace sotto::audit
