#include "transport/inprocess.h"

#include "base/parallel.h"
#include "base/progress.h"

#include <optional>

namespace sotto::transport {

using federation::ClientRuntime;
using federation::ClientScore;
using federation::Reply;

InProcess::InProcess(const federation::Setup& setup, const federation::CohortSchedule& cohorts,
                     const federation::HeldOut& held_out, federation::Workers& workers, federation::StateStore& states,
                     privacy::Ledger& ledger)
    : setup_(setup),
      held_out_(held_out),
      workers_(workers),
      states_(states),
      ledger_(ledger),
      participations_(cohorts, setup.spec().data.clients) {}

template <typename Answer, typename Work>
void InProcess::ask(const std::vector<int64_t>& clients, const Work& work,
                    const std::function<void(Answer&&)>& accept) {
  std::vector<std::optional<Answer>> answers(clients.size());
  parallel_in_order(
      static_cast<int64_t>(clients.size()), static_cast<int>(workers_.size()),
      [&](int64_t item, int worker) {
        const auto index = static_cast<size_t>(item);
        ClientRuntime client(setup_, clients[index], *workers_[static_cast<size_t>(worker)], states_, ledger_);
        answers[index] = work(client, clients[index]);
      },
      [&](int64_t item) {
        auto& answer = answers[static_cast<size_t>(item)];
        accept(std::move(*answer));
        answer.reset();
      });
}

void InProcess::exchange(const std::vector<int64_t>& cohort, const methods::Broadcast& broadcast,
                         const std::function<void(Reply&&)>& accept) {
  participations_.count_up_to(broadcast.round + 1);
  ask<Reply>(
      cohort,
      [&](ClientRuntime& runtime, int64_t client) { return runtime.serve(broadcast, participations_.of(client)); },
      accept);
}

federation::Predictions InProcess::test(const methods::Broadcast& broadcast) {
  for (auto& worker : workers_) worker->select(broadcast, {});
  const int64_t chunks = federation::test_chunks(held_out_);
  std::vector<federation::Predictions> parts(static_cast<size_t>(chunks));
  Progress progress("evaluating", chunks);
  parallel_in_order(
      chunks, static_cast<int>(workers_.size()),
      [&](int64_t chunk, int worker) {
        parts[static_cast<size_t>(chunk)] = federation::predict(
            *workers_[static_cast<size_t>(worker)], held_out_.records, federation::test_chunk(held_out_, chunk));
        progress.advance();
      },
      [](int64_t) {});
  return federation::concatenate(parts);
}

void InProcess::evaluate(const std::vector<int64_t>& clients, const methods::Broadcast& broadcast,
                         const std::function<void(ClientScore&&)>& accept) {
  ask<ClientScore>(
      clients, [&](ClientRuntime& runtime, int64_t) { return runtime.evaluate(broadcast, held_out_); }, accept);
}

}  // namespace sotto::transport
