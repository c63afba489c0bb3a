#include "audit/whole_run.h"

#include "audit/canary_score.h"
#include "base/error.h"
#include "base/json_number.h"
#include "base/progress.h"
#include "base/random.h"
#include "federation/state_store.h"
#include "privacy/ledger.h"
#include "transport/simulation.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <limits>

namespace sotto::audit {
namespace {

constexpr double kDefaultDelta = 1e-5;

// Some of each client's own records become canaries: the picture stays, the label is another.
std::vector<PlacedCanary> place(const federation::Setup& setup, const WholeRunOptions& options) {
  const data::Records& train = setup.dataset().train;
  const int64_t clients = setup.spec().data.clients;
  const int64_t each = std::max<int64_t>(1, options.canaries / clients);
  std::vector<PlacedCanary> placed;
  for (int64_t client = 0; client < clients; ++client) {
    RandomStream stream(options.seed, "audit-canaries", 0, static_cast<uint64_t>(client));
    const at::Tensor rows = setup.partition().shard(client).train;
    const int64_t count = std::min(each, rows.size(0) / 2);
    for (const int64_t position : stream.sample_without_replacement(rows.size(0), count)) {
      const int64_t row = rows[position].item<int64_t>();
      const int64_t shift =
          1 + static_cast<int64_t>(stream.below(static_cast<uint64_t>(setup.data().task.classes - 1)));
      placed.push_back(
          {client, row, (train.y[row].item<int64_t>() + shift) % setup.data().task.classes, stream.bernoulli(0.5)});
    }
  }
  return placed;
}

}  // namespace

nlohmann::json WholeRunOutcome::to_json() const {
  return {{"what", "whole run: mislabelled records, in or out by coins"},
          {"observer", "server"},
          {"delta", delta},
          {"claimed_epsilon", number_or_null(claimed)},
          {"proven_epsilon", number_or_null(proven)},
          {"audited_epsilon", bound.epsilon},
          {"canaries", canaries},
          {"guesses", bound.guesses.made},
          {"right", bound.guesses.right},
          {"trials", 1},
          {"seconds", seconds}};
}

WholeRunOutcome audit_whole_run(const federation::Setup& setup, const WholeRunOptions& options) {
  if (setup.spec().privacy &&
      (setup.spec().privacy->unit != privacy::Unit::kRecord || setup.spec().privacy->trusts_server())) {
    fail_user("audit: a whole run is audited for records, against the server; this config protects a {} against {}",
              settings::word(setup.spec().privacy->unit), settings::word(setup.spec().privacy->observer));
  }
  if (setup.spec().privacy && setup.spec().privacy->adjacency == privacy::Adjacency::kReplaceSameLabel) {
    fail_user(
        "audit: canaries of a whole run have labels that are not theirs, which privacy.adjacency = "
        "\"replace-same-label\" does not promise to hide");
  }
  const auto start = std::chrono::steady_clock::now();
  const std::vector<PlacedCanary> canaries = place(setup, options);

  config::RunSpec spec = setup.spec();
  spec.record.uploads = true;
  spec.federation.eval_every = spec.rounds;
  spec.federation.eval_clients = 1;
  data::Records records = setup.dataset().train;
  records.y = records.y.clone();
  for (const PlacedCanary& canary : canaries) {
    if (canary.in) records.y[canary.row] = canary.label;
  }
  // Who holds what was dealt before: a partition by labels must not move because of the canaries.
  const federation::Setup run = setup.with(spec).with_records(std::move(records));

  const auto scorer = make_canary_scorer(setup, canaries, options.threads);
  privacy::Ledger ledger;
  const auto states = federation::make_memory_store({});
  const auto watch = [&](int64_t, const federation::Reply& reply) {
    if (reply.upload) scorer->add(reply.client, reply.upload->values());
  };
  transport::Simulation simulation(run, *states, ledger, {.threads = options.threads, .watcher = watch});
  Progress progress("whole run", spec.rounds);
  scorer->start_from(simulation.broadcast().values);
  while (simulation.next_round()) {
    scorer->start_from(simulation.broadcast().values);
    progress.advance();
  }

  WholeRunOutcome outcome;
  outcome.canaries = static_cast<int64_t>(canaries.size());
  outcome.delta = setup.spec().privacy ? setup.spec().privacy->delta : kDefaultDelta;
  for (const auto& [client, tally] : ledger.tallies("server")) {
    outcome.claimed = std::max(outcome.claimed, tally.claimed(outcome.delta));
    outcome.proven = std::max(outcome.proven, tally.proven(outcome.delta));
  }
  std::vector<bool> in;
  for (const PlacedCanary& canary : canaries) in.push_back(canary.in);
  const bool replaced = !setup.spec().privacy || setup.spec().privacy->adjacency == privacy::Adjacency::kReplace;
  outcome.bound =
      one_run_bound(scorer->scores(), in, outcome.delta, options.alpha, replaced ? Coin::kWithin : Coin::kTwoChanges);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

}  // namespace sotto::audit
