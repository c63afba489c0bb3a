#include "federation/transport/inprocess.h"

#include "base/parallel.h"
#include "federation/cohort.h"

namespace sotto::federation {
namespace {

class InProcessTransport : public Transport {
 public:
  InProcessTransport(const Setup& setup, Workers& workers, StateStore& states, privacy::Ledger& ledger)
      : setup_(setup),
        workers_(workers),
        states_(states),
        ledger_(ledger),
        taken_part_(static_cast<size_t>(setup.spec.data.clients)) {}

  void exchange(int64_t round, const std::vector<int64_t>& cohort, const methods::Broadcast& broadcast,
                const std::function<void(Reply&&)>& accept) override {
    count_up_to(round);
    std::vector<std::optional<Reply>> replies(cohort.size());
    parallel_in_order(
        static_cast<int64_t>(cohort.size()), static_cast<int>(workers_.size()),
        [&](int64_t item, int worker) {
          const auto index = static_cast<size_t>(item);
          replies[index] = work(round, cohort[index], broadcast, *workers_[static_cast<size_t>(worker)]);
        },
        [&](int64_t item) {
          auto& reply = replies[static_cast<size_t>(item)];
          accept(std::move(*reply));
          reply.reset();
        });
  }

 private:
  void count_up_to(int64_t round) {
    for (; counted_ < round; ++counted_) {
      for (const int64_t client : sample_cohort(setup_.spec, counted_ + 1)) ++taken_part_[static_cast<size_t>(client)];
    }
  }

  Reply work(int64_t round, int64_t client, const methods::Broadcast& broadcast, methods::ClientMethod& method) {
    Reply reply;
    reply.client = client;
    methods::StepContext context{setup_.spec.seed, release_context(setup_, ledger_, round, client)};
    context.release.participation = taken_part_[static_cast<size_t>(client)];
    privacy::PrivateState state = states_.get(client);
    methods::StepResult result;
    try {
      result = method.step(broadcast, setup_.partition->shard(client), state, context);
    } catch (const privacy::BudgetSpent& refusal) {
      reply.abstained = refusal.what();
      return reply;
    }
    reply.report = result.report;
    if (result.report.diverged) {
      reply.failure = "training diverged: the loss or a weight is not finite";
      return reply;
    }
    if (!state.empty()) states_.put(client, round, std::move(state));
    reply.upload = std::move(result.upload);
    return reply;
  }

  const Setup& setup_;
  Workers& workers_;
  StateStore& states_;
  privacy::Ledger& ledger_;
  int64_t counted_ = 0;              // rounds
  std::vector<int32_t> taken_part_;  // in how many of them each client was asked
};

}  // namespace

privacy::ReleaseContext release_context(const Setup& setup, privacy::Ledger& ledger, int64_t round, int64_t client) {
  const bool secure = setup.spec.privacy && setup.spec.privacy->noise == "secure";
  return {.ledger = ledger,
          .round = round,
          .client = client,
          .noise = secure ? privacy::NoiseKind::kSecure : privacy::NoiseKind::kReplay,
          .seed = setup.spec.seed,
          .participations =
              client == privacy::kEveryone ? setup.spec.rounds : setup.participations[static_cast<size_t>(client)]};
}

Workers make_workers(const Setup& setup, int threads) {
  Workers workers;
  for (int i = 0; i < threads; ++i) workers.push_back(setup.method->make_client(setup.context()));
  return workers;
}

std::unique_ptr<Transport> make_inprocess_transport(const Setup& setup, Workers& workers, StateStore& states,
                                                    privacy::Ledger& ledger) {
  return std::make_unique<InProcessTransport>(setup, workers, states, ledger);
}

}  // namespace sotto::federation
