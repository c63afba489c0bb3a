#include "federation/federation.h"

#include "base/error.h"
#include "base/log.h"
#include "federation/client_runtime.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <vector>

namespace sotto::federation {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of what is known; what is infinite for one client is so on average.
double mean_with_infinity(const std::vector<double>& values) {
  for (const double value : values) {
    if (std::isinf(value)) return value;
  }
  return spread(values).mean;
}

}  // namespace

Federation::Federation(const PublicSetup& setup, Cohorts cohorts, Transport& transport, Evaluator* evaluator,
                       privacy::Ledger& ledger, const std::optional<Checkpoint>& resume, ReplyWatcher watcher)
    : setup_(setup),
      cohorts_(std::move(cohorts)),
      transport_(transport),
      evaluator_(evaluator),
      ledger_(ledger),
      watcher_(std::move(watcher)),
      server_(setup_.method().make_server(setup_.context())) {
  if (setup_.spec().privacy) {
    ledger_.agree(*setup_.spec().privacy,
                  setup_.spec().as_printed() ? privacy::HeldTo::kClaimed : privacy::HeldTo::kProven);
  }
  if (resume) {
    server_->restore(resume->broadcast, resume->server_state);
    broadcast_ = resume->broadcast;
  } else {
    broadcast_ = server_->open();
  }
}

std::optional<RoundRecord> Federation::next_round() {
  const config::RunSpec& spec = setup_.spec();
  const int64_t round = broadcast_.round + 1;
  if (round > spec.rounds) return std::nullopt;
  RoundRecord record = train(round);
  if (evaluator_ != nullptr && (round == spec.rounds || round % spec.federation.eval_every == 0)) {
    const auto begin = Clock::now();
    record.evaluation = evaluator_->evaluate(broadcast_);
    record.evaluation_seconds = seconds_since(begin);
  }
  if (round == spec.rounds) check_plan();
  return record;
}

void Federation::resume_unseen_round() {
  const int64_t round = broadcast_.round + 1;
  unseen_ = ledger_.events(round, round);
  std::erase_if(unseen_, [](const privacy::Event& event) { return event.client != privacy::kEveryone; });
}

Checkpoint Federation::checkpoint() const {
  return {broadcast_.round, broadcast_, server_->state()};
}

bool Federation::checkpoint_due() const {
  return broadcast_.round == setup_.spec().rounds || broadcast_.round % setup_.spec().record.checkpoint_every == 0;
}

RoundRecord Federation::train(int64_t round) {
  const auto begin = Clock::now();
  RoundRecord record;
  record.round = round;
  const std::vector<int64_t> cohort = cohorts_(round);
  record.cohort = static_cast<int64_t>(cohort.size());
  double loss_sum = 0.0;
  std::map<std::string, std::vector<double>> measured;
  const auto take = [&](const Reply& reply) {
    if (!reply.failure.empty()) {
      warn("round {}, client {}: {}; it sends nothing this round", round, reply.client, reply.failure);
      record.diverged.push_back(reply.client);
      return;
    }
    if (!reply.abstained.empty()) {
      if (abstained_.insert(reply.client).second) {
        info("client {} abstains from round {} on: {}", reply.client, round, reply.abstained);
      }
      record.abstained.push_back(reply.client);
      return;
    }
    record.samples += reply.report.samples;
    loss_sum += reply.report.loss * static_cast<double>(reply.report.samples);
    for (const auto& [name, value] : reply.report.measures) measured[name].push_back(value);
    if (!reply.upload) return;
    for (const NamedTensor& tensor : reply.upload->values()) {
      record.upload_bytes += static_cast<int64_t>(tensor.value.nbytes());
    }
    record.noise_norm += reply.report.noise_norm.value_or(kUndefined);
    server_->accept(*reply.upload);
    ++record.uploads;
  };
  transport_.exchange(cohort, broadcast_, [&](Reply&& reply) {
    if (reply.upload) ledger_.commit_through(reply.upload->row());
    if (watcher_) watcher_(round, reply);
    take(reply);
  });
  ledger_.commit();
  privacy::Ledger made;  // in the place of what was lost
  privacy::Ledger& paying = unseen_.empty() ? ledger_ : made;
  try {
    broadcast_ = server_->aggregate(
        {release_context(setup_, paying, round, privacy::kEveryone), std::span<const int64_t>(cohort)});
    for (const privacy::Event& event : made.events()) {
      if (std::find(unseen_.begin(), unseen_.end(), event) == unseen_.end()) ledger_.spend(event);
    }
    unseen_.clear();
  } catch (const privacy::BudgetSpent& refusal) {
    fail_user("the server may not release what it made of round {}: a client refuses, {}", round, refusal.what());
  }
  ledger_.commit();
  if (record.samples > 0) record.train_loss = loss_sum / static_cast<double>(record.samples);
  for (const auto& [name, values] : measured) record.measures[name] = mean_with_infinity(values);
  record.seconds = seconds_since(begin);
  return record;
}

void Federation::check_plan() const {
  const methods::ReleasePlan plan = setup_.plan_for(setup_.facts_of(0, setup_.facts().least_records));
  for (const auto& event : ledger_.kinds()) {
    const bool planned =
        std::any_of(plan.begin(), plan.end(), [&](const auto& channel) { return channel.makes(event); });
    SOTTO_INVARIANT(planned && "every release in the ledger is in the method's plan");
  }
}

}  // namespace sotto::federation
