#include "transport/inprocess.h"

#include "base/parallel.h"

#include <optional>

namespace sotto::transport {

using federation::ClientRuntime;
using federation::ClientScore;
using federation::Reply;

InProcess::InProcess(const federation::Setup& setup, const federation::CohortSchedule& cohorts,
                     const federation::HeldOut& held_out, federation::Workers& workers, federation::StateStore& states,
                     privacy::Ledger& ledger)
    : setup_(setup),
      cohorts_(cohorts),
      held_out_(held_out),
      workers_(workers),
      states_(states),
      ledger_(ledger),
      taken_part_(static_cast<size_t>(setup.spec().data.clients)) {}

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
  count_participations_up_to(broadcast.round + 1);
  ask<Reply>(
      cohort,
      [&](ClientRuntime& runtime, int64_t client) {
        return runtime.serve(broadcast, taken_part_[static_cast<size_t>(client)]);
      },
      accept);
}

void InProcess::evaluate(const std::vector<int64_t>& clients, const methods::Broadcast& broadcast,
                         const std::function<void(ClientScore&&)>& accept) {
  ask<ClientScore>(
      clients, [&](ClientRuntime& runtime, int64_t) { return runtime.evaluate(broadcast, held_out_); }, accept);
}

void InProcess::count_participations_up_to(int64_t round) {
  for (; counted_ < round; ++counted_) {
    for (const int64_t client : cohorts_.cohort(counted_ + 1)) {
      ++taken_part_[static_cast<size_t>(client)];
    }
  }
}

}  // namespace sotto::transport
