#include "federation/loop.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "federation/cohort.h"
#include "federation/transport/inprocess.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <span>

namespace sotto::federation {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class RoundLoop {
 public:
  RoundLoop(const Setup& setup, const RunParts& parts)
      : setup_(setup),
        parts_(parts),
        workers_(make_workers(setup, parts.threads)),
        server_(setup.method->make_server(setup.context())),
        transport_(make_inprocess_transport(setup, workers_, parts.states, parts.ledger)),
        evaluator_(setup, workers_, parts.states) {}

  Outcome run(const std::optional<Checkpoint>& resume) {
    if (setup_.spec.privacy) parts_.ledger.agree(*setup_.spec.privacy, setup_.spec.variant);
    start(resume);
    for (int64_t round = broadcast_.round + 1; round <= setup_.spec.rounds; ++round) {
      RoundRecord record = train(round);
      const bool last = round == setup_.spec.rounds;
      if (last || round % setup_.spec.federation.eval_every == 0) {
        const auto begin = Clock::now();
        record.evaluation = evaluator_.evaluate(broadcast_);
        record.evaluation_seconds = seconds_since(begin);
      }
      parts_.sink.round(record);
      const bool stop = interrupted() && !last;
      if (last || stop || round % setup_.spec.record.checkpoint_every == 0) {
        parts_.states.commit(round);
        parts_.sink.checkpoint({round, broadcast_, server_->state()});
      }
      if (stop) return Outcome::kInterrupted;
    }
    check_plan();
    return Outcome::kFinished;
  }

 private:
  void start(const std::optional<Checkpoint>& resume) {
    if (resume) {
      parts_.states.restore(resume->round);
      server_->restore(resume->broadcast, resume->server_state);
      broadcast_ = resume->broadcast;
    } else {
      parts_.states.restore(0);
      broadcast_ = server_->open();
    }
  }

  RoundRecord train(int64_t round) {
    const auto begin = Clock::now();
    RoundRecord record;
    record.round = round;
    const std::vector<int64_t> cohort = sample_cohort(setup_.spec, round);
    record.cohort = static_cast<int64_t>(cohort.size());
    double loss_sum = 0.0;
    std::map<std::string, std::vector<double>> measured;
    transport_->exchange(round, cohort, broadcast_, [&](Reply&& reply) {
      parts_.sink.client_done(round, reply.client);
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
      if (setup_.spec.record.uploads) {
        parts_.ledger.commit();
        parts_.sink.upload(round, reply.client, *reply.upload);
      }
      for (const NamedTensor& tensor : reply.upload->values()) {
        record.upload_bytes += static_cast<int64_t>(tensor.value.nbytes());
      }
      record.noise += reply.report.noise.value_or(kUndefined);
      server_->accept(*reply.upload);
      ++record.uploads;
    });
    parts_.ledger.commit();
    broadcast_ = server_->aggregate(
        {release_context(setup_, parts_.ledger, round, privacy::kEveryone), std::span<const int64_t>(cohort)});
    parts_.ledger.commit();
    if (record.samples > 0) record.train_loss = loss_sum / static_cast<double>(record.samples);
    for (const auto& [name, values] : measured) record.measures[name] = spread(values).mean;
    record.seconds = seconds_since(begin);
    return record;
  }

  void check_plan() const {
    const methods::ReleasePlan plan = setup_.plan_for(0);
    for (const auto& event : parts_.ledger.kinds()) {
      const bool planned =
          std::any_of(plan.begin(), plan.end(), [&](const auto& release) { return release.covers(event); });
      SOTTO_INVARIANT(planned && "every release in the ledger is in the method's plan");
    }
  }

  const Setup& setup_;
  const RunParts parts_;
  Workers workers_;
  std::unique_ptr<methods::ServerMethod> server_;
  std::unique_ptr<Transport> transport_;
  Evaluator evaluator_;
  methods::Broadcast broadcast_;
  std::set<int64_t> abstained_;
};

}  // namespace

Outcome run_rounds(const Setup& setup, const RunParts& parts, const std::optional<Checkpoint>& resume) {
  return RoundLoop(setup, parts).run(resume);
}

}  // namespace sotto::federation
